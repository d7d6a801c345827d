package graph

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// An inverse has what Undo restores: the nodes that have changed since Track, each as it was before its first change.
type inverse struct {
	formers  []former
	has      map[*Node]struct{}
	complete bool
}

// A former is the earlier state of a node. The graph may have forgotten the node since.
type former struct {
	node, base        *Node
	desired           *Value
	rejection         error
	rank              value.Rank
	removable, absent bool // absent: it had no actual value
}

func (i *inverse) add(n *Node) {
	if _, has := i.has[n]; has {
		return
	}
	i.has[n] = struct{}{}
	i.formers = append(i.formers, former{n, n.base, n.desired.value(), n.errs.Rejection(), n.claimRank, n.removable, n.actual == nil})
}

// Track has the changes from now on kept for Undo, until Undo or Keep.
func (g *Graph) Track() { g.inverse = &inverse{has: map[*Node]struct{}{}, complete: g.complete} }

// Keep ends Track. The changes stay.
func (g *Graph) Keep() { g.inverse = nil }

// Undo ends Track and restores the desired values, in reverse order of their changes. Actual values stay as they are now; Next
// returns the operations that restore them. Claim ranks are restored too. No operation may be in flight.
func (g *Graph) Undo() {
	i := g.inverse
	g.inverse, g.complete = nil, i.complete
	g.dissolveCycles()
	for _, f := range slices.Backward(i.formers) {
		n := g.node(f.node.key)
		s := g.edit(n)
		if s.base = f.base; f.base != nil {
			s.base = g.node(f.base.key)
		}
		s.errs.SetRejection(f.rejection)
		s.removable = f.removable || f.absent
		g.setDesired(n, g.versionOf(n, f.desired))
		g.edit(n).claimRank = f.rank
	}
}

// versionOf returns a version of n that it has, or a new one.
func (g *Graph) versionOf(n *Node, v *Value) *version {
	switch v {
	case nil:
		return nil
	case n.desired.value():
		return n.desired
	case n.actual.value():
		return n.actual
	}
	return g.newVersion(n, v)
}
