package graph

// A Gate stands before the values of some Kinds: those that share a connection.
// While it is shut nothing of them stands or can run.
type Gate struct {
	shut   bool
	reason string
}

// Shut says that the gate is shut; a nil one never is.
func (gate *Gate) Shut() bool { return gate != nil && gate.shut }

// Shut says that nothing behind gate stands any more, for a reason that people
// are shown. What is in flight fails, and that does not count.
func (g *Graph) Shut(gate *Gate, reason string) {
	gate.shut, gate.reason = true, reason
	for _, n := range g.behind(gate) {
		g.Lost(n.key)
		g.forfeit(n)
		g.excuse(n)
	}
}

// excuse forgets that an operation failed.
func (g *Graph) excuse(n *Node) {
	g.save(n)
	n.err, n.rest = nil, false
	g.touch(n)
}

// Open lets what is behind gate run again.
func (g *Graph) Open(gate *Gate) {
	gate.shut = false
	for _, n := range g.behind(gate) {
		g.touch(n)
		g.push(n)
	}
}

func (g *Graph) behind(gate *Gate) (out []*Node) {
	for kind, shelf := range g.shelves {
		if kind.Gate() == gate {
			out = append(out, shelf.nodes...)
		}
	}
	sortByKey(out)
	return out
}

// gate returns the gate before n, or nil.
func (n *Node) gate() *Gate {
	v := n.want
	if v == nil {
		v = n.have
	}
	if v == nil || v.Kind == nil {
		return nil
	}
	return v.Kind.Gate()
}

// shut says that n is behind a gate that is shut.
func (n *Node) shut() bool {
	return n.gate().Shut()
}
