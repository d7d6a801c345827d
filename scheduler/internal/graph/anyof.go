package graph

import "github.com/keyplane/keyplane/scheduler/internal/folders"

// replaceProviders finds new providers for edges that lost theirs, after all simultaneous
// changes were made.
func (g *Graph) replaceProviders() {
	waiting := g.lostProvider
	g.lostProvider = nil
	for _, e := range waiting {
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
}

// announce offers n, which became available, to the edges without a provider.
func (g *Graph) announce(n *Node) {
	for list := range g.waitlists.Above(n.key) {
		g.offer(list, n)
	}
}

// offer meets the waiting dependencies that the node can meet. Meeting one removes it from
// the list, so the index stays.
func (g *Graph) offer(list *folders.Waitlist[*edge], n *Node) {
	for i := 0; i < list.Len(); {
		e := list.At(i)
		if !e.dep.MetBy(n.key) {
			i++
			continue
		}
		if e.to != nil {
			g.detach(e)
		}
		g.attach(e, n)
		g.meet(e) // removes e from the list
	}
}
