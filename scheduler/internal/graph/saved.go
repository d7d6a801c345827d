package graph

import "slices"

// The functions of this file are the only ways to change what the graph has: during a plan they log, before the first change, a
// copy to be restored, and they return what may be changed. edit also keeps what Undo restores. Without a plan and Track
// they cost almost nothing. A test looks for other writes.

// edit returns the state of n to be changed.
func (g *Graph) edit(n *Node) *nodeState {
	if g.inverse != nil {
		g.inverse.add(n)
	}
	return g.bookkeep(n)
}

// bookkeep is edit for what Undo does not restore: what is known of the edges that end at n, and notes.
func (g *Graph) bookkeep(n *Node) *nodeState {
	if g.planning() && !n.saved {
		g.saveNode(n)
	}
	return &n.nodeState
}

func (g *Graph) saveNode(n *Node) {
	n.saved = true
	state, kind, index, touched, news := n.nodeState, n.kindNodes, n.kindIndex, n.touched, n.News
	g.logUndo(func() {
		n.nodeState, n.kindNodes, n.kindIndex, n.touched, n.News = state, kind, index, touched, news
		n.saved, n.queued = false, false
		if n.running == inFlight {
			n.running = idle
		}
	})
	g.Pace()
}

// editVersion returns the state of v to be changed.
func (g *Graph) editVersion(v *version) *versionState {
	if g.planning() && !v.saved {
		g.saveVersion(v)
	}
	return &v.versionState
}

func (g *Graph) saveVersion(v *version) {
	state, edges, lost := v.versionState, slices.Clone(v.edges()), v.lostClaims()
	var results []claimResult
	for _, c := range v.claims() {
		results = append(results, c.claimResult)
	}
	g.logUndo(func() {
		v.versionState = state // saved is false in it
		for i, was := range edges {
			e := &v.edges()[i]
			e.met, e.assumed = was.met, was.assumed // the rest is constant, or logged by attach and detach
		}
		for i := range results {
			v.claims()[i].claimResult = results[i]
		}
		if v.more != nil {
			v.more.lost = lost
		}
	})
	v.saved = true
	g.Pace()
}

// editEdge returns an edge to be changed.
func (g *Graph) editEdge(e *edge) *edge {
	g.editVersion(e.v)
	return e
}

// editClaim returns a claim to be changed.
func (g *Graph) editClaim(c *claim) *claim {
	g.editVersion(c.v)
	return c
}

// editResource returns r to be changed.
func (g *Graph) editResource(r *resource) *resource {
	if g.planning() && !r.saved {
		state := resource{r.of, slices.Clone(r.claims), r.state, false}
		g.logUndo(func() {
			*r = state
			for i, c := range r.claims {
				c.pos = int32(i)
			}
		})
		r.saved = true
	}
	return r
}

// editKind returns the nodes of a kind, to which a plan only adds.
func (g *Graph) editKind(k *kindNodes) *kindNodes {
	if g.planning() && !k.saved {
		length := len(k.nodes)
		g.logUndo(func() {
			k.saved = false
			clear(k.nodes[length:])
			if k.nodes = k.nodes[:length]; length == 0 {
				delete(g.byKind, k.kind)
			}
		})
		k.saved = true
	}
	return k
}
