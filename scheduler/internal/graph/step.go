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
		g.waitlists.Remove(s.waiters)
		delete(g.waiting, s.edge)
	default:
		g.waitlists.Restore(s.waiters)
		g.waiting[s.edge] = s.waiters
	}
}
