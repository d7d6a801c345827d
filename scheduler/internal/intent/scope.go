package intent

import (
	"iter"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// A Scope tells which nodes of a graph a transaction concerns: those of the keys that it
// declares or retries, the nodes derived from them, and with Replace also the nodes whose desired
// values it removes because it does not name them. One goroutine owns it. The zero value concerns no node.
type Scope struct {
	Keys    iter.Seq[string] // nil: none
	Replace bool

	set map[string]bool // of Keys; nil: not computed yet, because most transactions never need it
}

// Concerns reports whether the transaction declares, retries or removes n or its base.
func (s *Scope) Concerns(n *graph.Node) bool {
	if s.set == nil {
		s.set = map[string]bool{}
		for key := range s.named() {
			s.set[key] = true
		}
	}
	for ; n != nil; n = n.Base() {
		if s.set[n.Key()] || s.Replace && n.Desired() == nil && n.Base() == nil {
			return true
		}
	}
	return false
}

// Any reports whether is returns true for a node of Keys, or for one derived from it.
func (s *Scope) Any(g *graph.Graph, is func(*graph.Node) bool) bool {
	for key := range s.named() {
		if anyOf(g, g.Node(key), is) {
			return true
		}
	}
	return false
}

// named returns Keys, which may be empty.
func (s *Scope) named() iter.Seq[string] {
	if s.Keys == nil {
		return func(func(string) bool) {}
	}
	return s.Keys
}

// anyOf is Any for one node, or nil.
func anyOf(g *graph.Graph, n *graph.Node, is func(*graph.Node) bool) bool {
	if n == nil {
		return false
	}
	if is(n) {
		return true
	}
	for part := range g.Derived(n) {
		if anyOf(g, part, is) {
			return true
		}
	}
	return false
}
