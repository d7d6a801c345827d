package graph

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// Several keys can name one thing, such as an address in several notations. One of them is in canonical
// form. As soon as a value has another one, both claim the identity: so only one of them is applied. If
// it leaves and the other says the same, the other takes over without an operation.
//
// Values pay nothing for this before some key is not canonical, or if they are of kinds without identities.

// identityOf returns the identity of a value; it has no key if there is none.
func identityOf(v *Value) value.Identity {
	kind, ok := v.Kind.(value.Identified)
	if !ok || v.Err() != nil {
		return value.Identity{}
	}
	return kind.Identity(v.Key, v.Data)
}

// identify returns v with the claim on its identity, if it needs one.
func (g *Graph) identify(v *Value) *Value {
	id := identityOf(v)
	isCanonical := id.Resource == v.Key
	if id.Resource == "" || isCanonical && !g.aliased {
		return v
	}
	g.aliased = true
	if of := g.identityResource(id); of == nil || len(of.claims) == 0 {
		if isCanonical {
			return v
		}
		g.contest(id.Resource)
	}
	return v.claiming(id)
}

// identityResource is what the values with an identity claim; nil: none does.
func (g *Graph) identityResource(id value.Identity) *resource { return g.resource(id.Claim().Resource) }

// claiming returns v with a claim on its identity.
func (v *Value) claiming(id value.Identity) *Value {
	out := *v
	out.SetClaims(id.Claims(v.Claims()))
	return &out
}

// contest lets the value with a canonical key claim its identity. What it has, it keeps.
func (g *Graph) contest(key string) {
	n := g.Node(key)
	if n == nil || n.foreign {
		return
	}
	actual, desired := n.actual, n.desired
	if actual != nil && identityOf(actual.Value).Resource == key {
		actual = g.newVersion(n, actual.claiming(identityOf(actual.Value)))
	}
	switch {
	case desired == n.actual:
		desired = actual
	case desired != nil && identityOf(desired.Value).Resource == key:
		desired = g.newVersion(n, desired.claiming(identityOf(desired.Value)))
	}
	if desired != n.desired {
		g.setDesired(n, desired)
	}
	if actual != n.actual {
		g.setActual(n, actual, n.meta)
	}
}

// Identify looks again at what the values that depend on n are: at their identities and, unless they are applied, at what
// meets their any-of dependencies. It is called when n has changed, and the values refer to it.
func (g *Graph) Identify(n *Node) {
	for _, e := range slices.Clone(n.in()) {
		m := e.v.node
		if m.desired != e.v {
			continue
		}
		v := *m.desired.Value
		switch id := identityOf(&v); {
		case id.Resource != "" && id.Resource != m.desired.identity():
			v.SetClaims(value.WithoutIdentity(v.Claims()))
			g.setDesired(m, g.newVersion(m, g.identify(&v)))
		case m.desired != m.actual && slices.ContainsFunc(e.v.edges(), func(e edge) bool { return e.anyOf() }):
			g.setDesired(m, g.newVersion(m, &v)) // new edges ask Match again
		}
	}
}

// identity returns the identity with which v was declared: that which it claims, or else its key.
func (v *version) identity() string {
	for _, c := range v.Claims() {
		if key, ok := c.Identity(); ok {
			return key
		}
	}
	return v.Key
}

// contested reports that another value may wait for what v claims. An identity that only v has is not contested.
func (v *version) contested() bool {
	return slices.ContainsFunc(v.claims(), func(c claim) bool {
		return !c.OfIdentity() || slices.ContainsFunc(c.on.claims, func(other *claim) bool { return other.v.node != v.node })
	})
}

// heir returns the node that takes over what n has, which is to be deleted: it has the same identity, says
// the same, and waits for nothing else. It returns nil if there is none.
func (g *Graph) heir(n *Node) (best *Node) {
	if n.desired != nil || n.actual == nil || n.actual.ClaimSet() == nil || n.base != nil {
		return nil
	}
	of := g.identityResource(identityOf(n.actual.Value))
	if of == nil {
		return nil
	}
	for _, c := range of.claims {
		if m := c.v.node; m.desired == c.v && m.inherits(n) && (best == nil || m.key < best.key) {
			best = m
		}
	}
	return best
}

// inherits reports that n can take over what former has, without an operation.
func (n *Node) inherits(former *Node) bool {
	return n != former && n.actual == nil && n.running == idle && n.desired.waitsOnlyFor(former) &&
		suffices(n.key, former.actual.Value, n.desired.Value)
}

// waitsOnlyFor reports that nothing but what n holds keeps v from being applied.
func (v *version) waitsOnlyFor(n *Node) bool {
	return v.Err() == nil && !slices.ContainsFunc(v.edges(), func(e edge) bool { return !e.met }) &&
		!slices.ContainsFunc(v.claims(), func(c claim) bool { return c.holder != nil && c.holder != n })
}

// handOver makes the actual value of n, which is to be deleted, that of its heir. It reports whether there is one.
func (g *Graph) handOver(n *Node) bool {
	heir := g.heir(n)
	if heir == nil {
		return false
	}
	kind, meta := n.actual.Kind.(value.Identified), n.meta
	g.edit(heir).last = n.last
	g.setActual(n, nil, nil)
	g.setActual(heir, heir.desired, meta)
	if !g.planning() {
		kind.Renamed(n.key, heir.key)
	}
	return true
}
