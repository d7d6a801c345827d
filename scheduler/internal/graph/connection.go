package graph

// A Connection is shared by the values of some Kinds. While it is down, they have no
// actual values and no operation of theirs can run.
type Connection struct {
	down   bool
	reason string
}

// Down reports that the connection is down. A nil Connection never is.
func (c *Connection) Down() bool { return c != nil && c.down }

// Disconnect marks the connection as down, for a reason that people see. All its values
// lose their actual values. Operations in flight will fail, and their errors are ignored.
func (g *Graph) Disconnect(c *Connection, reason string) {
	c.down, c.reason = true, reason
	for _, n := range g.nodesOf(c) {
		g.Lost(n.key)
		g.resetRank(n)
		g.clearFailure(n)
	}
}

// Connect marks the connection as up, so that its operations can run.
func (g *Graph) Connect(c *Connection) {
	c.down = false
	for _, n := range g.nodesOf(c) {
		g.touch(n)
		g.push(n)
	}
}

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

// disconnected reports that the connection of n is down.
func (n *Node) disconnected() bool {
	return n.connection().Down()
}
