package graph

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/queue"
)

// A journal can undo all changes of a graph since BeginPlan: they were only planned. Before a change it logs the inverse. The
// inverses are called in reverse order, so each finds what the change has left.
//
// The state of a graph, a node, a version and a resource is one struct, which is copied whole before its first change. Lists of
// edges can be long, so each of their changes is logged.
//
// A node that a plan creates vanishes with it. Nothing of such a node is copied, nor changes
// of lists between two of them. It is in a map of the journal's own, and never in that of the
// graph. So the time to undo a plan follows the nodes that existed before and that it changed.
type journal struct {
	undo      []func()
	fresh     map[string]*Node     // the nodes that the plan creates, by key
	resources map[string]*resource // those that the plan creates
	pace      func()               // nil: none
}

// BeginPlan starts a journal, which Rollback ends. No operation may be in flight. The graph calls pace often, between and within
// its steps; nil: never. If pace panics, only Rollback may follow, and it restores everything.
//
// Operations may be possible that were not begun, for example those of a run that waits. Their
// nodes are classified again, in the plan and after the Rollback, which empties their queues.
func (g *Graph) BeginPlan(pace func()) {
	for _, q := range []*queue.Queue[candidate]{&g.deletes, &g.applies} {
		for c := q.Pop(); c.node != nil; c = q.Pop() {
			g.dirty.Push(c)
		}
	}
	g.journal = &journal{pace: pace, fresh: map[string]*Node{}, resources: map[string]*resource{}}
	was := g.graphState
	was.dirty, was.available = g.dirty.Clone(), g.available.Copy() // which shares all that does not change
	g.logUndo(func() {
		clear(g.touched[len(was.touched):])
		g.graphState = was
		for c := range g.dirty.All() {
			c.node.queued = true
		}
	})
	for _, n := range g.blocked {
		state := n.blocked
		g.logUndo(func() { n.blocked = state })
	}
	for _, r := range g.cycles {
		g.hide(r)
	}
	g.cycles = nil
}

// hide takes a cycle that goes on away from a plan, which knows nothing of it.
func (g *Graph) hide(r *cycle) {
	var members []*Node
	for _, n := range r.members {
		if n.cycle() == r { // else it is in a newer one
			n.setCycle(nil)
			members = append(members, n)
		}
	}
	g.logUndo(func() {
		for _, n := range members {
			n.setCycle(r)
		}
		for _, n := range r.waiting {
			n.queued = true
		}
	})
}

// Rollback ends the journal and undoes all changes: they were only planned. Touched must
// not have been called since Begin. An operation may be in flight if pace panicked.
func (g *Graph) Rollback() {
	undo := g.journal.undo
	g.journal = nil
	for _, n := range g.blocked {
		n.blocked = notBlocked
	}
	for _, r := range g.cycles {
		for _, n := range r.members {
			n.setCycle(nil)
		}
	}
	for _, inverse := range slices.Backward(undo) {
		inverse()
	}
}

// planning reports that a plan is being made.
func (g *Graph) planning() bool { return g.journal != nil }

// logUndo logs the inverse of a change. It is called during a plan only.
func (g *Graph) logUndo(inverse func()) { g.journal.undo = append(g.journal.undo, inverse) }

// logs reports that a change of the edges that end at a node must be undone. With two nodes of the plan, it vanishes with them.
func (g *Graph) logs(e *edge, to *Node) bool {
	return g.planning() && (to.life != planned || e.v.node.life != planned)
}

// Pace calls the function that BeginPlan was given, if a plan is being made. The owner calls
// it in long loops of its own.
func (g *Graph) Pace() {
	if g.planning() && g.journal.pace != nil {
		g.journal.pace()
	}
}
