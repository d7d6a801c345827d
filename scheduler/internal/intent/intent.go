// Package intent makes the changes of a transaction the desired state of a graph.
//
//	a change                                     what happens to its key
//	with a value                                 the value is desired
//	without value and error                      nothing is desired
//	refused, and Keep, and a value is desired    it stays desired
//	refused otherwise                            nothing is desired, but an actual value is spared
//
// A refused change also gives its key the error. It runs no operation.
package intent

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// A Change is the new intent for one key.
type Change struct {
	Key   string
	Value *graph.Value // the desired value; nil: none
	Err   error        // the reason why the newest intent cannot be followed; nil: it can
	Keep  bool         // with Err: the present desired value stays
}

// Changes are those of one transaction, in their order. If several have one key, the last one
// counts.
type Changes struct {
	All     iter.Seq[Change]
	Count   int  // of All
	Replace bool // all other values are no longer desired
}

// Apply makes the changes the desired state of g. It paces g, because a plan of a large
// transaction must be interruptible.
func (cs Changes) Apply(g *graph.Graph) {
	if cs.Replace {
		cs.unwantAbsent(g)
	}
	g.Expect(cs.Count)
	for c := range cs.All {
		g.Pace()
		c.apply(g)
	}
	if cs.Replace {
		g.Complete()
	}
}

// apply makes one change. A refused change keeps the desired value only if its key had
// one; otherwise it spares the actual value, which may be the last valid one from before a
// restart.
func (c Change) apply(g *graph.Graph) {
	switch {
	case c.Value != nil:
		g.Want(c.Value)
	case c.unwants(g):
		g.Unwant(c.Key)
	case c.Keep && g.Wants(c.Key): // it stays
	default:
		g.Spare(c.Key)
	}
	if c.Err != nil {
		g.Reject(c.Key, c.Err)
	}
}

// unwants reports whether c removes the desired value of its key.
func (c Change) unwants(g *graph.Graph) bool {
	return c.Value == nil && (c.Err == nil || !c.Keep && g.Wants(c.Key))
}

// Unwanted yields the keys whose desired values the changes name and remove.
func (cs Changes) Unwanted(g *graph.Graph) iter.Seq[string] {
	return func(yield func(string) bool) {
		for c := range cs.All {
			if c.unwants(g) && !yield(c.Key) {
				return
			}
		}
	}
}

// unwantAbsent removes the desired values that are not among the changes. Their order is that
// of their keys, so that a plan is the same each time.
func (cs Changes) unwantAbsent(g *graph.Graph) {
	others := map[string]bool{}
	for n := range g.Nodes() {
		g.Pace()
		if n.Base() == nil && (n.Desired() != nil || n.Err() != nil) {
			others[n.Key()] = true
		}
	}
	for c := range cs.All {
		g.Pace()
		delete(others, c.Key)
	}
	sorted := slices.SortedFunc(maps.Keys(others), func(a, b string) int {
		g.Pace()
		return strings.Compare(a, b)
	})
	for _, key := range sorted {
		g.Unwant(key)
	}
}
