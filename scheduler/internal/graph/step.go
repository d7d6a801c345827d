package graph

// A step is one change of a list of edges, which can be taken back while nothing else
// has changed in that list since.
type step struct {
	edge  *edge
	to    *Node   // whose list of incoming edges changed; nil: those of buckets
	spots *[]spot // in those
	pos   int32   // where the edge was
	added bool
}

func (s step) undo(g *Graph) {
	switch {
	case s.to != nil && s.added:
		s.detach()
	case s.to != nil:
		s.attach()
	case s.added:
		s.deafen(g)
	default:
		s.listen(g)
	}
}

// detach takes the edge off, which is the last.
func (s step) detach() {
	last := len(s.to.in) - 1
	s.to.in[last] = nil
	s.to.in = s.to.in[:last]
	s.edge.to, s.edge.pos = nil, 0
}

// attach puts the edge where it was. What is there was the last.
func (s step) attach() {
	s.to.in = append(s.to.in, s.edge)
	last := int32(len(s.to.in) - 1)
	s.to.in[last], s.to.in[s.pos] = s.to.in[s.pos], s.edge
	s.to.in[last].pos = last
	s.edge.to, s.edge.pos = s.to, s.pos
}

func (s step) deafen(g *Graph) {
	for i := len(*s.spots) - 1; i >= 0; i-- {
		g.leave(&(*s.spots)[i])
	}
	s.edge.spots = nil
}

func (s step) listen(g *Graph) {
	for i := len(*s.spots) - 1; i >= 0; i-- {
		spot := &(*s.spots)[i]
		b := spot.b
		g.buckets[b.folder] = b
		b.list = append(b.list, spot)
		last := len(b.list) - 1
		b.list[last], b.list[spot.pos] = b.list[spot.pos], spot
		b.list[last].pos = last
	}
	s.edge.spots = s.spots
}
