package graph

// Detach lets the owner do other work while the operation, which is in flight, is running.
// Done or Abandon must follow.
func (g *Graph) Detach(op Op) {
	g.leaveFlight(op)
	op.Node.running = detached
	g.countDetached(op, +1)
}

// endDetached reports the end of a detached operation. A member of a cycle is still one.
func (g *Graph) endDetached(op Op, meta any, err error) {
	n := op.Node
	g.countDetached(op, -1)
	inCycle := n.cycle != nil
	g.cycleStepDone(n)
	g.Returned(op, meta, err)
	if err == nil {
		return
	}
	g.retract(n)
	if inCycle && n.suspended() {
		n.suspension = suspendedInCycle
	}
}

// Abandon takes back an operation, in flight or detached, that is still running; err is the
// reason. Returned must follow when the operation returns.
func (g *Graph) Abandon(op Op, err error) {
	n := op.Node
	if n.running == detached {
		g.saveNode(n)
		g.touch(n)
		g.countDetached(op, -1)
	} else {
		g.leaveFlight(op)
	}
	g.cycleStepDone(n)
	g.retract(n)
	n.running = abandoned
	if !n.disconnected() {
		n.err = err
	}
}

// leaveFlight ends the flight of an operation that continues to run.
func (g *Graph) leaveFlight(op Op) {
	n := op.Node
	g.saveNode(n)
	n.last = op.Verb
	g.count(op.Verb, -1)
	g.touch(n)
	if n.disconnected() {
		return
	}
	n.suspension = suspended
	if op.Verb == Create {
		doubtful := *op.New
		doubtful.Doubt = true
		g.replaceActual(n, g.newVersion(n, &doubtful), nil, true)
	}
}

// countDetached counts the detached operations of a connection. The last one that ends
// releases the operations of the opposite direction.
func (g *Graph) countDetached(op Op, by int) {
	g.detached += by
	c := op.connection()
	if c == nil {
		return
	}
	count := &c.applying
	if op.Verb == Delete {
		count = &c.deleting
	}
	*count += by
	if *count == 0 {
		g.releaseHeld(c)
	}
}

// Returned reports the end of an abandoned operation. After an error the node is suspended
// until Retry or a new desired value, unless there was one of them meanwhile.
func (g *Graph) Returned(op Op, meta any, err error) {
	n := op.Node
	g.saveNode(n)
	n.running = idle
	g.touch(n)
	g.push(n)
	switch {
	case n.actual == nil || n.disconnected():
		g.Lost(n.key) // the connection was lost meanwhile, and with it the item
		n.unseen = true
	case err == nil:
		n.foreign = false
		n.recreate = n.recreate && op.Verb == Delete
		g.setActual(n, op.version, meta)
	case op.Verb == Create:
		g.setActual(n, nil, nil)
		g.resetRank(n)
	}
	if !n.suspended() {
		err = nil
	}
	if n.err = err; err == nil {
		n.retry()
	}
}
