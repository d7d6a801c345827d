package drawing

import (
	"iter"
	"strings"

	"github.com/keyplane/keyplane/northbound/rest/wire"
)

// A graphBuilder turns nodes into boxes and edges. It exists for one picture.
type graphBuilder struct {
	index map[string]int // index of each box, by key or by missing dependency
	// Edges that are in g already: two relations between the same values are one arrow.
	drawn map[Edge]bool
	g     Graph
}

// Values returns the graph of nodes, which have a key each: a box for each value and for each missing dependency, and
// an edge for each relation. The boxes of changed keys are bold.
func Values(nodes iter.Seq[wire.Node], changed map[string]bool) Graph {
	s := graphBuilder{index: map[string]int{}, drawn: map[Edge]bool{}}
	var targets [][]wire.Target // by box; all else of a node can be dropped
	for n := range nodes {
		s.box(n.Key, boxOf(n, changed[n.Key]))
		targets = append(targets, n.Targets)
	}
	for from := range targets {
		for _, t := range targets[from] {
			s.edges(from, t)
		}
	}
	return s.g
}

// box adds a box unless there is one with this name, and returns its index.
func (s *graphBuilder) box(name string, b Box) int {
	// A missing value that several others need is one box.
	i, ok := s.index[name]
	if !ok {
		i = len(s.g.Boxes)
		s.index[name] = i
		s.g.Boxes = append(s.g.Boxes, b)
	}
	return i
}

// edge adds an edge once, even if several relations lead to it.
func (s *graphBuilder) edge(e Edge) {
	if !s.drawn[e] {
		s.drawn[e] = true
		s.g.Edges = append(s.g.Edges, e)
	}
}

// edges draws one relation of a box. A derived value points to its base value,
// because it depends on it. A dependency without a matching key points to a box for
// the missing value.
func (s *graphBuilder) edges(from int, t wire.Target) {
	if t.Relation == "derives" {
		for _, key := range t.MatchingKeys {
			if to, ok := s.index[key]; ok {
				s.edge(Edge{From: to, To: from, Dashed: true})
			}
		}
		return
	}
	for _, key := range t.MatchingKeys {
		if to, ok := s.index[key]; ok {
			s.edge(Edge{From: from, To: to})
		}
	}
	if len(t.MatchingKeys) > 0 {
		return
	}
	name := t.ExpectedKey
	if name == "" {
		name = t.Label
	}
	missing := s.box(name, Box{Label: name, Tip: t.Label + ": missing", Fill: "#ffffff", Dashed: true})
	s.edge(Edge{From: from, To: missing})
}

// boxOf returns the box of a node. Unavailable values are dashed, changed ones bold. The
// tip, which browsers show under the pointer, has the error.
func boxOf(n wire.Node, changed bool) Box {
	state, _ := n.Flags.Get(wire.ValueState)
	err, _ := n.Flags.Get(wire.Error)
	_, unavailable := n.Flags.Get(wire.Unavailable)
	tip := strings.TrimSpace(n.Key + "\n" + state + "\n" + err)
	return Box{Label: n.Key, Tip: tip, Fill: colorOf(state), Dashed: unavailable, Bold: changed}
}

// colorOf returns the fill colour of a state: green applied, blue obtained, yellow
// waiting, grey unimplemented, red failed.
func colorOf(state string) string {
	switch state {
	case "CONFIGURED":
		return "#c8e6c9"
	case "OBTAINED", "DISCOVERED":
		return "#bbdefb"
	case "PENDING", "MISSING":
		return "#fff9c4"
	case "UNIMPLEMENTED":
		return "#e0e0e0"
	default:
		return "#ffcdd2"
	}
}
