package rest

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/northbound/rest/internal/endpoint"
	"github.com/keyplane/keyplane/northbound/rest/internal/reply"

	"github.com/keyplane/keyplane/northbound/rest/internal/drawing"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
)

// graph answers a picture of all values or, with txn, of the values that a
// transaction changed and their neighbours, as of its end.
func (h *handler) graph(w http.ResponseWriter, _ *http.Request, q endpoint.Query) error {
	format, err := q.Choice("format", "svg", "png", "dot", "raw")
	if err != nil {
		return err
	}
	seq, one, err := q.Number("txn")
	if err != nil {
		return err
	}
	s := graphBuilder{index: map[string]int{}, drawn: map[drawing.Edge]bool{}}
	if one {
		r, err := h.record(seq)
		if err != nil {
			return err
		}
		h.selectNodes(&s, r)
	} else {
		s.nodes = slices.Collect(h.nodes(h.timelines(all), time.Now()))
	}
	return draw(w, s.graph(), format)
}

// draw writes the picture. It is complete in memory first, because an error must
// still become the answer.
func draw(w http.ResponseWriter, g drawing.Graph, format string) error {
	var out bytes.Buffer
	var err error
	contentType := "text/vnd.graphviz; charset=UTF-8"
	switch format {
	case "svg":
		contentType = "image/svg+xml"
		err = drawing.Layout(g).SVG(&out)
	case "png":
		contentType = "image/png"
		err = drawing.Layout(g).PNG(&out)
	default:
		err = g.DOT(&out)
	}
	if err != nil {
		return err
	}
	reply.Header(w, contentType, http.StatusOK)
	_, _ = io.Copy(w, &out) // an error means that the client has disconnected
	return nil
}

// selectNodes selects the nodes that a record changed, and their neighbours in both
// directions.
func (h *handler) selectNodes(s *graphBuilder, r *scheduler.Record) {
	s.changed = map[string]bool{}
	for _, op := range r.Executed {
		s.changed[op.Key] = true
	}
	nodes := slices.Collect(h.nodes(h.timelines(all), r.Stop))
	// In both directions: a neighbour may depend on a changed value, or the other way
	// round.
	near := map[string]bool{}
	for _, n := range nodes {
		for _, key := range neighbours(n) {
			near[key] = near[key] || s.changed[n.Key]
			near[n.Key] = near[n.Key] || s.changed[key]
		}
	}
	s.nodes = slices.DeleteFunc(nodes, func(n wire.Node) bool { return !s.changed[n.Key] && !near[n.Key] })
}

// neighbours returns the keys of the values that n relates to.
func neighbours(n wire.Node) (out []string) {
	for _, t := range n.Targets {
		out = append(out, t.MatchingKeys...)
	}
	return out
}

// A graphBuilder turns nodes into boxes and edges.
type graphBuilder struct {
	nodes   []wire.Node
	changed map[string]bool // changed by the transaction
	index   map[string]int  // index of each box, by key or by missing dependency
	drawn   map[drawing.Edge]bool
	g       drawing.Graph
}

// graph returns the finished graph.
func (s *graphBuilder) graph() drawing.Graph {
	for _, n := range s.nodes {
		s.box(n.Key, boxOf(n, s.changed[n.Key]))
	}
	for _, n := range s.nodes {
		for _, t := range n.Targets {
			s.edges(s.index[n.Key], t)
		}
	}
	return s.g
}

// box adds a box unless there is one with this name, and returns its index.
func (s *graphBuilder) box(name string, b drawing.Box) int {
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
func (s *graphBuilder) edge(e drawing.Edge) {
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
				s.edge(drawing.Edge{From: to, To: from, Dashed: true})
			}
		}
		return
	}
	for _, key := range t.MatchingKeys {
		if to, ok := s.index[key]; ok {
			s.edge(drawing.Edge{From: from, To: to})
		}
	}
	if len(t.MatchingKeys) > 0 {
		return
	}
	name := t.ExpectedKey
	if name == "" {
		name = t.Label
	}
	missing := s.box(name, drawing.Box{Label: name, Tip: t.Label + ": missing", Fill: "#ffffff", Dashed: true})
	s.edge(drawing.Edge{From: from, To: missing})
}

// boxOf returns the box of a node. Unavailable values are dashed, changed ones bold.
func boxOf(n wire.Node, changed bool) drawing.Box {
	state, _ := n.Flags.Get(wire.ValueState)
	err, _ := n.Flags.Get(wire.Error)
	_, unavailable := n.Flags.Get(wire.Unavailable)
	tip := strings.TrimSpace(n.Key + "\n" + state + "\n" + err)
	return drawing.Box{Label: n.Key, Tip: tip, Fill: colorOf(state), Dashed: unavailable, Bold: changed}
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
