package graph

// setDesired and setActual are the only functions that replace versions. They keep edges,
// counts and queues up to date.
func (g *Graph) setDesired(n *Node, v *version) {
	g.setRenewed(n, false)
	old := n.desired
	g.addToKind(n, v)
	s := g.edit(n)
	s.desired = v
	if n.running != abandoned { // otherwise it stays failed, whatever is desired
		s.errs.SetFailure(nil)
	}
	s.recreate = false
	s.retry()
	g.retain(v)
	g.release(old)
	if n.hasClaims() || old.hasClaims() {
		g.rankDesired(n, old)
		g.reopenAll(old, v, n.actual)
	}
	g.changed(n)
}

// setActual replaces the actual version of a node that is not being deleted.
func (g *Graph) setActual(n *Node, v *version, meta any) { g.replaceActual(n, v, meta, false) }

// replaceActual replaces the actual version, and counts the dependents of both versions.
// The new one is retained before the old one is released, because they may be the same.
func (g *Graph) replaceActual(n *Node, v *version, meta any, going bool) {
	old, was := n.actual, n.available()
	g.addToKind(n, v)
	g.retain(v)
	if old != v {
		g.countDependents(old, -1)
		g.edit(n).actual = v
		g.countDependents(v, +1)
	}
	g.release(old)
	if n.hasClaims() || old.hasClaims() {
		if v != nil {
			g.edit(n).claimRank = n.claimant().rankAfter(v)
		}
		g.reopenAll(old, v, n.desired)
	}
	s := g.edit(n)
	s.meta, s.toDelete, s.retention = meta, going, retained
	if v != nil {
		s.missing = false
	}
	g.availabilityChanged(n, was)
	g.changed(n)
	if n.desired != nil {
		g.recheckDerived(n.desired)
	}
}

// changed queues a node for classification and for publication.
func (g *Graph) changed(n *Node) {
	if n.desired == nil && n.actual == nil {
		g.edit(n).base = nil
	}
	g.touch(n)
	g.push(n)
}

// setToDelete marks a node that is to be deleted: it meets no dependency any more.
func (g *Graph) setToDelete(n *Node, going bool) {
	if going == n.toDelete {
		return
	}
	was := n.available()
	g.edit(n).toDelete = going
	g.availabilityChanged(n, was)
}

// recheckDerived classifies the derived nodes of v again after their base changed. If v is applied, it has them, also
// if another value derives them too.
func (g *Graph) recheckDerived(v *version) {
	for _, d := range v.Derived() {
		dn := g.node(d.Key)
		if b := dn.base; b != v.node && v.node.actual == v && (b == nil || b.actual == nil) {
			g.wantNode(dn, d, v.node)
		}
		g.changed(dn)
	}
}

// availabilityChanged updates the dependents of n if it became available or stopped to be.
func (g *Graph) availabilityChanged(n *Node, was bool) {
	if n.available() == was {
		return
	}
	if was {
		g.available.Delete(n.key)
		g.becameUnavailable(n)
		return
	}
	g.available.Set(n.key, n)
	for _, e := range n.in() {
		if e.assumed {
			g.editEdge(e).assumed = false
			g.push(e.v.node) // until now, no version of it was deleted as outdated
		}
		g.meet(e)
	}
	if len(g.waiting) > 0 {
		g.announce(n)
	}
}

// becameUnavailable makes dependencies on the node unmet. Any-of dependencies first look
// for another provider, which the caller does when all changes are known.
func (g *Graph) becameUnavailable(n *Node) {
	for _, e := range n.in() {
		if e.anyOf() && e.met {
			g.lostProvider = append(g.lostProvider, e)
		} else {
			g.unmeet(e)
		}
	}
}

// clearFailure forgets the error of the last operation.
func (g *Graph) clearFailure(n *Node) {
	s := g.edit(n)
	s.errs.SetFailure(nil)
	s.suspension = notSuspended
	g.touch(n)
}
