package graph

// A step is one change of a list of edges. It can be undone while the list has not changed
// since.
type step struct {
	edge    *edge
	to      *Node     // its list of incoming edges changed; nil: waitlists changed
	waiters *[]waiter // the entries in the waitlists
	pos     int32     // where the edge was
	added   bool
}

// undo reverses one step. Steps are undone last first, so positions in lists are right
// again.
func (s step) undo(g *Graph) {
	switch {
	case s.to != nil && s.to.life == planned: // the list vanishes with the node
		s.restoreEdge()
	case s.to != nil && s.added:
		s.detach()
	case s.to != nil:
		s.attach()
	case s.added:
		s.stopAwaiting(g)
	default:
		s.await(g)
	}
}

// restoreEdge restores the edge alone.
func (s step) restoreEdge() {
	if s.added {
		s.edge.to, s.edge.pos = nil, 0
	} else {
		s.edge.to, s.edge.pos = s.to, s.pos
	}
}

// detach removes the edge, which is the last in its list.
func (s step) detach() {
	last := len(s.to.in) - 1
	s.to.in[last] = nil
	s.to.in = s.to.in[:last]
	s.edge.to, s.edge.pos = nil, 0
}

// attach puts the edge back in its place. The edge that is there now was the last.
func (s step) attach() {
	s.to.in = append(s.to.in, s.edge)
	last := int32(len(s.to.in) - 1)
	s.to.in[last], s.to.in[s.pos] = s.to.in[s.pos], s.edge
	s.to.in[last].pos = last
	s.edge.to, s.edge.pos = s.to, s.pos
}

// stopAwaiting takes the dependency off the waitlists, last first.
func (s step) stopAwaiting(g *Graph) {
	for i := len(*s.waiters) - 1; i >= 0; i-- {
		g.removeWaiter(&(*s.waiters)[i])
	}
	s.edge.waiters = nil
}

// await puts the dependency back at its former positions.
func (s step) await(g *Graph) {
	for i := len(*s.waiters) - 1; i >= 0; i-- {
		spot := &(*s.waiters)[i]
		b := spot.list
		g.waitlists[b.folder] = b
		b.waiters = append(b.waiters, spot)
		last := len(b.waiters) - 1
		b.waiters[last], b.waiters[spot.pos] = b.waiters[spot.pos], spot
		b.waiters[last].pos = last
	}
	s.edge.waiters = s.waiters
}
