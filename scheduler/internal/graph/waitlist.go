package graph

import (
	"iter"
	"strings"

	"github.com/tidwall/btree"
)

// provider returns an available node that meets an any-of dependency, or nil.
func (g *Graph) provider(d *Dep) *Node {
	if d.Any == nil {
		return nil
	}
	for _, key := range d.Any.Keys {
		if n := g.nodes[key]; n != nil && n.available() {
			return n
		}
	}
	for _, prefix := range d.Any.prefixes() {
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
	if g.available == nil {
		g.available = &btree.Map[string, *Node]{}
		for key, n := range g.nodes {
			if n.available() {
				g.available.Set(key, n)
			}
		}
	}
	return func(yield func(*Node) bool) {
		g.available.Ascend(prefix, func(k string, n *Node) bool { return strings.HasPrefix(k, prefix) && yield(n) })
	}
}

// await puts an unmet any-of dependency on the waitlist of each folder in which a key
// could meet it. A new key then looks at the lists of its own folders only.
func (g *Graph) await(e *edge) {
	if !e.anyOf() || e.waiters != nil {
		return
	}
	prefixes := e.dep.beginnings()
	spots := make([]waiter, len(prefixes))
	for i, prefix := range prefixes {
		b := g.waitlist(prefix[:strings.LastIndexByte(prefix, '/')+1])
		spots[i] = waiter{e: e, list: b, pos: len(b.waiters)}
		b.waiters = append(b.waiters, &spots[i])
	}
	e.waiters = &spots
	g.logStep(step{edge: e, waiters: e.waiters, added: true})
}

// waitlist returns the list of a folder, and makes it at first use.
func (g *Graph) waitlist(folder string) *waitlist {
	b := g.waitlists[folder]
	if b == nil {
		b = &waitlist{folder: folder}
		g.waitlists[folder] = b
	}
	return b
}

// stopAwaiting takes a dependency off its waitlists. It does nothing if it is on none.
func (g *Graph) stopAwaiting(e *edge) {
	if e.waiters == nil {
		return
	}
	g.logStep(step{edge: e, waiters: e.waiters})
	for i := range *e.waiters {
		g.removeWaiter(&(*e.waiters)[i])
	}
	e.waiters = nil
}

// removeWaiter removes s from its waitlist.
func (g *Graph) removeWaiter(s *waiter) {
	last := len(s.list.waiters) - 1
	s.list.waiters[s.pos] = s.list.waiters[last]
	s.list.waiters[s.pos].pos = s.pos
	s.list.waiters[last] = nil
	if s.list.waiters = s.list.waiters[:last]; last == 0 {
		delete(g.waitlists, s.list.folder)
	}
}
