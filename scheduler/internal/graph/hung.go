package graph

import "github.com/keyplane/keyplane/scheduler/internal/value"

// Detach lets the owner do other work while the operation, which is in flight, is running.
// Done or Abandon must follow.
func (g *Graph) Detach(op Op) {
	g.leaveFlight(op)
	op.Node.running = detached
	g.countDetached(op, +1)
}

// endDetached reports the end of a detached operation. A member of a cycle is still one.
func (g *Graph) endDetached(op Op, meta any, err error) {
	g.countDetached(op, -1)
	g.cycleStepDone(op.Node)
	g.Returned(op, meta, err)
}

// Abandon takes back an operation, in flight or detached, that is still running; err is the
// reason. Returned must follow when the operation returns.
func (g *Graph) Abandon(op Op, err error) {
	n := op.Node
	if n.running == detached {
		g.touch(n)
		g.countDetached(op, -1)
	} else {
		g.leaveFlight(op)
	}
	g.cycleStepDone(n)
	n.running = abandoned
	if n.connection().Lost() {
		g.retract(n)
		return
	}
	g.edit(n).errs.SetFailure(err)
	if op.Verb == value.Create && n.cycle() != nil {
		g.suspendCycle(n)
	} else {
		g.retract(n)
	}
}

// Postpone takes back an operation, in flight or detached, that was not begun, for a reason
// that ends by itself. As after a failure, the key is suspended until Retry or a new desired
// value.
func (g *Graph) Postpone(op Op, err error) {
	n := op.Node
	if op.Verb != value.Create || n.cycle() == nil || n.connection().Lost() {
		g.Done(op, nil, err)
		return
	}
	awaited := n.running == inFlight || n.suspended() // else there is a new desired value
	if n.running == inFlight {
		g.count(op, -1)
	} else {
		g.countDetached(op, -1)
		g.setActual(n, nil, nil)
	}
	n.running = idle
	if awaited {
		s := g.edit(n)
		s.errs.SetFailure(err)
		s.suspension = postponed
	}
	g.touch(n)
	g.push(n)
	g.suspendCycle(n)
	g.cycleStepDone(n)
}

// suspendCycle has the cycle of n wait, because the result of n's Create is not known yet. The
// members that were created stay: if they were deleted now, they would have to be created
// again when the Create succeeds late. Where all operations are late, such a cycle would never
// come to rest. No further member is created before.
func (g *Graph) suspendCycle(n *Node) {
	for _, m := range n.cycle().members {
		for _, e := range m.in() {
			if e.assumed && !e.ofActual() && e.v.node != n {
				g.unmeet(e)
			}
		}
	}
}

// leaveFlight ends the flight of an operation that continues to run.
func (g *Graph) leaveFlight(op Op) {
	n := op.Node
	g.edit(n).last = op.Verb
	g.count(op, -1)
	g.touch(n)
	if n.connection().Lost() {
		return
	}
	g.edit(n).suspension = suspended
	if op.Verb == value.Create {
		doubtful := *op.New
		doubtful.Doubt = true
		g.replaceActual(n, g.newVersion(n, &doubtful), nil, true)
	}
}

// countDetached counts the detached operations of a connection. The last one that ends
// releases the operations of the opposite direction.
func (g *Graph) countDetached(op Op, by int) {
	g.detached += by
	if c := op.connection(); c != nil && c.Detach(op.direction(), by) == 0 {
		g.searchAgain()
	}
}

// Returned reports the end of an abandoned operation. After an error the node is suspended
// until Retry or a new desired value, unless there was one of them meanwhile.
func (g *Graph) Returned(op Op, meta any, err error) {
	n := op.Node
	n.running = idle
	g.touch(n)
	g.push(n)
	if err != nil {
		g.retract(n)
	}
	switch {
	case n.actual == nil:
		g.bookkeep(n).unseen = true // it was lost meanwhile
	case err == nil:
		s := g.edit(n)
		s.foreign, s.recreate = false, n.recreate && op.Verb == value.Delete
		g.setActual(n, op.version, meta)
	case op.Verb == value.Create:
		g.setActual(n, nil, nil)
		g.resetRank(n)
		g.renew(n, err)
	}
	if !n.suspended() || n.connection().Lost() {
		err = nil
	}
	g.edit(n).errs.SetFailure(err)
	switch {
	case err == nil:
		g.edit(n).retry()
	case n.cycle() != nil:
		g.edit(n).suspension = suspendedInCycle
	}
}
