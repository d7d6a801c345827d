package graph

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/queue"
)

// holds reports that the next operation of n must wait, although it is possible. A plan
// assumes that all read-backs have ended, and that there is room.
func (g *Graph) holds(n *Node, next action) bool {
	return g.isObstructed(n, next) || g.journal == nil && !n.connection().hasRoom()
}

// isObstructed reports that the next operation of n must wait for something else than room.
func (g *Graph) isObstructed(n *Node, next action) bool {
	c := n.connection()
	return c != nil && g.journal == nil && (c.obstructs(next) || c.held(next).Len() > 0)
}

// obstructs reports that no operation of a kind can begin on the connection before a read-back or detached operations have
// ended. Nor can anything be applied while a deletion waits: more and more could be applied before it.
func (c *Connection) obstructs(next action) bool {
	if next == actionDelete {
		return c.phase == reading || c.applying > 0
	}
	return c.phase == reading || c.deleting > 0 || c.heldDeletes.Len() > 0
}

// hasRoom reports that one more operation may run. A nil Connection always has room.
func (c *Connection) hasRoom() bool {
	return c == nil || c.Limit == 0 || c.flying+c.applying+c.deleting < c.Limit
}

// held returns the list of held nodes whose next step is an action.
func (c *Connection) held(next action) *queue.Fair[*Node] {
	if next == actionDelete {
		return &c.heldDeletes
	}
	return &c.heldApplies
}

// holdsAny reports that there are nodes in the lists.
func (c *Connection) holdsAny() bool { return c.heldDeletes.Len()+c.heldApplies.Len() > 0 }

// willBeRead reports that the kind of n, which is unknown, may become known by a read-back that has begun.
// The operations of n wait for that. A plan does not.
func (g *Graph) willBeRead(n *Node) bool {
	c := n.connection()
	return c != nil && c.phase == reading && g.journal == nil
}

// hold keeps a node back until its connection lets its operation begin. A node that is in the other list leaves it.
func (g *Graph) hold(n *Node, next action) {
	switch {
	case n.held == next:
		return
	case !n.Held():
		g.holding++
	}
	n.held = next
	c := n.connection()
	if !c.holdsAny() {
		g.holders = append(g.holders, c)
	}
	c.held(next).Push(g.Cause, n)
}

// waitsForRoom reports that held nodes wait for nothing but their turn, or room.
func (g *Graph) waitsForRoom(next action) bool {
	if g.journal != nil {
		return false
	}
	for _, c := range g.holders {
		if c.held(next).Len() > 0 && !c.obstructs(next) {
			return true
		}
	}
	return false
}

// crowded reports that some held nodes wait for room only. Then operations are running, and more will be possible.
func (g *Graph) crowded() bool { return g.waitsForRoom(actionDelete) || g.waitsForRoom(actionApply) }

// nextHeld takes a node out of a list of held nodes if its operation need not wait any more. It returns nil if there is
// none.
func (g *Graph) nextHeld(next action) *Node {
	if g.journal != nil {
		return nil
	}
	for i := 0; i < len(g.holders); {
		c := g.holders[i]
		for list := c.held(next); list.Len() > 0 && !c.obstructs(next) && c.hasRoom(); {
			cause, n := list.Pop()
			if n.held == next {
				g.Cause = cause
				g.letGo(n)
				return n
			}
		}
		if c.holdsAny() {
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
		n.held = actionNone
		g.holding--
	}
}

// dropHeld lets all held nodes of c go, and classifies them again.
func (g *Graph) dropHeld(c *Connection) {
	for _, next := range []action{actionDelete, actionApply} {
		for list := c.held(next); list.Len() > 0; {
			cause, n := list.Pop()
			if n.held == next {
				g.Cause = cause
				g.letGo(n)
				g.push(n)
				g.touch(n) // it waits for another reason now
			}
		}
	}
	g.searchAgain()
}

// searchAgain has all blocked nodes searched for cycles again: none was formed while one of its members had to wait.
func (g *Graph) searchAgain() {
	for _, n := range g.blocked {
		n.blocked = blockedNew
	}
}

// Awaiting reports that a read-back or a detached operation has not ended, or that operations wait for room. Afterwards more
// may become possible without any other change.
func (g *Graph) Awaiting() bool { return g.reading+g.holding+g.detached > 0 }
