package graph

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/link"
)

// holds reports that the next operation of n must wait, although it is possible. A plan
// assumes that all read-backs have ended, and that there is room.
func (g *Graph) holds(n *Node, next link.Direction) bool {
	c := n.connection()
	return c != nil && g.journal == nil && (c.Obstructs(next) || c.Waiting(next).Len() > 0 || !c.HasRoom())
}

// willBeRead reports that the kind of n, which is unknown, may become known by a read-back that has begun.
// The operations of n wait for that. A plan does not.
func (g *Graph) willBeRead(n *Node) bool {
	c := n.connection()
	return c != nil && c.Phase() == link.Reading && g.journal == nil
}

// hold keeps a node back until its connection lets its operation begin. A node that is in the other list leaves it.
func (g *Graph) hold(n *Node, next link.Direction) {
	switch {
	case n.held == next:
		return
	case !n.Held():
		g.holding++
	}
	n.held = next
	c := n.connection()
	if !slices.Contains(g.holders, c) {
		g.holders = append(g.holders, c)
	}
	c.Waiting(next).Push(g.Cause, n)
}

// waitsForRoom reports that held nodes wait for nothing but their turn, or room.
func (g *Graph) waitsForRoom(next link.Direction) bool {
	return g.journal == nil && slices.ContainsFunc(g.holders, func(c *Connection) bool { return c.Waiting(next).Len() > 0 && !c.Obstructs(next) })
}

// crowded reports that some held nodes wait for room only. Then operations are running, and more will be possible.
func (g *Graph) crowded() bool { return g.waitsForRoom(link.Delete) || g.waitsForRoom(link.Apply) }

// nextHeld takes a node out of a list of held nodes if its operation need not wait any more. It returns nil if there is
// none.
func (g *Graph) nextHeld(next link.Direction) *Node {
	for i := 0; g.journal == nil && i < len(g.holders); {
		c := g.holders[i]
		for list := c.Waiting(next); list.Len() > 0 && !c.Obstructs(next) && c.HasRoom(); {
			cause, n := list.Pop()
			if n.held == next {
				g.Cause = cause
				g.letGo(n)
				return n
			}
		}
		if c.HoldsAny() {
			i++
		} else {
			g.holders = slices.Delete(g.holders, i, i+1)
		}
	}
	return nil
}

// letGo marks n as not held. A plan does not: it only assumes that n need not wait.
func (g *Graph) letGo(n *Node) {
	if n.Held() && g.journal == nil {
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
