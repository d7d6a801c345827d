package link

import "slices"

// Held are the nodes of all connections whose operations are held. The zero value has none.
type Held[N any] struct {
	at []*Connection[N] // they have held nodes, or had some
}

// Add holds a node of c, for an owner that takes turns with others.
func (h *Held[N]) Add(c *Connection[N], d Direction, owner uint8, n N) {
	if !slices.Contains(h.at, c) {
		h.at = append(h.at, c)
	}
	c.Waiting(d).Push(owner, n)
}

// Turn reports that some nodes wait for nothing but their turn, or room.
func (h *Held[N]) Turn(d Direction) bool {
	return slices.ContainsFunc(h.at, func(c *Connection[N]) bool { return c.waits(d) })
}

// Next takes out a node whose operation need not wait any more. Those that are not held any more, as still says, are dropped.
func (h *Held[N]) Next(d Direction, still func(N) bool) (owner uint8, n N, ok bool) {
	for i := 0; i < len(h.at); {
		c := h.at[i]
		for list := c.Waiting(d); list.Len() > 0 && !c.Obstructs(d) && c.HasRoom(); {
			if owner, n = list.Pop(); still(n) {
				return owner, n, true
			}
		}
		if c.HoldsAny() {
			i++
		} else {
			h.at = slices.Delete(h.at, i, i+1)
		}
	}
	var none N
	return 0, none, false
}
