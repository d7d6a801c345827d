package graph

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/queue"
)

// Begin starts a journal. Commit, Rollback or Undo ends it. No operation may be in flight.
//
// Operations may be possible that were not begun, for example those of a run that waits. Their
// nodes are classified again, in the journal and after a Rollback, which empties their queues.
func (g *Graph) Begin() {
	for _, q := range []*queue.Queue[candidate]{&g.deletes, &g.applies} {
		for c := q.Pop(); c.node != nil; c = q.Pop() {
			g.dirty.Push(c)
		}
	}
	g.journal = &journal{
		cause: g.Cause, dirty: g.dirty.Clone(), unresolved: g.unresolved, lostProvider: g.lostProvider, touched: len(g.touched),
		available: g.available.Copy(), complete: g.complete, unsearched: g.unsearched,
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
	g.journal.fresh, g.journal.lengths = map[string]*Node{}, map[*kindNodes]int{}
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
	for i, n := range j.members {
		if n.cycle == nil {
			n.cycle = j.inCycle[i]
		}
	}
	g.cycles = append(g.cycles, j.cycles...)
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
	if j.plan {
		g.dropQueues(j)
	} else {
		g.clearQueues()
	}
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
	for _, n := range j.created {
		g.nodes.Delete(n.key)
		n.life = dropped
	}
	g.complete, g.unsearched = j.complete, j.unsearched
	g.restoreLists(j)
}

// restoreKinds removes the nodes that were added to lists of kinds.
func (g *Graph) restoreKinds(j *journal) {
	if !j.plan {
		for _, n := range slices.Backward(j.kinded) {
			g.removeFromKind(n)
		}
		return
	}
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
	g.clearQueues()
}

// clearQueues removes all nodes from queues and cycles and returns them.
func (g *Graph) clearQueues() (out []*Node) {
	for _, q := range []*queue.Queue[candidate]{&g.dirty, &g.deletes, &g.applies} {
		for c := q.Pop(); c.node != nil; c = q.Pop() {
			c.node.queued = false
			out = append(out, c.node)
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
	goOn := g.cycles
	g.cycles = nil
	queued := g.clearQueues()
	g.cycles = goOn
	for _, m := range slices.Backward(j.nodes) {
		if !m.direct {
			continue
		}
		n := m.node
		s := g.edit(n)
		s.base = m.state.base
		s.errs.SetRejection(m.state.errs.Rejection())
		s.removable = m.state.removable || m.state.actual == nil
		g.setDesired(n, m.state.desired)
		g.edit(n).claimRank = m.state.claimRank
	}
	for _, n := range queued {
		g.push(n)
	}
}
