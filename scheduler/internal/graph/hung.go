package graph

// An operation hangs from Abandon to Returned: it is still running, and its effect is not
// known yet. Until it returns, its node is FAILED and no operation of the node begins.
// Neither Found nor Lost changes the node. The desired value may change meanwhile.
//
//	Create    the item may exist: the node keeps its claims, and its dependencies are not
//	          deleted. It meets no dependency of another value
//	Update    the old value counts as the actual one
//	Delete    the item may be gone: the node meets no dependency of another value

// Abandon takes back an operation in flight that is still running; err is the reason.
// Returned must follow when the operation returns.
func (g *Graph) Abandon(op Op, err error) {
	n := op.Node
	g.saveNode(n)
	n.inFlight = false
	n.last = op.Verb
	g.count(op.Verb, -1)
	g.cycleStepDone(n)
	g.retract(n)
	g.touch(n)
	if !n.disconnected() {
		n.err, n.suspension = err, suspended
		if op.Verb == Create {
			doubtful := *op.New
			doubtful.Doubt = true
			g.replaceActual(n, g.newVersion(n, &doubtful), nil, true)
		}
	}
	n.hung = true
}

// Returned reports the end of an abandoned operation. After an error the node is suspended
// until Retry or a new desired value, unless there was one of them meanwhile.
func (g *Graph) Returned(op Op, meta any, err error) {
	n := op.Node
	g.saveNode(n)
	n.hung = false
	g.touch(n)
	g.push(n)
	switch {
	case n.actual == nil || n.disconnected():
		g.Lost(n.key) // the connection was lost meanwhile, and with it the item
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

// Hung reports that an abandoned operation of n is still running.
func (n *Node) Hung() bool { return n.hung }
