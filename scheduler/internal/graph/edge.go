package graph

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

// link makes the edges of a version: its dependencies, its claims, and its base.
func (g *Graph) link(v *version) {
	n := v.node
	size := len(v.Deps) + len(v.Claims())
	if n.base != nil {
		size++
	}
	edges := g.editVersion(v).newEdges(size)
	for i := range v.Deps {
		edges[i] = edge{v: v, dep: &v.Deps[i]}
	}
	if v.ClaimSet() != nil {
		v.addClaimEdges(edges[len(v.Deps):])
	}
	if n.base != nil {
		edges[size-1] = edge{v: v}
	}
	s := g.editVersion(v)
	s.unmet = 0
	for i := range edges {
		e := &edges[i]
		to := g.target(e)
		if to != nil {
			g.attach(e, to)
		}
		met := e.claim != nil || to != nil && to.available()
		if g.editEdge(e).met = met; !met {
			s.unmet++
			g.await(e)
		}
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

// unlink removes the edges of a version that is not in use.
func (g *Graph) unlink(v *version) {
	edges := v.edges()
	for i := range edges {
		e := &edges[i]
		g.stopAwaiting(e)
		if e.to != nil {
			g.detach(e)
		}
	}
	s := g.editVersion(v)
	s.single, s.several = false, nil
}

// attach points an edge to a node. The edge remembers its position among the incoming
// edges.
func (g *Graph) attach(e *edge, to *Node) {
	g.logStep(step{edge: e, to: to, added: true})
	e.to = to
	e.pos = int32(len(to.in()))
	to.setIn(append(to.in(), e))
	if e.claim != nil {
		g.claimed(to, e)
	}
	if e.ofActual() {
		g.bookkeep(to).dependents++
	}
}

// detach removes an edge from the incoming ones by moving the last one into its place,
// which takes the same time for any number of edges.
func (g *Graph) detach(e *edge) {
	to := e.to
	g.logStep(step{edge: e, to: to, pos: e.pos})
	last := len(to.in()) - 1
	to.in()[e.pos] = to.in()[last]
	to.in()[e.pos].pos = e.pos
	to.in()[last] = nil
	to.setIn(to.in()[:last])
	e.to, e.pos = nil, 0
	if e.ofActual() {
		g.bookkeep(to).dependents--
		g.dependentLeft(to)
	}
	if last == 0 {
		g.touch(to) // it may be unused now
	}
}

// meet marks a dependency as met, and counts. The last one makes the version applicable.
func (g *Graph) meet(e *edge) {
	if e.met {
		return
	}
	g.editEdge(e).met = true
	g.stopAwaiting(e)
	g.editVersion(e.v).unmet--
	if e.v.unmet == 0 && e.v == e.v.node.desired && e.v.node.suspension != flapping {
		g.edit(e.v.node).retry()
	}
	g.touchUnapplied(e.v.node)
	g.push(e.v.node) // even with other unmet edges: they may be a cycle
}

// unmeet is the inverse of meet. An any-of dependency waits for a provider again.
func (g *Graph) unmeet(e *edge) {
	if !e.met {
		return
	}
	s := g.editEdge(e)
	s.met, s.assumed = false, false
	g.editVersion(e.v).unmet++
	g.await(e)
	g.touchUnapplied(e.v.node)
	g.push(e.v.node)
	if e.ofActual() && e.v.node.toDelete { // it no longer leaves last, nor do its parts
		for _, d := range e.v.node.actualParts() {
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
