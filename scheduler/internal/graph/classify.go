package graph

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/link"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// An action is the next step for a node.
type action uint8

const (
	actionNone    action = iota // the actual value is as desired, or no step can ever run
	actionBlocked               // a step is needed but cannot run yet
	actionDelete                // Delete can run
	actionApply                 // Create or Update can run
	// actionBreak: Delete can run, but comes after all that can be applied: see value.MakeFirst.
	actionBreak
	// actionApplyLast: Create can run, but comes after these deletions: see value.CreateLast.
	actionApplyLast
)

// direction returns what the action does, without regard to whether it comes last.
func (a action) direction() link.Direction {
	switch a {
	case actionDelete, actionBreak:
		return link.Delete
	case actionApply, actionApplyLast:
		return link.Apply
	default:
		return link.None
	}
}

func (a action) isLast() bool { return a == actionBreak || a == actionApplyLast }

// drain classifies every node that changed, until no node is left.
func (g *Graph) drain() {
	// Before a provider is known to go itself: what has lost its provider depends on another one, and leaves before it.
	g.replaceProviders()
	for {
		g.Pace()
		if len(g.unresolved) > 0 {
			g.ResolveClaims()
		}
		next := g.dirty.Pop()
		n := next.node
		switch {
		case n == nil && len(g.lostProvider) == 0:
			return
		case n == nil:
			g.replaceProviders()
			continue
		}
		n.queued, g.Cause = false, next.cause
		if n.running == idle {
			g.classify(n)
		}
	}
}

// classify puts n into the queue of its action.
func (g *Graph) classify(n *Node) {
	n.queued = true // the changes that classify makes itself need no second visit
	if n.missing && n.desired != nil && n.desired.unmet > 0 {
		g.edit(n).missing = false // from now on n is pending like any other node
		g.touch(n)
	}
	if n.isApplied() {
		g.setActual(n, n.desired, n.meta)
	}
	g.setToDelete(n, g.updateRetention(n))
	g.noteDoubt(n)
	if n.errs.Failure() != nil && n.failureObsolete() {
		g.clearFailure(n)
	}
	next := g.actionOf(n)
	n.queued = next == actionDelete || next == actionApply
	switch next {
	case actionBlocked, actionBreak, actionApplyLast:
		g.addBlocked(n)
	case actionDelete:
		g.deletes.Push(candidate{n, g.Cause})
	case actionApply:
		g.applies.Push(candidate{n, g.Cause})
	case actionNone: // nothing to do, or an event must come first
	}
}

// isApplied reports that the actual value needs no operation to become the desired one, which is another.
func (n *Node) isApplied() bool {
	return n.actual != n.desired && n.actual != nil && n.desired != nil && !n.changesBase() && suffices(n.key, n.actual.Value, n.desired.Value)
}

// failureObsolete reports that the failed operation is no longer needed, or not possible
// yet.
func (n *Node) failureObsolete() bool {
	if n.actual == n.desired {
		return !n.toDelete
	}
	return n.actual == nil && n.desired.unmet > 0 && n.suspension != suspendedInCycle && n.suspension != flapping
}

// actionOf decides the next step of a node from its present state. It changes nothing.
func (g *Graph) actionOf(n *Node) action {
	switch {
	case g.rests(n):
		return actionNone
	case n.toDelete && g.mayDelete(n):
		return g.deletion(n)
	case n.toDelete:
		return actionBlocked
	case n.desired == nil || n.desired == n.actual || n.cannotApply():
		return actionNone
	case !n.baseCurrent() && (n.actual == nil || !g.lacks(n.actual)):
		return actionNone
	case !n.baseCurrent() || !g.mayApply(n):
		return actionBlocked
	}
	return n.application()
}

// rests reports that an event must come before any operation of n.
func (g *Graph) rests(n *Node) bool {
	return n.suspended() || n.Hung() || n.kindUnknown() && !g.willBeRead(n.connection())
}

// deletion returns when n, which can be deleted, is deleted.
func (g *Graph) deletion(n *Node) action {
	if g.leavesLast(n) {
		return actionBreak
	}
	return actionDelete
}

// leavesLast reports that n, which must be deleted, goes after all that can be applied: it can
// exist beside its successor. It does not if anything else may wait for it: a provider that
// leaves, a new version of n, or another value that claims the same resource. So nothing ever
// waits for an actionBreak but the base of n, and no other decision depends on it.
//
// A derived value has the order of its base, which leaves after it.
func (g *Graph) leavesLast(n *Node) bool {
	b := n.base
	switch {
	case n.actual == nil || !n.toDelete || n.desired != nil || n.actual.contested():
		return false
	case b == nil:
		return !g.lacks(n.actual) && n.actual.order() == value.MakeFirst
	case b.toDelete:
		return g.lacking(n.actual) == 1 && g.leavesLast(b) // the dependency on the base
	}
	return !g.lacks(n.actual) && b.actual != nil && b.actual.order() == value.MakeFirst
}

