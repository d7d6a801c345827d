package graph

import (
	"cmp"
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/components"
	"github.com/keyplane/keyplane/scheduler/internal/link"
	"github.com/keyplane/keyplane/scheduler/internal/queue"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// breakDeadlock is called when no operation can run. It looks for operations that become
// possible with a cycle or by deleting outdated values, and then for those that come last. It
// reports whether it found any.
func (g *Graph) breakDeadlock() bool {
	look := g.Look || g.unsearched
	switch {
	case g.dissolveCycles() || g.searchCycles():
		return true
	case !look && (g.waitsForRoom(link.Delete) || g.waitsForRoom(link.Apply)):
		return false // operations are running, and more will be possible
	}
	g.Look = false
	if g.deleteOutdated() || g.queueLast(link.Delete, &g.deletes) || g.queueLast(link.Apply, &g.applies) {
		return true
	}
	if g.Awaiting() {
		return false
	}
	for _, n := range g.blocked {
		n.blocked = notBlocked
	}
	g.blocked = nil
	return false
}

// queueLast queues the nodes whose next step is a deletion or an application that comes last, or
// that did when they were classified: a new version of its base can change the order of a
// derived value. A held node is left out: it is classified again when it is released. A node on a crowded connection is left out,
// too: more is possible there.
func (g *Graph) queueLast(step link.Direction, to *queue.Queue[candidate]) (found bool) {
	for _, n := range g.blocked {
		g.Pace()
		if !n.queued && !n.Held() && n.running == idle && g.actionOf(n).direction() == step && !g.isCrowded(n) {
			n.queued, found = true, true
			to.Push(candidate{n, g.Cause})
		}
	}
	return found
}

// deleteOutdated lets outdated values be deleted that cannot be updated in place, unless an operation or a read-back that has
// not ended, or an operation that comes last, may let them be updated.
func (g *Graph) deleteOutdated() (found bool) {
	open := components.Search[*Node]{Marked: g.isOpen, Next: g.awaited, Most: mostSteps, Unknown: g.Awaiting()}
	for _, n := range g.blocked {
		if n.actual != nil && !n.actual.assumes() && n.retention != retentionEnded && (!n.toDelete || n.retention == retentionUnclear) &&
			g.actionOf(n) == actionBlocked && !g.waitsToBeKnown(n) && !(g.Awaiting() && n.connection().Holds(link.Delete)) && !open.Reaches(n) {
			g.edit(n).retention, found = retentionEnded, true
			g.push(n)
		}
	}
	return found
}

// waitsToBeKnown reports that n can perhaps be updated in place when more is known.
func (g *Graph) waitsToBeKnown(n *Node) bool {
	switch {
	case g.lacks(n.actual):
		return false
	case n.baseCurrent():
		return n.desired.unmet > 0 && !g.lacks(n.desired)
	}
	return n.base.kindUnknown()
}

// searchCycles looks for cycles among the blocked nodes that were not searched yet, and reports whether there are any.
func (g *Graph) searchCycles() bool {
	if !g.unsearched {
		return false
	}
	g.unsearched = g.findCycles(g.waitsOn, false) || g.findCycles(g.dependentsOf, true)
	return g.unsearched
}

// findCycles forms a cycle of each set of blocked nodes that only wait for each other.
func (g *Graph) findCycles(next func(*Node) []*Node, leaving bool) (found bool) {
	var roots []*Node
	for _, n := range g.blocked {
		if n.blocked != blockedNew || n.isLeaving() != leaving {
			continue
		}
		g.Pace()
		n.blocked = searched
		if n.running != inFlight && g.actionOf(n) == actionBlocked && !g.hasOutsider(next(n)) {
			roots = append(roots, n)
		}
	}
	for _, members := range components.Closed(roots, next) {
		found = true
		slices.SortStableFunc(members, func(a, b *Node) int { // the member that failed last time comes first
			return cmp.Compare(failures(b), failures(a))
		})
		r := &cycle{members: members, deleting: leaving}
		g.cycles = append(g.cycles, r)
		for _, n := range members {
			n.setCycle(r)
		}
		for _, n := range members {
			if !leaving {
				g.assumeMet(n)
			}
			g.push(n)
		}
	}
	return found
}

// failures returns 1 for a node whose last operation has failed.
func failures(n *Node) int {
	if n.errs.Failure() != nil {
		return 1
	}
	return 0
}

// hasOutsider reports that one of the nodes cannot be in a cycle.
func (g *Graph) hasOutsider(nodes []*Node) bool {
	return slices.ContainsFunc(nodes, func(n *Node) bool { return n == nil || g.actionOf(n) != actionBlocked })
}

// waitsOn returns the nodes that must be applied before n. A nil stands for a node that
// will not be applied by itself.
func (g *Graph) waitsOn(n *Node) (out []*Node) {
	g.Pace()
	if n.running == inFlight || n.toDelete || g.actionOf(n) != actionBlocked || !n.baseCurrent() || g.willBeRead(n.connection()) {
		return []*Node{nil}
	}
	if slices.ContainsFunc(n.desired.claims(), func(c claim) bool { return c.holder != nil }) {
		return []*Node{nil}
	}
	edges := n.desired.edges()
	for i := range edges {
		e := &edges[i]
		switch {
		case e.met:
		case e.anyOf() || e.to.actual != nil:
			out = append(out, nil)
		default:
			out = append(out, e.to)
		}
	}
	return out
}

// dependentsOf returns the nodes that must be deleted before n. A nil stands for a node
// that will not be deleted.
func (g *Graph) dependentsOf(n *Node) []*Node {
	g.Pace()
	if n.running != idle || !n.isLeaving() || n.suspended() || g.willBeRead(n.connection()) {
		return []*Node{nil}
	}
	return slices.Collect(n.keepers)
}

// assumeMet counts dependencies of n on members of its cycle as met.
func (g *Graph) assumeMet(n *Node) {
	edges := n.desired.edges()
	for i := range edges {
		if e := &edges[i]; !e.met && e.to.cycle() == n.cycle() {
			g.meet(e)
			g.editEdge(e).assumed = true
		}
	}
}

// dissolveCycles ends all cycles, except those with a member that is detached or held, or whose
// Create was abandoned: they go on. It retracts assumptions about members that were not created, and reports whether
// there were any.
func (g *Graph) dissolveCycles() (found bool) {
	var kept []*cycle
	for _, r := range g.cycles {
		if r.goesOn() {
			kept = append(kept, r)
			continue
		}
		for _, n := range r.members {
			if n.cycle() != r {
				continue // it is in a newer one, which may assume that it comes
			}
			found = found || slices.ContainsFunc(n.in(), func(e *edge) bool { return e.assumed })
			g.retract(n)
			n.setCycle(nil)
		}
	}
	g.cycles = kept
	return found
}

// goesOn reports that a member of the cycle will run without any other change, or that its
// result is not known yet.
func (r *cycle) goesOn() bool {
	return r.inFlight || slices.ContainsFunc(r.members, func(n *Node) bool { return n.cycle() == r && (n.Held() || r.awaits(n)) })
}

// awaits reports that the Create of n was abandoned or postponed. Members that were created
// before it stay until it ends; see suspendCycle.
func (r *cycle) awaits(n *Node) bool {
	return !r.deleting && (n.running == abandoned && n.last == value.Create || n.suspension == postponed)
}

// retract marks dependencies on n that were assumed met within a cycle as unmet again,
// after n failed. So no other member is created in vain.
func (g *Graph) retract(n *Node) {
	for _, e := range n.in() {
		if e.assumed {
			g.unmeet(e)
		}
	}
}

// cycleStepDone ends a step of the cycle of n, if it has one, and queues the members that waited
// for it.
func (g *Graph) cycleStepDone(n *Node) {
	r := n.cycle()
	if r == nil {
		return
	}
	r.inFlight = false
	for _, m := range r.waiting {
		m.queued = false
		g.push(m)
	}
	r.waiting = nil
}
