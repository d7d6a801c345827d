package graph

import (
	"reflect"

	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// Found reports the actual value of a key. A foreign value is not ours: it is never
// changed or deleted, so its dependencies do not matter.
//
// A found value that is equivalent to the desired one counts as the desired one. A found
// value that is equivalent to the known actual one changes nothing. So reading back a
// system in sync has no effect.
//
// changed says that somebody else has changed the value: it was as desired before, and is not any more. vanished are the
// keys of derived values that have gone, perhaps with the change.
func (g *Graph) Found(v *Value, meta any, foreign bool) (changed bool, vanished []string) {
	n := g.node(v.Key)
	if n.Hung() {
		g.bookkeep(n).unseen = true
		return false, nil // what was read may be older than the effect of the operation
	}
	asDesired := n.desired != nil && n.actual == n.desired && n.running == idle && !n.kindUnknown()
	g.setForeign(n, foreign && n.desired == nil)
	known := n.matchFound(v)
	vanished = g.foundDerived(n, v, known)
	switch {
	case known == nil:
		known = g.newVersion(n, n.withoutDeps(v))
	case known == n.actual:
		g.setMeta(n, meta)
		g.sight(n)
		return false, vanished
	}
	g.edit(n).removable = n.removable || g.complete && !n.rejectedOrBase()
	g.setActual(n, known, meta)
	g.sight(n)
	return asDesired && n.actual != n.desired, vanished
}

// matchFound returns the version of n that the found value v is equivalent to, or nil. A
// value that is not desired must be identical.
func (n *Node) matchFound(v *Value) *version {
	switch {
	case n.desired != nil && (identical(n.desired.Value, v) || suffices(n.key, v, n.desired.Value)):
		return n.desired
	case n.actual != nil && (identical(n.actual.Value, v) || n.desired != nil && suffices(n.key, v, n.actual.Value)):
		return n.actual
	}
	return nil
}

// withoutDeps returns v as a foreign node has it: without dependencies and claims.
func (n *Node) withoutDeps(v *Value) *Value {
	if !n.foreign || len(v.Deps) == 0 && v.ClaimSet() == nil {
		return v
	}
	alone := *v
	alone.Deps = nil
	alone.SetClaims(nil)
	return &alone
}

// setForeign notes whether the actual value belongs to somebody else.
func (g *Graph) setForeign(n *Node, foreign bool) {
	if n.foreign == foreign {
		return
	}
	g.edit(n).foreign = foreign
	if n.actual != nil {
		g.touch(n)
		g.push(n)
	}
}

// setMeta replaces the metadata of an unchanged actual value.
func (g *Graph) setMeta(n *Node, meta any) {
	if !reflect.DeepEqual(n.meta, meta) {
		g.touch(n)
	}
	g.edit(n).meta = meta
}

// foundDerived updates the actual values derived from n after v was found, each by its
// Evidence. known is the version that matched v, or nil. It returns the keys of those that are gone.
func (g *Graph) foundDerived(n *Node, v *Value, known *version) (vanished []string) {
	following := v
	if known != nil {
		following = known.Value
	}
	stands := make(map[string]bool, len(v.Derived()))
	for _, d := range v.Derived() {
		switch evidence(d.Kind) {
		case value.ShownByBase:
			stands[d.Key] = g.foundPart(n, d)
		case value.ReadAlone:
			g.derivedNode(d.Key, n)
		case value.FollowsBase:
		}
	}
	for _, d := range following.Derived() {
		if evidence(d.Kind) == value.FollowsBase {
			// a value that can be pending keeps its state
			waits := len(d.Deps) > 0 || d.ClaimSet() != nil
			stands[d.Key] = waits && known != nil || g.foundPart(n, d)
		}
	}
	for _, d := range n.actualParts() {
		if !stands[d.key] && evidence(d.actual.Kind) != value.ReadAlone {
			vanished = append(vanished, d.key)
			g.loseNode(d, true)
		}
	}
	return vanished
}

// foundPart reports d, which is derived from n, as found. It returns false if d is derived
// from another node.
func (g *Graph) foundPart(n *Node, d *Value) bool {
	dn := g.derivedNode(d.Key, n)
	if dn.base != n {
		return false
	}
	g.Found(d, dn.meta, n.foreign)
	return true
}

// derivedNode returns the node of a value that the actual value of base derives. The node
// becomes a part of base, unless it has another base or is declared.
func (g *Graph) derivedNode(key string, base *Node) *Node {
	n := g.node(key)
	if n.base == nil && n.desired == nil {
		g.edit(n).base = base
		if n.actual != nil { // it was found before its base
			g.setActual(n, g.newVersion(n, n.actual.Value), n.meta)
		}
	}
	return n
}

// Lost reports that key and its derived keys have no actual value any more.
func (g *Graph) Lost(key string) {
	if n := g.Node(key); n != nil {
		g.loseNode(n, false)
	}
}

// NotFound reports that key was read back and has no actual value. Its derived values are
// gone too, except those that are read back alone.
func (g *Graph) NotFound(key string) {
	if n := g.Node(key); n != nil {
		g.loseNode(n, true)
	}
}

// loseNode handles an actual value that vanished, with the parts that its base shows.
// While a verb of it hangs, the value may be there or not, so only a note is made.
func (g *Graph) loseNode(n *Node, readBack bool) {
	if n.actual == nil {
		g.sightLoss(n, n.kindUnknown())
		return
	}
	if n.Hung() {
		g.bookkeep(n).unseen = true
		return
	}
	wasUnknown := n.kindUnknown()
	for _, d := range n.actualParts() {
		if !readBack || evidence(d.actual.Kind) != value.ReadAlone {
			g.loseNode(d, readBack)
		}
	}
	s := g.edit(n)
	s.missing = n.desired != nil && !n.kindUnknown()
	s.suspension = notSuspended
	s.errs.SetFailure(nil) // it was about the value that is gone
	g.setActual(n, nil, nil)
	g.retract(n)
	g.resetRank(n)
	g.sightLoss(n, wasUnknown)
}
