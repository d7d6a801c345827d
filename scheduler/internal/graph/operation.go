package graph

import (
	"errors"

	"github.com/keyplane/keyplane/scheduler/internal/link"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// Next returns an operation that can run now. If there is none, either operations are in
// flight, or nothing more is possible.
func (g *Graph) Next() (Op, bool) {
	for {
		g.drain()
		if op, ok := g.start(); ok {
			return op, true
		}
		if g.Flying() || len(g.blocked)+len(g.cycles) == 0 || !g.breakDeadlock() {
			return Op{}, false
		}
	}
}

// Done reports the end of an operation, in flight or detached, with the metadata or the
// error. After an error the key is suspended until Retry or a new desired value.
func (g *Graph) Done(op Op, meta any, err error) {
	n := op.Node
	if n.running == detached {
		g.endDetached(op, meta, err)
		return
	}
	n.running = idle
	s := g.edit(n)
	s.last = op.Verb
	g.count(op, -1)
	inCycle := n.cycle() != nil
	g.cycleStepDone(n)
	if err != nil && n.connection().Lost() {
		g.push(n) // nobody knows the effect; the kind is read back, or the operation is repeated
		return
	}
	s.errs.SetFailure(err)
	if err != nil {
		s.suspension = suspended
		if inCycle {
			s.suspension = suspendedInCycle
		}
		g.retract(n)
		g.touch(n)
		g.push(n)
		if op.Verb == value.Create {
			g.resetRank(n)
			g.renew(n, err)
		}
		return
	}
	s.foreign, s.recreate = false, n.recreate && op.Verb == value.Delete
	g.setActual(n, op.version, meta)
	g.setRenewed(n, false)
}

var errCancelled = errors.New("the operation was not begun")

// Cancel takes back an operation that was not begun.
func (g *Graph) Cancel(op Op) {
	n := op.Node
	if n.running == detached {
		g.endDetached(op, nil, errCancelled)
		g.clearFailure(n)
		return
	}
	n.running = idle
	g.count(op, -1)
	g.cycleStepDone(n)
	g.push(n)
}

// start returns the next operation from the queues. Nothing is created while a delete is
// possible, so that shared resources are free first. Deletes that come last are not in the
// queue until breakDeadlock puts them there.
func (g *Graph) start() (Op, bool) {
	for {
		next, opposite := link.Apply, g.deleting
		if g.deletes.Len() > 0 || g.waitsForRoom(link.Delete) {
			next, opposite = link.Delete, g.applying
		}
		if opposite > 0 {
			return Op{}, false
		}
		n, wasHeld := g.pop(next)
		if n == nil {
			if next == link.Delete && !g.waitsForRoom(next) {
				continue // none of those that were held is to be deleted any more
			}
			return Op{}, false
		}
		if g.begins(n, next, wasHeld) {
			g.letGo(n)
			return g.launch(n), true
		}
		if wasHeld {
			g.touch(n) // it waits for something else now, or could not be forgotten
		}
		g.drain()
	}
}

// begins reports that the operation of a node, which was taken from a queue, begins now. Otherwise it decides about the node.
func (g *Graph) begins(n *Node, next link.Direction, wasHeld bool) bool {
	switch {
	case wasHeld && n.queued: // for another step
	case n.toDelete && g.handOver(n): // nothing is to be done
	case n.toDelete != g.needsDelete(n) || !g.isTurn(n, next, wasHeld):
		g.classify(n)
	case n.cycle() != nil && n.cycle().inFlight:
		n.queued = true
		n.cycle().waiting = append(n.cycle().waiting, n)
	case !wasHeld && g.holds(n, next):
		g.hold(n, next)
	default:
		return true
	}
	return false
}

// pop returns the next node of a queue, or else of those that were held and need not wait any more. wasHeld says which.
func (g *Graph) pop(next link.Direction) (n *Node, wasHeld bool) {
	q := &g.applies
	if next == link.Delete {
		q = &g.deletes
	}
	if q.Len() == 0 {
		return g.nextHeld(next), true
	}
	first := q.Pop()
	n, g.Cause = first.node, first.cause
	n.queued = false
	return n, false
}

// isTurn reports that an action can begin in a phase of deletions or applications. A deletion that comes last gives way if
// anything can be applied by now, or on its connection when there is room. What comes last and was held gives way to all that
// has become possible meanwhile.
func (g *Graph) isTurn(n *Node, phase link.Direction, wasHeld bool) bool {
	a := g.actionOf(n)
	return a.direction() == phase && (!wasHeld || !a.isLast()) && (a != actionBreak || g.applies.Len() == 0 && !g.isCrowded(n))
}

// launch makes the operation of a node, whose action classify has decided.
func (g *Graph) launch(n *Node) Op {
	op := Op{Node: n, Meta: n.meta, Old: n.actual.value()}
	switch {
	case n.toDelete:
		op.Verb = value.Delete
		g.edit(n).recreate = n.desired != nil && n.desired != n.actual && n.retention != retentionEnded
	case n.actual == nil:
		op.Verb = value.Create
	default:
		op.Verb = value.Update
	}
	if op.Verb != value.Delete {
		op.New, op.version = n.desired.Value, n.desired
	}
	op.Recreate = n.recreate
	n.running = inFlight
	if n.cycle() != nil {
		n.cycle().inFlight = true
	}
	g.count(op, +1)
	return op
}

// Recreating reports whether a Delete of n makes room for a new version of it, which waits for
// nothing. It counts from the moment when the Delete is decided, so that the derived values,
// which are deleted first, can be told from derived values that go for good.
func (n *Node) Recreating() bool {
	return (n.toDelete || n.recreate) && n.desired != nil && n.desired.Err() == nil && n.desired != n.actual && n.retention != retentionEnded
}
