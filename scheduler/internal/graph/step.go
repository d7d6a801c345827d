package graph

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
