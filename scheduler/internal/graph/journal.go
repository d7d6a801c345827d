package graph

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/queue"
)

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
	g.journal = &journal{
		cause: g.Cause, dirty: g.dirty.Clone(), unresolved: g.unresolved, lostProvider: g.lostProvider, touched: len(g.touched),
		available: g.available.Copy(), complete: g.complete, unsearched: g.unsearched,
		pace: pace, fresh: map[string]*Node{}, lengths: map[*kindNodes]int{},
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

// Rollback ends the journal and undoes all changes: they were only planned. Touched must
// not have been called since Begin. An operation may be in flight if pace panicked.
func (g *Graph) Rollback() {
	j := g.journal
	g.journal = nil
	g.deleting, g.applying = 0, 0
	g.dropQueues(j)
	for _, s := range slices.Backward(j.steps) {
		s.undo(g)
	}
	for i := range j.versions {
		j.versions[i].restore()
	}
	g.available = j.available
	for i := range slices.Backward(j.nodes) {
		j.nodes[i].restore()
	}
	g.restoreKinds(j)
	g.complete, g.unsearched = j.complete, j.unsearched
	g.restoreLists(j)
}

// restoreKinds removes the nodes that were added to lists of kinds.
func (g *Graph) restoreKinds(j *journal) {
	for k, length := range j.lengths {
		g.shorten(k, length)
	}
	for _, n := range j.kinded {
		n.kindNodes, n.kindIndex = nil, 0
	}
}

// restoreLists restores the lists of the graph, and the flags of the nodes in them.
func (g *Graph) restoreLists(j *journal) {
	g.Cause, g.dirty, g.unresolved, g.lostProvider = j.cause, j.dirty, j.unresolved, j.lostProvider
	for c := range g.dirty.All() {
		c.node.queued = true
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
	for _, n := range j.touchedNodes {
		n.touched = false
	}
	clear(g.touched[j.touched:])
	g.touched = g.touched[:j.touched]
}

// dropQueues empties the queues and cycles of a plan without a visit to each node of it.
func (g *Graph) dropQueues(j *journal) {
	g.dirty, g.deletes, g.applies = queue.Queue[candidate]{}, queue.Queue[candidate]{}, queue.Queue[candidate]{}
	for _, n := range j.pushed {
		n.queued = false
	}
	for _, n := range g.blocked {
		n.blocked = notBlocked
	}
	for _, r := range g.cycles {
		for _, n := range r.members {
			n.cycle = nil
		}
		for _, n := range r.waiting {
			n.queued = false
		}
	}
	g.blocked, g.cycles = nil, nil
}
