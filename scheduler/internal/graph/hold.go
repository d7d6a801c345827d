package graph

import "github.com/keyplane/keyplane/scheduler/internal/link"

// holds reports that the next operation of n must wait, although it is possible. A plan
// assumes that all read-backs have ended, and that there is room.
func (g *Graph) holds(n *Node, next link.Direction) bool {
	return !g.planning() && n.connection().Holds(next)
}

// willBeRead reports that a connection is being read back, so that its kinds which are unknown may become known. Their
// operations wait for that. A plan does not.
func (g *Graph) willBeRead(c *Connection) bool {
	return c != nil && c.Phase() == link.Reading && !g.planning()
}

// hold keeps a node back until its connection lets its operation begin. A node that is in the other list leaves it.
func (g *Graph) hold(n *Node, next link.Direction) {
	if n.held == next {
		return
	}
	if !n.Held() {
		g.holding++
	}
	n.held = next
	g.held.Add(n.connection(), next, g.Cause, n)
}

// waitsForRoom reports that held nodes wait for nothing but their turn, or room.
func (g *Graph) waitsForRoom(next link.Direction) bool { return !g.planning() && g.held.Turn(next) }

// isCrowded reports that nodes of the connection of n wait for room only.
func (g *Graph) isCrowded(n *Node) bool { return !g.planning() && n.connection().Crowded() }

// nextHeld takes a node out of a list of held nodes if its operation need not wait any more. It returns nil if there is
// none.
func (g *Graph) nextHeld(next link.Direction) *Node {
	if g.planning() {
		return nil
	}
	cause, n, ok := g.held.Next(next, func(n *Node) bool { return n.held == next })
	if ok {
		g.Cause = cause
		g.letGo(n)
	}
	return n
}

// letGo marks n as not held. A plan does not: it only assumes that n need not wait.
func (g *Graph) letGo(n *Node) {
	if n.Held() && !g.planning() {
		n.held = link.None
		g.holding--
	}
}

// dropHeld lets all held nodes of c go, and classifies them again.
func (g *Graph) dropHeld(c *Connection) {
	for _, of := range []link.Direction{link.Delete, link.Apply} {
		for list := c.Waiting(of); list.Len() > 0; {
			cause, n := list.Pop()
			if n.held == of {
				g.Cause = cause
				g.letGo(n)
				g.Freed = true
				g.push(n)
				g.touch(n) // it waits for another reason now
			}
		}
	}
	g.searchAgain()
}

// searchAgain has all blocked nodes searched for cycles again: none was formed while one of its members was read back, or unknown.
func (g *Graph) searchAgain() {
	g.unsearched = true
	for _, n := range g.blocked {
		n.blocked = blockedNew
	}
}

// Awaiting reports that a read-back or a detached operation has not ended, or that operations wait for room. Afterwards more
// may become possible without any other change.
func (g *Graph) Awaiting() bool { return g.reading+g.holding+g.detached > 0 }
