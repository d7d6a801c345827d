package graph

import (
	"maps"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// Several keys can name one thing, such as an address in several notations. One of them is in canonical
// form. As soon as a value has another one, both claim the identity: so only one of them is applied. If
// it leaves and the other says the same, the other takes over without an operation.
//
// Values pay nothing for this while all keys are canonical, or are of kinds without identities.

// An Identity is what a value is about.
type Identity struct {
	Key    string // in canonical form; "": the kind has no identities
	Refers bool   // it depends on other values, so it can change
	Texts  value.ClaimTexts
}

// Identified is a Kind whose values have identities.
type Identified interface {
	Identity(key string, data any) Identity
	// Renamed says that the item of one key is that of another one from now on. It is not called for plans.
	Renamed(from, to string)
}

// identities are the values whose identity matters.
type identities struct {
	shared    map[string]bool   // canonical keys that values with other keys have meant
	referring map[string]string // identities of the values that can have others
}

// newIdentities returns an empty record.
func newIdentities() identities { return identities{map[string]bool{}, map[string]string{}} }

// identityOf returns the identity of a value; it has no key if there is none.
func identityOf(v *Value) Identity {
	kind, ok := v.Kind.(Identified)
	if !ok || v.Err() != nil {
		return Identity{}
	}
	return kind.Identity(v.Key, v.Data)
}

// identify returns v with the claim on its identity, if it needs one.
func (g *Graph) identify(v *Value) *Value {
	id := identityOf(v)
	if id.Refers {
		g.identities.referring[v.Key] = id.Key
	}
	if id.Key == "" || id.Key == v.Key && !g.identities.shared[id.Key] {
		return v
	}
	if !g.identities.shared[id.Key] {
		g.identities.shared[id.Key] = true
		g.contest(id.Key)
	}
	return v.claiming(id)
}

// claiming returns v with a claim on its identity.
func (v *Value) claiming(id Identity) *Value {
	out := *v
	claims := append(slices.Clone(v.Claims()), value.Claim{Of: identityClaim + id.Key, Texts: id.Texts})
	out.SetClaims(&claims)
	return &out
}

// identityClaim begins the resources of claims on identities.
const identityClaim = "identity of "

// contest lets the value with a canonical key claim its identity. What it has, it keeps.
func (g *Graph) contest(key string) {
	n := g.Node(key)
	if n == nil || n.foreign {
		return
	}
	same := n.actual == n.desired
	if n.actual != nil {
		if id := identityOf(n.actual.Value); id.Key == key {
			v := g.newVersion(n, n.actual.claiming(id))
			if same {
				g.setDesired(n, v)
			}
			g.setActual(n, v, n.meta)
		}
	}
	if n.desired != nil && !same {
		if id := identityOf(n.desired.Value); id.Key == key {
			g.setDesired(n, g.newVersion(n, n.desired.claiming(id)))
		}
	}
}

// Identify looks again at the identities of values that depend on others. It is called when these others
// have changed.
func (g *Graph) Identify() {
	for _, key := range slices.Sorted(maps.Keys(g.identities.referring)) {
		n := g.Node(key)
		if n == nil || n.desired == nil {
			delete(g.identities.referring, key)
			continue
		}
		was, v := g.identities.referring[key], *n.desired.Value
		if id := identityOf(&v); id.Key == was || id.Key == "" {
			continue
		}
		claims := slices.DeleteFunc(slices.Clone(v.Claims()), func(c value.Claim) bool { return c.Of == identityClaim+was })
		v.SetClaims(nil)
		if len(claims) > 0 {
			v.SetClaims(&claims)
		}
		g.setDesired(n, g.newVersion(n, g.identify(&v)))
	}
}

// contested reports that another value may wait for what v claims. An identity that only v has is not contested.
func (v *version) contested() bool {
	for _, e := range v.edges() {
		if e.claim == nil {
			continue
		}
		if !strings.HasPrefix(e.claim.Of, identityClaim) {
			return true
		}
		for _, other := range e.to.in() {
			if other.v.node != v.node {
				return true
			}
		}
	}
	return false
}

// heir returns the node that takes over what n has, which is to be deleted: it has the same identity, says
// the same, and waits for nothing else. It returns nil if there is none.
func (g *Graph) heir(n *Node) *Node {
	if !n.toDelete || n.desired != nil || n.actual == nil || n.actual.ClaimSet() == nil || n.base != nil {
		return nil
	}
	id := identityOf(n.actual.Value)
	if id.Key == "" || !g.identities.shared[id.Key] {
		return nil
	}
	of := g.Node(identityClaim + id.Key)
	if of == nil {
		return nil
	}
	var best *Node
	for _, e := range of.in() {
		m := e.v.node
		if m != n && m.desired == e.v && m.actual == nil && m.running == idle && (best == nil || m.key < best.key) &&
			m.desired.waitsOnlyFor(n) && suffices(m.key, n.actual.Value, m.desired.Value) {
			best = m
		}
	}
	return best
}

// waitsOnlyFor reports that nothing but what n holds keeps v from being applied.
func (v *version) waitsOnlyFor(n *Node) bool {
	if v.Err() != nil {
		return false
	}
	for _, e := range v.edges() {
		if !e.met && (e.claim == nil || e.claim.holder != n) {
			return false
		}
	}
	return true
}

// handOver makes the actual value of n that of its heir.
func (g *Graph) handOver(n, heir *Node) {
	g.saveNode(heir)
	kind, meta := n.actual.Kind.(Identified), n.meta
	heir.last = n.last
	g.setActual(n, nil, nil)
	g.setActual(heir, heir.desired, meta)
	if !g.planning() {
		kind.Renamed(n.key, heir.key)
	}
}
