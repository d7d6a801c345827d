package graph

// holds reports that the next operation of n must wait, although it is possible. A plan
// assumes that all read-backs have ended.
func (g *Graph) holds(n *Node, next action) bool {
	c := n.connection()
	if c == nil || g.journal != nil {
		return false
	}
	obstacles := c.applying
	if next == actionApply {
		obstacles = c.deleting
	}
	return c.phase == reading || obstacles > 0 || len(c.held) > 0
}

// willBeRead reports that the kind of n, which is unknown, may become known by a read-back that has begun.
// The operations of n wait for that. A plan does not.
func (g *Graph) willBeRead(n *Node) bool {
	c := n.connection()
	return c != nil && c.phase == reading && g.journal == nil
}

// hold keeps a node back until its connection has been read.
func (g *Graph) hold(n *Node) {
	if n.held {
		return
	}
	n.held = true
	g.holding++
	c := n.connection()
	c.held = append(c.held, n)
}

// releaseHeld classifies the held nodes of c again.
func (g *Graph) releaseHeld(c *Connection) {
	g.holding -= len(c.held)
	for _, n := range c.held {
		n.held = false
		g.push(n)
		g.touch(n) // it waits for another reason now, or could not be forgotten while it was held
	}
	c.held = nil
	for _, n := range g.blocked { // no cycle was formed while one of its members had to wait
		n.blocked = blockedNew
	}
}

// Awaiting reports that a read-back or a detached operation has not ended. Afterwards more
// may become possible without any other change.
func (g *Graph) Awaiting() bool { return g.reading+g.holding+g.detached > 0 }
