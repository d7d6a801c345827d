package graph

import (
	"maps"
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// rivals says that a and b cannot both stand.
func rivals(a, b *Value) bool {
	for _, x := range a.Claims() {
		for _, y := range b.Claims() {
			if x.Resource == y.Resource && !(x.Yields && y.Yields) {
				return true
			}
		}
	}
	return false
}

// withoutLosers drops those that lose what they claim.
func (m *model) withoutLosers(in map[string]string) {
	losers := losersOf(m.g)
	maps.DeleteFunc(in, func(key, _ string) bool { return losers[key] })
}

func losersOf(g *Graph) map[string]bool {
	out := map[string]bool{}
	for n := range g.nodes.All() {
		key := n.key
		if n.LosesClaim() {
			out[key] = true
		}
	}
	return out
}

func (m *model) has(v *Value) {
	m.had[v.Key] = v
	m.stood[v.Key] = true
}

func (m *model) vanish(key string) {
	if m.stands[key] {
		m.forget(key)
	}
	delete(m.stands, key)
}

func (m *model) forget(key string) {
	delete(m.had, key)
	delete(m.stood, key)
}

// holdersAreOthers checks that no value competes with itself: each holder is another node,
// which the graph knows, and which has a version that claims the resource.
func (m *model) holdersAreOthers() {
	claims := 0
	for r := range m.g.resources.All() {
		if len(r.claims) == 0 || r.saved {
			m.t.Fatalf("the graph knows %q, which nobody claims", r.of)
		}
		for i, c := range r.claims {
			claims++
			user := c.v.node
			if m.g.nodes.Get(user.key) != user {
				m.t.Fatalf("%s has a claim of %s, which the graph does not know", r.of, user.key)
			}
			if c.v != user.desired && c.v != user.actual || c.on != r || int(c.pos) != i {
				m.t.Fatalf("%s has a claim of an old version of %s, or on another resource", r.of, user.key)
			}
			if h := c.holder; h != nil && h.key == user.key {
				m.t.Fatalf("%s loses %s to itself (lost=%v)", user.key, r.of, c.lost)
			}
		}
	}
	for n := range m.g.nodes.All() {
		claims -= len(n.desired.claims())
		if n.actual != n.desired {
			claims -= len(n.actual.claims())
		}
	}
	if claims != 0 {
		m.t.Fatalf("resources have %d claims more than versions", claims)
	}
}

// edited looks again at who was taken down for a while.
func (m *model) edited() {
	m.isEdited = true
	for key := range m.stood {
		if n := m.g.nodes.Get(key); n == nil {
			m.forget(key)
		} else if n.actual == nil {
			m.review(n)
		}
	}
}

// review forgets what n had, if it does not stand and is wanted to claim something else.
func (m *model) review(n *Node) {
	switch {
	case n.desired == nil:
		m.forget(n.key)
	case !m.holds(n) || len(n.desired.Claims()) != len(m.had[n.key].Claims()):
		delete(m.had, n.key)
	default:
		m.had[n.key] = n.desired.Value // and no more than it claims now
	}
}

// holds says that n had all that it claims.
func (m *model) holds(n *Node) bool {
	had := m.had[n.key]
	if had == nil {
		return false
	}
	for _, c := range n.desired.Claims() {
		if !slices.ContainsFunc(had.Claims(), func(h value.Claim) bool { return h.Resource == c.Resource && (c.Yields || !h.Yields) }) {
			return false
		}
	}
	return true
}

// nobodyIsOusted checks that who loses has not had what he claims, unless the winner has too
// or he yields something; and that the winner claims it, and loses nothing himself.
func (m *model) nobodyIsOusted() {
	for n := range m.g.nodes.All() {
		if !n.LosesClaim() {
			continue
		}
		yields := slices.ContainsFunc(n.desired.claims(), func(c claim) bool { return c.lost && c.Yields })
		for _, c := range n.desired.claims() {
			if !c.lost {
				continue
			}
			r := c.holder
			if r.desired == nil || !greedyFor(c.Resource, r) {
				m.t.Fatalf("%s loses %s to %s, which does not claim it", n.key, c.Resource, r.key)
			}
			if c.Yields {
				continue
			}
			if r.LosesClaim() {
				m.t.Fatalf("%s loses %s to %s, which loses", n.key, c.Resource, r.key)
			}
			// An operation of unknown result may have made the winner.
			if !yields && m.holds(n) && !m.stood[r.key] && !m.isHung(r.key) {
				m.t.Fatalf("%s loses %s to %s, which is new to it", n.key, c.Resource, r.key)
			}
		}
		if n.actual == nil {
			m.forget(n.key)
		}
	}
}

func greedyFor(of string, n *Node) bool {
	return slices.ContainsFunc(n.desired.Claims(), func(c value.Claim) bool { return c.Resource == of && !c.Yields })
}

// maximal checks that no two have the same, and that who loses could not have it all.
func (m *model) maximal() {
	losers := losersOf(m.g)
	for n := range m.g.nodes.All() {
		key := n.key
		var conflicts bool
		for o := range m.g.nodes.All() {
			if o == n || n.desired == nil || o.desired == nil || losers[o.key] && !yieldsToOne(n.desired.Value, o.desired.Value) {
				continue
			}
			conflicts = conflicts || greedyRivals(n.desired.Value, o.desired.Value) || yieldsToOne(n.desired.Value, o.desired.Value)
		}
		if conflicts != losers[key] {
			m.t.Errorf("%s loses=%v, but conflicts with one that does not: %v", key, losers[key], conflicts)
		}
	}
}

// deserved checks that of those that all claim anew the lowest keys win.
func (m *model) deserved() {
	g := New()
	in := map[string]string{}
	for key, text := range m.wanted { // in no order
		v := made(key, text)
		g.Want(v)
		for _, v := range append(v.Derived(), v) {
			in[v.Key] = v.Data.(string)
		}
	}
	g.ResolveClaims()
	wins := map[string]*Value{}
	for _, key := range slices.Sorted(maps.Keys(in)) {
		v := made(key, in[key])
		loses := yieldsTo(v, in)
		for _, w := range wins {
			loses = loses || greedyRivals(v, w)
		}
		if !loses {
			wins[key] = v
		}
		if g.nodes.Get(key).LosesClaim() != loses {
			m.t.Errorf("from scratch %s loses=%v, want %v", key, !loses, loses)
		}
	}
}

func yieldsTo(v *Value, in map[string]string) bool {
	for key, text := range in {
		if key != v.Key && yieldsToOne(v, made(key, text)) {
			return true
		}
	}
	return false
}

// yieldsToOne says that a wants only together with others what b wants alone.
func yieldsToOne(a, b *Value) bool {
	for _, x := range a.Claims() {
		for _, y := range b.Claims() {
			if x.Resource == y.Resource && x.Yields && !y.Yields {
				return true
			}
		}
	}
	return false
}

func greedyRivals(a, b *Value) bool {
	for _, x := range a.Claims() {
		for _, y := range b.Claims() {
			if x.Resource == y.Resource && !x.Yields && !y.Yields {
				return true
			}
		}
	}
	return false
}
