package graph

import (
	"iter"

	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// provider returns an available node that meets an any-of dependency, or nil.
func (g *Graph) provider(d *value.Dep) *Node {
	if d.Any == nil {
		return nil
	}
	for _, key := range d.Any.Keys {
		if n := g.Node(key); n != nil && n.available() {
			return n
		}
	}
	for _, prefix := range d.Any.AllPrefixes() {
		for n := range g.availableUnder(prefix) {
			if d.Any.Match == nil || d.Any.Match(n.key) {
				return n
			}
		}
	}
	return nil
}

// availableUnder yields the available nodes whose key has the prefix, in order.
func (g *Graph) availableUnder(prefix string) iter.Seq[*Node] {
	return g.available.Under(prefix, func(yield func(string, *Node) bool) {
		for n := range g.Nodes() {
			if n.available() && !yield(n.key, n) {
				return
			}
		}
	})
}

// await puts an unmet any-of dependency on the waitlist of each folder in which a key
// could meet it. A new key then looks at the lists of its own folders only.
func (g *Graph) await(e *edge) {
	if !e.anyOf() || g.waiting[e] != nil {
		return
	}
	places := g.waitlists.Add(e, e.dep.Folders())
	g.waiting[e] = places
	if g.planning() {
		g.logUndo(func() {
			g.waitlists.Remove(places)
			delete(g.waiting, e)
		})
	}
}

// stopAwaiting takes a dependency off its waitlists. It does nothing if it is on none.
func (g *Graph) stopAwaiting(e *edge) {
	if !e.anyOf() {
		return
	}
	places := g.waiting[e]
	if places == nil {
		return
	}
	if g.planning() {
		g.logUndo(func() {
			g.waitlists.Restore(places)
			g.waiting[e] = places
		})
	}
	g.waitlists.Remove(places)
	delete(g.waiting, e)
}
