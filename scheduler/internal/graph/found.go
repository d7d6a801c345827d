package graph

import "reflect"

// Evidence says how a read-back decides whether a derived value stands.
type Evidence uint8

const (
	// ShownByBase: it stands if Derived of the base value, as it was found, has it.
	ShownByBase Evidence = iota
	// FollowsBase: it stands while its base does, because it has no verbs.
	FollowsBase
	// ReadAlone: it is read back by itself, and what is found of its base says nothing about it.
	ReadAlone
)

// evidence is that of a value of kind. A property has no kind.
func evidence(kind Kind) Evidence {
	if kind == nil {
		return FollowsBase
	}
	return kind.Evidence()
}

// Found says that v stands, as the southbound shows it. A foreign value is not ours, and is
// never changed or removed, so nothing has to stay for its sake.
//
// A value that is equivalent to what is wanted counts as what is wanted, and one that is
// equivalent to what is known to stand changes nothing: reading back a system that is in sync
// leaves no trace.
func (g *Graph) Found(v *Value, meta any, foreign bool) {
	n := g.node(v.Key)
	g.save(n)
	g.setForeign(n, foreign && n.want == nil)
	known := n.recognise(v)
	g.foundDerived(n, v, known)
	switch {
	case known == nil:
		known = g.newVersion(n, n.standalone(v))
	case known == n.have:
		g.setMeta(n, meta)
		return
	}
	n.missing = false
	n.release = g.complete
	g.setHave(n, known, meta)
}

// recognise returns the version of n that v, which was found, is as good as; nil: v is
// something else. What is not wanted is compared to the letter.
func (n *Node) recognise(v *Value) *version {
	switch {
	case n.want != nil && (same(n.want.Value, v) || alike(n.key, v, n.want.Value)):
		return n.want
	case n.have != nil && (same(n.have.Value, v) || n.want != nil && alike(n.key, v, n.have.Value)):
		return n.have
	}
	return nil
}

// standalone is v as a foreign node has it: without dependencies and claims.
func (n *Node) standalone(v *Value) *Value {
	if !n.foreign || len(v.Deps) == 0 && v.Claims == nil {
		return v
	}
	alone := *v
	alone.Deps, alone.Claims = nil, nil
	return &alone
}

func (g *Graph) setForeign(n *Node, foreign bool) {
	if n.foreign == foreign {
		return
	}
	n.foreign = foreign
	if n.have != nil {
		g.touch(n)
		g.push(n)
	}
}

// setMeta replaces the metadata of what stands unchanged.
func (g *Graph) setMeta(n *Node, meta any) {
	if !reflect.DeepEqual(n.meta, meta) {
		g.touch(n)
	}
	n.meta = meta
}

// foundDerived brings what stands of n's derived values in line with what was found of n, each
// by its Evidence. known is the version of n that was recognised in v, or nil.
func (g *Graph) foundDerived(n *Node, v *Value, known *version) {
	following := v
	if known != nil {
		following = known.Value
	}
	stands := make(map[string]bool, len(v.Derived))
	for _, d := range v.Derived {
		switch evidence(d.Kind) {
		case ShownByBase:
			stands[d.Key] = g.foundPart(n, d)
		case ReadAlone:
			g.derivedNode(d.Key, n)
		case FollowsBase:
		}
	}
	for _, d := range following.Derived {
		if evidence(d.Kind) == FollowsBase {
			// One that can wait stands as far as it did.
			waits := len(d.Deps) > 0 || d.Claims != nil
			stands[d.Key] = waits && known != nil || g.foundPart(n, d)
		}
	}
	for _, d := range n.parts() {
		if !stands[d.key] && evidence(d.have.Kind) != ReadAlone {
			g.lose(d, true)
		}
	}
}

// foundPart says that d stands, which is derived from n; false: it is derived from another.
func (g *Graph) foundPart(n *Node, d *Value) bool {
	dn := g.derivedNode(d.Key, n)
	if dn.base != n {
		return false
	}
	g.Found(d, dn.meta, n.foreign)
	return true
}

// derivedNode is the node of a value that Derived of the standing value of base has. It becomes
// part of base unless it is another's or is declared by itself.
func (g *Graph) derivedNode(key string, base *Node) *Node {
	n := g.node(key)
	g.save(n)
	if n.base == nil && n.want == nil {
		n.base = base
		if n.have != nil { // it was found by itself before
			g.setHave(n, g.newVersion(n, n.have.Value), n.meta)
		}
	}
	return n
}

// Lost says that nothing stands under key any more, nor under the keys derived from it.
func (g *Graph) Lost(key string) {
	if n := g.nodes[key]; n != nil {
		g.lose(n, false)
	}
}

// NotFound says that key was read back and nothing was found there. Its derived values are gone
// with it, but for those that are read back by themselves.
func (g *Graph) NotFound(key string) {
	if n := g.nodes[key]; n != nil {
		g.lose(n, true)
	}
}

func (g *Graph) lose(n *Node, readBack bool) {
	if n.have == nil {
		return
	}
	g.save(n)
	for _, d := range n.parts() {
		if !readBack || evidence(d.have.Kind) != ReadAlone {
			g.lose(d, readBack)
		}
	}
	n.missing = n.want != nil
	n.rest, n.err = false, nil // whatever failed, it was about what stood
	g.setHave(n, nil, nil)
	g.forfeit(n)
}
