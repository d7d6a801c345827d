package graph

// running says whether an operation of a node is running, and who waits for it. At most one
// operation of a node runs at a time.
//
//	state      the owner of the graph               ends with
//	idle       has no operation of the node         Next: inFlight
//	inFlight   waits for it and begins no other     Done, Cancel: idle. Detach: detached. Abandon: abandoned
//	           phase of the work meanwhile
//	detached   does other work meanwhile            Done: idle. Abandon: abandoned
//	abandoned  no longer waits for it               Returned: idle
//
// The effect of a detached or abandoned operation is not known yet. Until it ends, no other
// operation of the node begins, and neither Found nor Lost changes the node: the report may
// be older than the effect. NeedsReading tells that afterwards. The desired value may change
// meanwhile.
//
//	Create    the item may exist: the node keeps its claims, and its dependencies are not
//	          deleted. It meets no dependency of another value
//	Update    the old value counts as the actual one
//	Delete    the item may be gone: the node meets no dependency of another value
//
// An abandoned operation has failed: its node is Failed. A detached one is not late yet.
// While one is running, no operation of the opposite direction begins on its connection:
// neither Create nor Update beside Delete. Other connections proceed.
type running uint8

const (
	idle running = iota
	inFlight
	detached
	abandoned
)

// hung reports that an operation of n is running and nobody knows its effect.
func (n *Node) hung() bool { return n.running >= detached }

// Hung reports that a detached or abandoned operation of n is still running.
func (n *Node) Hung() bool { return n.hung() }

// Held reports that an operation of n could run, but waits for a read-back of its connection
// or for detached operations.
func (n *Node) Held() bool { return n.held }

// Detached reports that a detached operation of n is running.
func (n *Node) Detached() bool { return n.running == detached }

// NeedsReading reports that Found or Lost was ignored because of a running operation, since
// the last call. The node must be read back when the operation has ended.
func (n *Node) NeedsReading() bool {
	was := n.unseen && n.running == idle
	n.unseen = n.unseen && !was
	return was
}

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

// connection returns the connection that the verb of the operation uses; nil: none.
func (op Op) connection() *Connection {
	v := op.New
	if op.Verb == Delete {
		v = op.Old
	}
	if v.Kind == nil {
		return nil
	}
	return v.Kind.Connection()
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
