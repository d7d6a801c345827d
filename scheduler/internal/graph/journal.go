package graph

import (
	"slices"

	"github.com/tidwall/btree"
)

// A journal can undo all changes of a graph since Begin.
//
// The state of a node and of a version is one struct, which is copied whole before its
// first change. Lists of edges can be long. So each change of a list is logged as a step.
// Steps are undone in reverse order, which restores the order of the lists.
//
// A node that a plan creates vanishes with it. Nothing of such a node is copied, nor changes
// of lists between two of them.
//
// Rollback restores everything. Undo keeps the actual values and restores the desired
// ones.
type journal struct {
	nodes     []nodeMemento
	versions  []versionMemento
	steps     []step
	kinded    []*Node // added to the nodes of their kind
	created   []*Node
	newsNodes []*Node                   // News was false before
	plan      bool                      // only Rollback may follow
	pace      func()                    // nil: none
	available *btree.Map[string, *Node] // of a plan: the index at Begin

	dirty        queue
	blocked      []blockedMemento
	cycles       []*cycle // that go on: a plan knows nothing of them
	members      []*Node  // of cycles; their field is in inCycle
	inCycle      []*cycle
	unresolved   []*Node
	lostProvider []*edge
	touched      int // length of the graph's list
	indexed      bool
	complete     bool
}

// A nodeMemento is the earlier state of a node.
type nodeMemento struct {
	node  *Node
	state nodeState
	// direct: the node itself changed, not only its incoming edges.
	direct bool
}

// A versionMemento is the earlier state of a version, its edges and its claims.
type versionMemento struct {
	version *version
	state   versionState
	edges   []edge
	claims  []claimEdge
}

// A blockedMemento is an element of the earlier list of blocked nodes.
type blockedMemento struct {
	node  *Node
	state blockedState
}

// A savedState says how much of a node is in the journal.
type savedState uint8

const (
	unsaved       savedState = iota
	incomingSaved            // saved before its incoming edges changed
	nodeSaved                // saved before the node itself changed
)

// Begin starts a journal. Commit, Rollback or Undo ends it. No operation may be in flight.
//
// Operations may be possible that were not begun, for example those of a run that waits. Their
// nodes are classified again, in the journal and after a Rollback, which empties their queues.
func (g *Graph) Begin() {
	for _, q := range []*queue{&g.deletes, &g.applies} {
		for n := q.pop(); n != nil; n = q.pop() {
			g.dirty.push(n)
		}
	}
	g.journal = &journal{
		dirty: g.dirty.clone(), unresolved: g.unresolved, lostProvider: g.lostProvider, touched: len(g.touched),
		indexed: g.available != nil, complete: g.complete,
	}
	for _, r := range g.cycles {
		for _, n := range r.members {
			if n.cycle == r {
				n.cycle = nil
				g.journal.members, g.journal.inCycle = append(g.journal.members, n), append(g.journal.inCycle, r)
			}
		}
	}
	g.journal.cycles, g.cycles = g.cycles, nil
	for _, n := range g.blocked {
		g.journal.blocked = append(g.journal.blocked, blockedMemento{n, n.blocked})
	}
}

// BeginPlan is Begin for a plan that may be interrupted. The graph calls pace often, between
// and within its steps. If pace panics, only Rollback may follow, and it restores everything.
func (g *Graph) BeginPlan(pace func()) {
	g.Begin()
	g.journal.plan, g.journal.pace = true, pace
	if g.available != nil {
		g.journal.available = g.available.Copy() // shares all but the changes of the plan
	}
}

// Pace calls the function that BeginPlan was given, if a plan is being made. The owner calls
// it in long loops of its own.
func (g *Graph) Pace() {
	if g.journal != nil {
		g.journal.keepPace()
	}
}

func (j *journal) keepPace() {
	if j.pace != nil {
		j.pace()
	}
}

// Commit ends the journal and keeps all changes.
func (g *Graph) Commit() {
	j := g.closeJournal()
	for i := range j.nodes {
		if n := j.nodes[i].node; n.unused() {
			g.touch(n) // it could not be forgotten while the journal had it
		}
	}
}

func (g *Graph) closeJournal() *journal {
	j := g.journal
	g.journal = nil
	for i := range j.nodes {
		j.nodes[i].node.saved = unsaved
	}
	for i := range j.versions {
		j.versions[i].version.saved = false
	}
	return j
}

// Rollback ends the journal and undoes all changes: they were only planned. Touched must
// not have been called since Begin. An operation may be in flight if pace panicked.
func (g *Graph) Rollback() {
	j := g.journal
	g.journal = nil
	g.deleting, g.applying = 0, 0
	g.clearQueues()
	for _, s := range slices.Backward(j.steps) {
		s.undo(g)
	}
	for i := range j.versions {
		j.versions[i].restore()
	}
	if j.plan {
		g.available = j.available
	} else if !j.indexed {
		g.available = nil
	}
	for i := range slices.Backward(j.nodes) {
		m := &j.nodes[i]
		if m.restore(); m.direct && !j.plan {
			g.reindex(m.node)
		}
	}
	for _, n := range slices.Backward(j.kinded) {
		g.removeFromKind(n)
	}
	for _, n := range j.created {
		delete(g.nodes, n.key)
		n.life = dropped
	}
	g.complete = j.complete
	g.restoreLists(j)
}

