package components

import "slices"

// A Search finds out which nodes reach a marked one. It keeps what it has found, so the graph must not change meanwhile.
type Search[N comparable] struct {
	Next    func(N) []N // where to go from a node
	Marked  func(N) bool
	Most    int  // the number of steps from node to node to look at
	Unknown bool // whether the zero value of N counts as marked, and each node beyond Most

	steps int
	found map[N]bool // whether a node reaches a marked one; false: not yet, for those of trail
	trail []N        // of the present search
}

// Reaches reports whether n is marked, or reaches a node that is.
func (s *Search[N]) Reaches(n N) bool {
	if s.found == nil {
		s.found = map[N]bool{}
	}
	s.trail = s.trail[:0]
	reaches := s.visit(n)
	for _, m := range s.trail {
		if reaches && !s.found[m] {
			delete(s.found, m) // it was left before all of its next ones were seen
		}
	}
	return reaches
}

func (s *Search[N]) visit(n N) bool {
	var none N
	if n == none || s.steps > s.Most {
		return s.Unknown
	}
	if reaches, seen := s.found[n]; seen {
		return reaches
	}
	s.trail = append(s.trail, n)
	s.found[n] = s.Marked(n)
	if !s.found[n] {
		next := s.Next(n)
		s.steps += len(next) // all of them: to find them may take longer than to visit the first
		s.found[n] = slices.ContainsFunc(next, s.visit)
	}
	return s.found[n]
}