// application returns when the desired value of n, which can be applied, is applied. A member of
// a cycle does not wait, because the cycle would be dissolved meanwhile.
func (n *Node) application() action {
	if n.actual == nil && n.cycle() == nil && n.desired.order() == value.CreateLast {
		return actionApplyLast
	}
	return actionApply
}

// updateRetention brings n.retention up to date and reports whether the actual value must
// be deleted.
func (g *Graph) updateRetention(n *Node) bool {
	cannot := g.cannotStay(n)
	if n.retention == retained && (cannot || !n.toDelete || n.errs.Failure() == nil) {
		return cannot
	}
	if !cannot && n.retention == retained { // its Delete failed
		g.edit(n).retention = retentionUnclear
	}
	if cannot || !g.outdated(n) {
		g.edit(n).retention = retained
	}
	return cannot || n.retention != retained
}

// needsDelete reports that the actual value must be deleted. Until then it meets no
// dependency of another value.
func (g *Graph) needsDelete(n *Node) bool { return g.cannotStay(n) || g.outdated(n) }

// cannotStay reports that the actual value must be deleted, whatever its new version waits
// for.
func (g *Graph) cannotStay(n *Node) bool {
	switch {
	case n.actual == nil || n.foreign:
		return false
	case n.base != nil && !n.base.available() && !n.base.Unknown():
		return true
	case n.desired == nil:
		return g.mayRemove(n)
	case n.LosesClaim():
		return true
	case n.desired == n.actual || n.desired.Err() != nil:
		return g.lacks(n.actual)
	case n.recreates():
		return !g.waits(n.desired) || g.lacks(n.actual) // it could not be created again
	}
	return false
}

// recreates reports that the desired version cannot replace the actual one in place.
func (n *Node) recreates() bool {
	return n.actual.Doubt || n.changesBase() || n.actual.Kind != nil && n.actual.Kind.Recreate(n.key, n.actual.Data, n.desired.Data, n.meta)
}

// changesBase reports that n is a property, of which another value derives the desired version: so it is another property.
func (n *Node) changesBase() bool {
	return n.actual.Kind == nil && slices.ContainsFunc(n.actual.edges(), func(e edge) bool { return e.dep == nil && e.to != n.base })
}

// outdated reports that the actual value must be deleted, or may have to be, because its
// new version cannot be applied in place.
func (g *Graph) outdated(n *Node) bool {
	switch {
	case n.retention == retained:
		return false
	case n.actual == nil || n.desired == nil || n.desired == n.actual || n.desired.Err() != nil || n.foreign:
		return false
	case n.baseCurrent():
		return g.lacks(n.desired) || n.desired.unmet > 0 && g.lacks(n.actual)
	}
	return n.retention == retentionEnded || g.lacks(n.actual)
}

// mayRemove reports that an actual value which is not desired may be deleted: it was
// desired before, or all desired values are known, or its base does not derive it any
// more.
func (g *Graph) mayRemove(n *Node) bool { return n.removable || n.base != nil && n.base.desired != nil }

// isLeaving reports that n will be deleted as soon as it has no dependents.
func (n *Node) isLeaving() bool { return n.toDelete && n.retention != retentionUnclear }

// mayDelete reports that n, which must be deleted, can be deleted now. Dependents on a connection that is
// down do not keep it: they are deleted when they were read back.
func (g *Graph) mayDelete(n *Node) bool {
	return n.retention != retentionUnclear && (n.dependents == 0 || g.unknownKinds > 0 && n.outlivesDependents() || n.leavesWithCycle())
}

// keepers yields the nodes that must be deleted before n.
func (n *Node) keepers(yield func(*Node) bool) {
	for _, e := range n.in() {
		if e.ofActual() && !e.v.node.isOutlived() && !yield(e.v.node) {
			return
		}
	}
}

// outlivesDependents reports that all dependents of n are on connections that are down.
func (n *Node) outlivesDependents() bool {
	for range n.keepers {
		return false
	}
	return true
}

// isOutlived reports that n, which is on a connection that is down, does not keep what it depends on.
func (n *Node) isOutlived() bool { return n.connection().Lost() && n.Unknown() }

// leavesWithCycle reports that all dependents of n leave together with it.
func (n *Node) leavesWithCycle() bool {
	if n.cycle() == nil || !n.cycle().deleting {
		return false
	}
	for m := range n.keepers {
		if m.cycle() != n.cycle() || m.suspended() || m.Hung() {
			return false
		}
	}
	return true
}

// cannotApply reports that the desired value cannot be applied, whatever happens to other
// nodes.
func (n *Node) cannotApply() bool { return n.desired.Err() != nil || n.LosesClaim() }

// addBlocked adds a node to those among which a deadlock is searched.
func (g *Graph) addBlocked(n *Node) {
	if n.blocked == notBlocked {
		g.blocked = append(g.blocked, n)
	}
	n.blocked, g.unsearched = blockedNew, true
}
