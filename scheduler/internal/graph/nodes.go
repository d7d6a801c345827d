package graph

import (
	"iter"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/scheduler/internal/queue"
)

// node returns the node of key. A new node has no state, but edges can end there.
func (g *Graph) node(key string) *Node {
	n := g.Node(key)
	switch {
	case n != nil:
	case g.planning():
		n = &Node{key: key, life: planned, saved: true}
		g.journal.fresh[key] = n
		g.Pace()
	default:
		n = &Node{key: key}
		g.nodes.Add(n)
	}
	return n
}

// forget removes n from the graph if it is unused and nothing refers to it.
func (g *Graph) forget(n *Node) {
	if n.running != idle || n.queued || n.Held() {
		return
	}
	if n.own.refs == 0 {
		n.own = version{}
	}
	if !n.unused() {
		return
	}
	g.nodes.Delete(n.key)
	g.removeFromKind(n)
	g.setRenewed(n, false)
	delete(g.doubtful, n)
	n.life = dropped
}

// newVersion returns v as a version of n. It uses n.own if that is free; forget frees it.
func (g *Graph) newVersion(n *Node, v *Value) *version {
	w := &n.own
	if w.node != nil {
		w = &version{}
	}
	if n.life == planned {
		w.saved = true
	} else {
		g.editVersion(w)
	}
	w.Value, w.node = v, n
	return w
}

// Node returns the node of key, or nil.
func (g *Graph) Node(key string) *Node {
	n := g.nodes.Get(key)
	if n == nil && g.planning() {
		n = g.journal.fresh[key]
	}
	return n
}

// Wants reports that key has a desired value.
func (g *Graph) Wants(key string) bool {
	n := g.Node(key)
	return n != nil && n.desired != nil
}

// Len is the number of nodes, including those that are only dependencies.
func (g *Graph) Len() int {
	if g.planning() {
		return g.nodes.Len() + len(g.journal.fresh)
	}
	return g.nodes.Len()
}

// Nodes yields all nodes in no particular order.
func (g *Graph) Nodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for n := range g.nodes.All() {
			if !yield(n) {
				return
			}
		}
		if !g.planning() {
			return
		}
		for _, n := range g.journal.fresh {
			if !yield(n) {
				return
			}
		}
	}
}

// Derived yields the desired and the actual nodes derived from n.
func (g *Graph) Derived(n *Node) iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		if n.desired != nil {
			for _, d := range n.desired.Derived() {
				if dn := g.Node(d.Key); dn != nil && dn.base == n && !yield(dn) {
					return
				}
			}
		}
		for _, dn := range n.actualParts() {
			if dn.desired == nil && !yield(dn) {
				return
			}
		}
	}
}

// Expect makes room for n keys, so that adding them moves no memory. A plan that can be
// interrupted does not get room: to make it is one long step.
func (g *Graph) Expect(n int) {
	if g.planning() && g.journal.pace != nil {
		return
	}
	g.nodes.Grow(n)
	g.touched = slices.Grow(g.touched, n)
	g.dirty.Grow(n)
}

// sortedBy returns the matching nodes sorted by key, so that operations have a predictable
// order.
func (g *Graph) sortedBy(is func(*Node) bool) (out []*Node) {
	for n := range g.Nodes() {
		g.Pace()
		if is(n) {
			out = append(out, n)
		}
	}
	g.sortByKey(out)
	return out
}

// sortByKey sorts nodes, and lets others take their turn in between.
func (g *Graph) sortByKey(nodes []*Node) {
	slices.SortFunc(nodes, func(a, b *Node) int {
		g.Pace()
		return strings.Compare(a.key, b.key)
	})
}

// push queues a node for classification, once.
func (g *Graph) push(n *Node) {
	if !n.queued {
		g.bookkeep(n)
		n.queued = true
		g.dirty.Push(candidate{n, g.Cause})
	}
}

// touch puts a node on the list of those whose status may have changed.
func (g *Graph) touch(n *Node) {
	g.bookkeep(n)
	n.News = true
	if !n.touched {
		n.touched = true
		g.touched = append(queue.Doubled(g.touched), n)
	}
}

// Touched yields each node that changed since the last call, in the order of their first
// changes. Nodes that are unused are forgotten afterwards.
func (g *Graph) Touched() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for i := 0; i < len(g.touched); i++ {
			n := g.touched[i]
			n.touched = false
			if !yield(n) {
				g.touched = append(g.touched[:0], g.touched[i+1:]...)
				return
			}
			g.forget(n)
		}
		g.touched = queue.Cleared(g.touched)
	}
}

// ChangedLen is the number of nodes that Touched would yield.
func (g *Graph) ChangedLen() int { return len(g.touched) }

// Changed yields the nodes of the next Touched, without the first ones.
func (g *Graph) Changed(after int) iter.Seq[*Node] { return slices.Values(g.touched[after:]) }
