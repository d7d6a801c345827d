package graph

import "strings"

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
	for _, prefix := range d.Prefixes {
		for n := range g.under(prefix) {
			if n.up() && (d.Match == nil || d.Match(n.key)) {
				return n
			}
		}
	}
	return nil
}

// MetBy says whether key is one that meets d.
func (d *Dep) MetBy(key string) bool {
	if d.Key != "" {
		return key == d.Key
	}
	for _, prefix := range d.Prefixes {
		if strings.HasPrefix(key, prefix) {
			return d.Match == nil || d.Match(key)
		}
	}
	return false
}

// another finds a new witness for an any-of edge whose own went down.
func (g *Graph) another(e *edge) *Node {
	if !e.met || !e.anyOf() {
		return nil
	}
	return g.witness(e.dep)
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
	e.spots = make([]spot, len(e.dep.Prefixes))
	for i, prefix := range e.dep.Prefixes {
		b := g.bucket(prefix[:strings.LastIndexByte(prefix, '/')+1])
		e.spots[i] = spot{e: e, b: b, pos: len(b.list)}
		b.list = append(b.list, &e.spots[i])
	}
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
	for i := range e.spots {
		s := &e.spots[i]
		last := len(s.b.list) - 1
		s.b.list[s.pos] = s.b.list[last]
		s.b.list[s.pos].pos = s.pos
		s.b.list[last] = nil
		if s.b.list = s.b.list[:last]; last == 0 {
			delete(g.buckets, s.b.folder)
		}
	}
	e.spots = nil
}
