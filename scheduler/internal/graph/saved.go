package graph

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/folders"
	"github.com/keyplane/keyplane/scheduler/internal/queue"
)

// A journal can undo all changes of a graph since BeginPlan: they were only planned.
//
// The state of a node and of a version is one struct, which is copied whole before its
// first change. Lists of edges can be long. So each change of a list is logged as a step.
// Steps are undone in reverse order, which restores the order of the lists.
//
// A node that a plan creates vanishes with it. Nothing of such a node is copied, nor changes
// of lists between two of them. It is in a map of the journal's own, and never in that of the
// graph. So the time to undo a plan follows the nodes that existed before and that it changed.
type journal struct {
	nodes     []nodeMemento
	versions  []versionMemento
	steps     []step
	kinded    []*Node // added to the nodes of their kind
	newsNodes []*Node // News was false before
	// touchedNodes are the nodes that were added to the graph's list.
	touchedNodes []*Node
	fresh        map[string]*Node     // the nodes that the plan creates, by key
	pushed       []*Node              // older nodes that it queued
	lengths      map[*kindNodes]int   // how many nodes a kind had
	pace         func()               // nil: none
	available    folders.Index[*Node] // at BeginPlan; it shares all that has not changed since

	cause        uint8
	dirty        queue.Queue[candidate]
	blocked      []blockedMemento
	unsearched   bool
	cycles       []*cycle // that go on: a plan knows nothing of them
	members      []*Node  // of cycles; their field is in inCycle
	inCycle      []*cycle
	unresolved   []*Node
	lostProvider []*edge
	touched      int // length of the graph's list
	complete     bool
}

// A nodeMemento is the earlier state of a node.
type nodeMemento struct {
	node  *Node
	state nodeState
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

// A step is one change of a list of edges. It can be undone while the list has not changed
// since.
type step struct {
	edge    *edge
	to      *Node                   // its list of incoming edges changed; nil: waitlists changed
	waiters *folders.Places[*edge] // the entries in the waitlists
	pos     int32                   // where the edge was
	added   bool
}

// planning reports that a plan is being made.
func (g *Graph) planning() bool { return g.journal != nil }

// keepLength notes how many nodes a kind has before the plan adds the first one.
func (j *journal) keepLength(k *kindNodes) {
	if _, known := j.lengths[k]; !known {
		j.lengths[k] = len(k.nodes)
	}
}

// edit, bookkeep, editVersion and editEdge are the only ways to change a node, a version or an edge: they copy it for the
// journal before its first change, and return what may be changed. edit also keeps what Undo restores. Without a journal and Track
// they cost almost nothing. A test looks for other writes.

// edit returns the state of n to be changed.
func (g *Graph) edit(n *Node) *nodeState {
	if g.inverse != nil {
		g.inverse.add(n)
	}
	return g.bookkeep(n)
}

// bookkeep is edit for what Undo does not restore: what is known of the edges that end at n, and notes.
func (g *Graph) bookkeep(n *Node) *nodeState {
	if g.journal != nil && !n.saved {
		g.journal.addNode(n)
	}
	return &n.nodeState
}

// editVersion returns the state of v to be changed.
func (g *Graph) editVersion(v *version) *versionState {
	if g.journal != nil && !v.saved {
		g.journal.addVersion(v)
	}
	return &v.versionState
}

// editEdge returns an edge to be changed.
func (g *Graph) editEdge(e *edge) *edge {
	g.editVersion(e.v)
	return e
}

// logStep logs a change of a list, unless nothing of it stays after a plan.
func (g *Graph) logStep(s step) {
	if g.journal != nil && (s.to == nil || s.to.life != planned || s.edge.v.node.life != planned) {
		g.journal.steps = append(g.journal.steps, s)
	}
}

func (j *journal) addNode(n *Node) {
	n.saved = true
	j.nodes = append(j.nodes, nodeMemento{n, n.nodeState})
	j.keepPace()
}

func (j *journal) addVersion(v *version) {
	m := versionMemento{version: v, state: v.versionState, edges: slices.Clone(v.edges())}
	for _, e := range v.edges() {
		if e.claim != nil {
			m.claims = append(m.claims, *e.claim)
		}
	}
	j.versions = append(j.versions, m)
	v.saved = true
	j.keepPace()
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

func (m *nodeMemento) restore() {
	n := m.node
	n.nodeState = m.state
	n.saved, n.queued = false, false
	if n.running == inFlight {
		n.running = idle
	}
}

func (m *versionMemento) restore() {
	m.version.versionState = m.state // saved is false in it
	stakes := m.claims
	edges := m.version.edges()
	for i := range m.edges {
		e, was := &edges[i], m.edges[i]
		was.to, was.pos = e.to, e.pos // the steps have restored these
		if *e = was; e.claim != nil {
			*e.claim, stakes = stakes[0], stakes[1:]
		}
	}
}

// restoreEdge restores the edge alone.
func (s step) restoreEdge() {
	if s.added {
		s.edge.to, s.edge.pos = nil, 0
	} else {
		s.edge.to, s.edge.pos = s.to, s.pos
	}
}

// detach removes the edge, which is the last in its list.
func (s step) detach() {
	last := len(s.to.in()) - 1
	s.to.in()[last] = nil
	s.to.setIn(s.to.in()[:last])
	s.edge.to, s.edge.pos = nil, 0
}

// attach puts the edge back in its place. The edge that is there now was the last.
func (s step) attach() {
	s.to.setIn(append(s.to.in(), s.edge))
	last := int32(len(s.to.in()) - 1)
	s.to.in()[last], s.to.in()[s.pos] = s.to.in()[s.pos], s.edge
	s.to.in()[last].pos = last
	s.edge.to, s.edge.pos = s.to, s.pos
}
