package graph

import "slices"

// A journal can take back all that was done to a graph since Begin.
//
// The state of a node and of a version is one struct, which is copied whole before
// its first change. Lists of edges may be long: of those each change is noted, and
// undone in reverse, so that everything is in its former order again.
//
// Rollback uses all of this. Undo keeps what was done, and uses only what was wanted.
type journal struct {
	nodes    []nodeMemento
	versions []versionMemento
	steps    []step
	filed    []*Node // put on their shelves
	created  []*Node
	awoken   []*Node // had no News

	dirty    queue
	disputed []*Node
	orphans  []*edge
	touched  int // how many were
	indexed  bool
	complete bool
}

// A nodeMemento is a node as it was.
type nodeMemento struct {
	node  *Node
	state nodeState
	// own: something of the node itself changed, and not only edges that end there.
	own bool
}

// A versionMemento is a version as it was, with its edges and what they have at stake.
type versionMemento struct {
	version *version
	state   versionState
	edges   []edge
	stakes  []stake
}

// saving says how much of a node is in the journal.
type saving uint8

const (
	unsaved saving = iota
	noted          // before edges that end there changed
	saved          // before the node itself changed
)

// Begin starts a journal, to be ended by Commit, Rollback or Undo. No operation may
// be in flight, and since the last one Next must have said that there is nothing more.
func (g *Graph) Begin() {
	g.journal = &journal{
		dirty: g.dirty.clone(), disputed: g.disputed, orphans: g.orphans, touched: len(g.touched),
		indexed: g.ups != nil, complete: g.complete,
	}
}

// Commit ends the journal and keeps what was done.
func (g *Graph) Commit() {
	j := g.closeJournal()
	for i := range j.nodes {
		if n := j.nodes[i].node; n.silent() {
			g.touch(n) // it could not be forgotten before
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

// Rollback ends the journal and puts everything back as it was: what was done since
// Begin was only planned. Touched must not have been called since.
func (g *Graph) Rollback() {
	j := g.closeJournal()
	g.clearQueues()
	for _, s := range slices.Backward(j.steps) {
		s.undo(g)
	}
	for i := range j.versions {
		j.versions[i].restore()
	}
	for i := range slices.Backward(j.nodes) {
		g.restore(&j.nodes[i])
	}
	for _, n := range slices.Backward(j.filed) {
		g.unfile(n)
	}
	for _, n := range j.created {
		delete(g.nodes, n.key)
		n.dropped = true
	}
	if !j.indexed {
		g.ups = nil
	}
	g.complete = j.complete
	g.restoreLists(j)
}

func (g *Graph) restore(m *nodeMemento) {
	n := m.node
	was := n.up()
	n.nodeState = m.state
	g.indexUp(n, was)
}

func (m *versionMemento) restore() {
	m.version.versionState = m.state
	stakes := m.stakes
	for i := range m.edges {
		e, was := &m.state.edges[i], m.edges[i]
		was.to, was.pos, was.spots = e.to, e.pos, e.spots // the steps have put them back
		if *e = was; e.stake != nil {
			*e.stake, stakes = stakes[0], stakes[1:]
		}
	}
}

// restoreLists puts the graph's own lists back, and what the nodes know of them.
func (g *Graph) restoreLists(j *journal) {
	g.dirty, g.disputed, g.orphans = j.dirty, j.disputed, j.orphans
	for _, n := range g.dirty.list[g.dirty.head:] {
		n.queued = true
	}
	for _, n := range j.awoken {
		n.News = false
	}
	for _, n := range g.touched[j.touched:] {
		n.touched = false
	}
	clear(g.touched[j.touched:])
	g.touched = g.touched[:j.touched]
}

// clearQueues takes all nodes out of the queues and rings, and returns them.
func (g *Graph) clearQueues() (out []*Node) {
	for _, q := range []*queue{&g.dirty, &g.deletes, &g.comes} {
		for n := q.pop(); n != nil; n = q.pop() {
			n.queued = false
			out = append(out, n)
		}
	}
	for _, n := range g.parked {
		n.parking = away
		out = append(out, n)
	}
	g.parked = nil
	for _, r := range g.rings {
		for _, n := range r.members {
			n.ring = nil
		}
	}
	g.rings = nil
	return out
}

// Undo ends the journal and wants again what was wanted before, in the reverse
// of the order of what was changed. What was done stays known; Next says what
// it takes to undo it. Who had what he claims has it again.
func (g *Graph) Undo() {
	complete := g.journal.complete
	j := g.closeJournal()
	g.complete = complete
	g.endRings()
	queued := g.clearQueues()
	for _, m := range slices.Backward(j.nodes) {
		if !m.own {
			continue
		}
		n := m.node
		n.base = m.state.base
		n.rejected = m.state.rejected
		n.release = m.state.release || m.state.have == nil
		g.setWant(n, m.state.want)
		n.tenure = m.state.tenure
	}
	for _, n := range queued {
		g.push(n)
	}
}

// save, note and keep are called before each change, and cost next to nothing where
// there is no journal.

// save copies n as it is, if it was not changed since Begin.
func (g *Graph) save(n *Node) {
	if g.journal != nil && n.saved != saved {
		g.journal.add(n, saved)
	}
}

// note copies n as it is, before edges that end there change.
func (g *Graph) note(n *Node) {
	if g.journal != nil && n.saved == unsaved {
		g.journal.add(n, noted)
	}
}

// keep copies v as it is, if it was not changed since Begin.
func (g *Graph) keep(v *version) {
	if g.journal != nil && !v.saved {
		g.journal.keep(v)
	}
}

// log notes a change of a list.
func (g *Graph) log(s step) {
	if g.journal != nil {
		g.journal.steps = append(g.journal.steps, s)
	}
}

func (j *journal) add(n *Node, as saving) {
	n.saved = as
	j.nodes = append(j.nodes, nodeMemento{n, n.nodeState, as == saved})
}

func (j *journal) keep(v *version) {
	m := versionMemento{version: v, state: v.versionState, edges: slices.Clone(v.edges)}
	for _, e := range v.edges {
		if e.stake != nil {
			m.stakes = append(m.stakes, *e.stake)
		}
	}
	j.versions = append(j.versions, m)
	v.saved = true
}
