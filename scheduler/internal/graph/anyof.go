package graph

import (
	"iter"
	"strings"

	"github.com/tidwall/btree"
)

// A bucket lists the unmet any-of edges with a prefix in one folder.
type bucket struct {
	folder string
	list   []*spot
}

// A spot is an edge's place in a bucket.
type spot struct {
	e   *edge
	b   *bucket
	pos int
}

// witness finds a node that meets an any-of dependency.
func (g *Graph) witness(d *Dep) *Node {
	for _, prefix := range d.beginnings() {
		for n := range g.under(prefix) {
			if d.Match == nil || d.Match(n.key) {
				return n
			}
		}
	}
	return nil
}

// under yields the nodes that are up and whose key has the prefix, in order.
func (g *Graph) under(prefix string) iter.Seq[*Node] {
	if g.ups == nil {
		g.ups = &btree.Map[string, *Node]{}
		for key, n := range g.nodes {
			if n.up() {
				g.ups.Set(key, n)
			}
		}
	}
	return func(yield func(*Node) bool) {
		g.ups.Ascend(prefix, func(k string, n *Node) bool { return strings.HasPrefix(k, prefix) && yield(n) })
	}
}

// beginnings are the prefixes of the keys that d is matched with.
func (d *Dep) beginnings() []string {
	if len(d.Prefixes) == 0 && d.Match != nil {
		return []string{""}
	}
	return d.Prefixes
}

// MetBy says whether key is one that meets d.
func (d *Dep) MetBy(key string) bool {
	if d.Key != "" {
		return key == d.Key
	}
	for _, prefix := range d.beginnings() {
		if strings.HasPrefix(key, prefix) {
			return d.Match == nil || d.Match(key)
		}
	}
	return false
}

// rehome finds new witnesses for the edges whose own went down, once all that
// goes down at the same time has; it says whether there were any.
func (g *Graph) rehome() bool {
	orphans := g.orphans
	g.orphans = nil
	for _, e := range orphans {
		if e.to == nil || e.to.up() || !e.met {
			continue // unlinked or mended meanwhile
		}
		if n := g.witness(e.dep); n != nil {
			g.detach(e)
			g.attach(e, n)
		} else {
			g.unmeet(e)
		}
	}
	return len(orphans) > 0
}

// announce offers n, which came up, to the any-of edges that have no witness.
func (g *Graph) announce(n *Node) {
	if len(g.buckets) == 0 {
		return
	}
	g.offer(g.buckets[""], n)
	for i := range len(n.key) {
		if n.key[i] == '/' {
			g.offer(g.buckets[n.key[:i+1]], n)
		}
	}
}

func (g *Graph) offer(b *bucket, n *Node) {
	if b == nil {
		return
	}
	for i := 0; i < len(b.list); {
		e := b.list[i].e
		if !e.dep.MetBy(n.key) {
			i++
			continue
		}
		if e.to != nil {
			g.detach(e)
		}
		g.attach(e, n)
		g.meet(e) // takes e out of b
	}
}

func (g *Graph) listen(e *edge) {
	if !e.anyOf() || e.spots != nil {
		return
	}
	prefixes := e.dep.beginnings()
	spots := make([]spot, len(prefixes))
	for i, prefix := range prefixes {
		b := g.bucket(prefix[:strings.LastIndexByte(prefix, '/')+1])
		spots[i] = spot{e: e, b: b, pos: len(b.list)}
		b.list = append(b.list, &spots[i])
	}
	e.spots = &spots
	g.log(step{edge: e, spots: e.spots, added: true})
}

func (g *Graph) bucket(folder string) *bucket {
	b := g.buckets[folder]
	if b == nil {
		b = &bucket{folder: folder}
		g.buckets[folder] = b
	}
	return b
}

func (g *Graph) deafen(e *edge) {
	if e.spots == nil {
		return
	}
	g.log(step{edge: e, spots: e.spots})
	for i := range *e.spots {
		g.leave(&(*e.spots)[i])
	}
	e.spots = nil
}

// leave takes s out of its bucket.
func (g *Graph) leave(s *spot) {
	last := len(s.b.list) - 1
	s.b.list[s.pos] = s.b.list[last]
	s.b.list[s.pos].pos = s.pos
	s.b.list[last] = nil
	if s.b.list = s.b.list[:last]; last == 0 {
		delete(g.buckets, s.b.folder)
	}
}
