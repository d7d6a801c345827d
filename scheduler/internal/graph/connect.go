package graph

// Disconnect marks the connection as down, for a reason that people see. All its values
// lose their actual values. Operations in flight will fail, and their errors are ignored.
func (g *Graph) Disconnect(c *Connection, reason string) {
	g.setPhase(c, down)
	c.reason = reason
	c.losses++
	g.releaseHeld(c)
	for _, n := range g.nodesOf(c) {
		g.Lost(n.key)
		g.resetRank(n)
		g.clearFailure(n)
	}
}

// Connect marks the connection as up, so that its operations can run.
func (g *Graph) Connect(c *Connection) {
	g.setPhase(c, up)
	for _, n := range g.nodesOf(c) {
		g.touch(n)
		g.push(n)
	}
}

// BeginRead prevents operations of the connection from beginning, until EndRead.
func (g *Graph) BeginRead(c *Connection) {
	switch c.phase {
	case up:
		g.setPhase(c, reading)
	case down:
		g.setPhase(c, joining)
		for _, n := range g.nodesOf(c) {
			g.touch(n) // it waits for another reason now
		}
	case reading, joining:
	}
}

// EndRead lets operations of the connection begin again. It does nothing if the connection
// was lost meanwhile.
func (g *Graph) EndRead(c *Connection) {
	switch c.phase {
	case reading:
		g.setPhase(c, up)
	case joining:
		g.Connect(c)
	case up, down:
	}
	g.releaseHeld(c)
}

// setPhase changes the phase, and counts the connections that are being read.
func (g *Graph) setPhase(c *Connection, p connectionPhase) {
	if c.phase == reading {
		g.reading--
	}
	if c.phase = p; p == reading {
		g.reading++
	}
}

// nodesOf returns the nodes of a connection, sorted by key: maps have no fixed order, and
// the order of the nodes is seen in the transaction log.
func (g *Graph) nodesOf(c *Connection) (out []*Node) {
	for kind, shelf := range g.byKind {
		if kind.Connection() == c {
			out = append(out, shelf.nodes...)
		}
	}
	g.sortByKey(out)
	return out
}
