package graph

// A Connection is shared by the values of some Kinds. The zero value is up.
//
//	phase      actual values   operations   the next phase
//	Up         known           begin        BeginRead: Reading. Disconnect: Down
//	Reading    known           wait         EndRead: Up. Disconnect: Down
//	Joining    none            wait         EndRead: Up. Disconnect: Down
//	Down       none            fail         BeginRead: Joining. Connect: Up
//
// While a connection is read back, none of its operations begins: so the result of the
// read-back is not older than their effect. Operations of other connections proceed.
type Connection struct {
	phase    connectionPhase
	reason   string  // why it is down, for people
	losses   int     // number of calls of Disconnect
	applying int     // detached creates and updates
	deleting int     // detached deletes
	held     []*Node // their operations wait for the end of a read-back or of detached operations
}

type connectionPhase uint8

const (
	up connectionPhase = iota
	reading
	joining
	down
)

// Down reports that the connection is down, or up again and not read back yet. A nil
// Connection never is.
func (c *Connection) Down() bool { return c != nil && c.phase >= joining }

// Lost reports that the connection is down. A nil Connection never is.
func (c *Connection) Lost() bool { return c != nil && c.phase == down }

// Losses returns how often the connection was lost. A read-back that began before the last
// loss is worthless.
func (c *Connection) Losses() int { return c.losses }

// Held returns the nodes with an operation that could run otherwise. The slice is valid
// until the graph changes.
func (c *Connection) Held() []*Node { return c.held }

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

// label says for people why the values of a connection that is down wait.
func (c *Connection) label() string {
	if c.phase == joining {
		return "the end of the read-back of its connection, which is up again"
	}
	return c.reason
}

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
	g.searchAgain() // no cycle is formed while one of its members would have to wait
}

// Awaiting reports that a read-back or a detached operation has not ended. Afterwards more
// may become possible without any other change.
func (g *Graph) Awaiting() bool { return g.reading+g.holding+g.detached > 0 }

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

// connection returns the connection of n, or nil.
func (n *Node) connection() *Connection {
	v := n.desired
	if v == nil {
		v = n.actual
	}
	if v == nil || v.Kind == nil {
		return nil
	}
	return v.Kind.Connection()
}

// disconnected reports that the connection of n is down, or not read back yet.
func (n *Node) disconnected() bool {
	return n.connection().Down()
}