func (m *nodeMemento) restore() {
	n := m.node
	n.nodeState = m.state
	n.saved, n.queued = unsaved, false
	if n.running == inFlight {
		n.running = idle
	}
}

func (m *versionMemento) restore() {
	m.version.versionState = m.state // saved is false in it
	stakes := m.claims
	for i := range m.edges {
		e, was := &m.state.edges[i], m.edges[i]
		was.to, was.pos, was.waiters = e.to, e.pos, e.waiters // the steps have restored these
		if *e = was; e.claim != nil {
			*e.claim, stakes = stakes[0], stakes[1:]
		}
	}
}

// restoreLists restores the lists of the graph, and the flags of the nodes in them.
func (g *Graph) restoreLists(j *journal) {
	g.dirty, g.unresolved, g.lostProvider = j.dirty, j.unresolved, j.lostProvider
	for _, n := range g.dirty.list[g.dirty.head:] {
		n.queued = true
	}
	for i, n := range j.members {
		n.cycle = j.inCycle[i]
	}
	for _, r := range j.cycles {
		for _, n := range r.waiting {
			n.queued = true
		}
	}
	g.cycles = append(g.cycles, j.cycles...)
	for _, m := range j.blocked {
		m.node.blocked = m.state
		g.blocked = append(g.blocked, m.node)
	}
	for _, n := range j.newsNodes {
		n.News = false
	}
	for _, n := range g.touched[j.touched:] {
		n.touched = false
	}
	clear(g.touched[j.touched:])
	g.touched = g.touched[:j.touched]
}

// clearQueues removes all nodes from queues and cycles and returns them.
func (g *Graph) clearQueues() (out []*Node) {
	for _, q := range []*queue{&g.dirty, &g.deletes, &g.applies} {
		for n := q.pop(); n != nil; n = q.pop() {
			n.queued = false
			out = append(out, n)
		}
	}
	for _, n := range g.blocked {
		n.blocked = notBlocked
		out = append(out, n)
	}
	g.blocked = nil
	for _, r := range g.cycles {
		for _, n := range r.members {
			n.cycle = nil
		}
		for _, n := range r.waiting {
			n.queued = false
			out = append(out, n)
		}
	}
	g.cycles = nil
	return out
}

// Undo ends the journal and restores the desired values, in reverse order of their
// changes. Actual values stay as they are now; Next returns the operations that restore
// them. Claim ranks are restored too.
func (g *Graph) Undo() {
	complete := g.journal.complete
	j := g.closeJournal()
	g.complete = complete
	g.dissolveCycles()
	queued := g.clearQueues()
	for _, m := range slices.Backward(j.nodes) {
		if !m.direct {
			continue
		}
		n := m.node
		n.base = m.state.base
		n.rejected = m.state.rejected
		n.removable = m.state.removable || m.state.actual == nil
		g.setDesired(n, m.state.desired)
		n.claimRank = m.state.claimRank
	}
	for _, n := range queued {
		g.push(n)
	}
}

// saveNode, saveIncoming and saveVersion are called before each change. Without a journal
// they cost almost nothing.

// saveNode copies n before its first change since Begin.
func (g *Graph) saveNode(n *Node) {
	if g.journal != nil && n.saved != nodeSaved {
		g.journal.addNode(n, nodeSaved)
	}
}

// saveIncoming copies n before its incoming edges change.
func (g *Graph) saveIncoming(n *Node) {
	if g.journal != nil && n.saved == unsaved {
		g.journal.addNode(n, incomingSaved)
	}
}

// saveVersion copies v before its first change since Begin.
func (g *Graph) saveVersion(v *version) {
	if g.journal != nil && !v.saved {
		g.journal.addVersion(v)
	}
}

// logStep logs a change of a list, unless nothing of it stays after a plan.
func (g *Graph) logStep(s step) {
	if g.journal != nil && (s.to == nil || s.to.life != planned || s.edge.v.node.life != planned) {
		g.journal.steps = append(g.journal.steps, s)
	}
}

func (j *journal) addNode(n *Node, as savedState) {
	n.saved = as
	j.nodes = append(j.nodes, nodeMemento{n, n.nodeState, as == nodeSaved})
	j.keepPace()
}

func (j *journal) addVersion(v *version) {
	m := versionMemento{version: v, state: v.versionState, edges: slices.Clone(v.edges)}
	for _, e := range v.edges {
		if e.claim != nil {
			m.claims = append(m.claims, *e.claim)
		}
	}
	j.versions = append(j.versions, m)
	v.saved = true
	j.keepPace()
}
