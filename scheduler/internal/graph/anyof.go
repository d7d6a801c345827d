package graph

import (
	"iter"
	"strings"

	"github.com/tidwall/btree"
)

// A waitlist has the unmet any-of edges of one folder.
type waitlist struct {
	folder  string
	waiters []*waiter
}

// A waiter is the entry of an edge in a waitlist.
type waiter struct {
	e    *edge
	list *waitlist
	pos  int
}

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

// replaceProviders finds new providers for edges that lost theirs, after all simultaneous
// changes were made. It reports whether there were such edges.
func (g *Graph) replaceProviders() bool {
	orphans := g.lostProvider
	g.lostProvider = nil
	for _, e := range orphans {
		g.Pace()
		if e.to == nil || e.to.available() || !e.met {
			continue // removed or met again meanwhile
		}
		if n := g.provider(e.dep); n != nil {
			g.detach(e)
			g.attach(e, n)
		} else {
			g.unmeet(e)
		}
	}
	return len(orphans) > 0
}

// announce offers n, which became available, to the edges without a provider.
func (g *Graph) announce(n *Node) {
	if len(g.waitlists) == 0 {
		return
	}
	g.offer(g.waitlists[""], n)
	for i := range len(n.key) {
		if n.key[i] == '/' {
			g.offer(g.waitlists[n.key[:i+1]], n)
		}
	}
}

// offer meets the waiting dependencies that the node can meet. Meeting one removes it from
// the list, so the index stays.
func (g *Graph) offer(b *waitlist, n *Node) {
	if b == nil {
		return
	}
	for i := 0; i < len(b.waiters); {
		e := b.waiters[i].e
		if !e.dep.MetBy(n.key) {
			i++
			continue
		}
		if e.to != nil {
			g.detach(e)
		}
		g.attach(e, n)
		g.meet(e) // removes e from b
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
