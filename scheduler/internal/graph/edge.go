package graph

import "slices"

// retain counts a use of a version. Its edges exist while it is in use.
func (g *Graph) retain(v *version) {
	if v == nil {
		return
	}
	s := g.editVersion(v)
	if s.refs++; s.refs == 1 {
		g.link(v)
	}
}

// release ends a use of a version; the last one removes its edges.
func (g *Graph) release(v *version) {
	if v == nil {
		return
	}
	s := g.editVersion(v)
	if s.refs--; s.refs == 0 {
		g.unlink(v)
	}
}

// countDependents adds by to the dependents of each node that v depends on.
func (g *Graph) countDependents(v *version, by int32) {
	if v == nil {
		return
	}
	for _, e := range v.edges() {
		if to := e.to; to != nil {
			g.bookkeep(to).dependents += by
			g.dependentLeft(to)
		}
	}
}

// dependentLeft classifies n again if it waited for its last dependent to leave.
func (g *Graph) dependentLeft(n *Node) {
	if n.toDelete {
		g.push(n)
	}
}

// link makes the edges of a version, to its dependencies and its base, and its claims.
func (g *Graph) link(v *version) {
	n, claims := v.node, v.Claims()
	size := len(v.Deps)
	if n.base != nil {
		size++
	}
	s := g.editVersion(v)
	s.unmet = 0
	s.makeRoom(size, len(claims))
	edges := v.edges()
	for i := range v.Deps {
		edges[i] = edge{v: v, dep: &v.Deps[i]}
	}
	if n.base != nil {
		edges[size-1] = edge{v: v}
	}
	for i := range edges {
		e := &edges[i]
		to := g.target(e)
		if to != nil {
			g.attach(e, to)
		}
		met := to != nil && to.available()
		if g.editEdge(e).met = met; !met {
			s.unmet++
			g.await(e)
		}
	}
	for i := range claims {
		g.stake(v, i)
	}
}

// target returns the node at which a new edge ends.
func (g *Graph) target(e *edge) *Node {
	switch {
	case e.dep == nil:
		return e.v.node.base
	case e.dep.Key != "":
		return g.node(e.dep.Key)
	}
	return g.provider(e.dep)
}

// unlink removes the edges and claims of a version that is not in use.
func (g *Graph) unlink(v *version) {
	edges := v.edges()
	for i := range edges {
		e := &edges[i]
		g.stopAwaiting(e)
		if e.to != nil {
			g.detach(e)
		}
	}
	claims := v.claims()
	for i := range claims {
		g.withdraw(&claims[i])
	}
	s := g.editVersion(v)
	s.single, s.more = false, nil
}

// attach points an edge to a node. The edge remembers its position among the incoming
// edges.
func (g *Graph) attach(e *edge, to *Node) {
	if g.logs(e, to) {
		g.logUndo(func() {
			if to.life != planned {
				to.setIn(slices.Delete(to.in(), int(e.pos), int(e.pos)+1)) // it is the last
			}
			e.to, e.pos = nil, 0
		})
	}
	e.to = to
	e.pos = int32(len(to.in()))
	to.setIn(append(to.in(), e))
	if e.ofActual() {
		g.bookkeep(to).dependents++
	}
}

// detach removes an edge from the incoming ones by moving the last one into its place,
// which takes the same time for any number of edges.
func (g *Graph) detach(e *edge) {
	to, pos := e.to, e.pos
	last := int32(len(to.in()) - 1)
	if g.logs(e, to) {
		g.logUndo(func() {
			if e.to, e.pos = to, pos; to.life == planned {
				return
			}
			in := append(to.in(), e)
			in[last], in[pos] = in[pos], e
			in[last].pos, e.pos = last, pos
			to.setIn(in)
		})
	}
	in := to.in()
	in[pos] = in[last]
	in[pos].pos = pos
	to.setIn(slices.Delete(in, int(last), int(last)+1))
	e.to, e.pos = nil, 0
	if e.ofActual() {
		g.bookkeep(to).dependents--
		g.dependentLeft(to)
	}
	if last == 0 {
		g.touch(to) // it may be unused now
	}
}

// meet marks a dependency as met.
func (g *Graph) meet(e *edge) {
	if e.met {
		return
	}
	g.editEdge(e).met = true
	g.stopAwaiting(e)
	g.oneMet(e.v)
}

// unmeet is the inverse of meet. An any-of dependency waits for a provider again.
func (g *Graph) unmeet(e *edge) {
	if !e.met {
		return
	}
	s := g.editEdge(e)
	s.met, s.assumed = false, false
	g.await(e)
	g.oneUnmet(e.v)
}

// oneMet counts a dependency that is met, or a claim that is granted. The last one makes the version applicable.
func (g *Graph) oneMet(v *version) {
	n := v.node
	g.editVersion(v).unmet--
	if v.unmet == 0 && v == n.desired && n.suspension != flapping {
		g.edit(n).retry()
	}
	g.touchUnapplied(n)
	g.push(n) // even with other unmet edges: they may be a cycle
}

// oneUnmet is the inverse of oneMet.
func (g *Graph) oneUnmet(v *version) {
	n := v.node
	g.editVersion(v).unmet++
	g.touchUnapplied(n)
	g.push(n)
	if v == n.actual && n.toDelete { // it no longer leaves last, nor do its parts
		for _, d := range n.actualParts() {
			g.push(d)
		}
	}
}

// touchUnapplied touches a node whose state may follow from its unmet dependencies. The state of a value
// that is applied does not: it stays, or is deleted.
func (g *Graph) touchUnapplied(n *Node) {
	if n.desired != n.actual {
		g.touch(n)
	}
}
