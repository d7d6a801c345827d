package graph

import (
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/lowest"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// A resource is what values claim. The graph knows it while a version claims it.
type resource struct {
	of     string
	claims []*claim
	state  resourceState
	saved  bool // a copy is in the journal, or a plan has made it
}

// A resourceState says what the claims on a resource are like.
type resourceState uint8

const (
	shared    resourceState = iota // all of them yield, so nobody holds it alone
	exclusive                      // one does not yield, and the holder is decided
	undecided                      // one does not yield, and the holder is not decided yet
)

// A claim is that of one version on one resource.
type claim struct {
	*value.Claim
	v   *version
	on  *resource
	pos int32 // index in on.claims
	claimResult
}

// A claimResult says which node holds a resource.
type claimResult struct {
	holder *Node // the other node that holds it; nil: none
	lost   bool  // holder keeps it; false: holder is about to leave
}

// resource returns the resource with a name; nil: nobody claims it.
func (g *Graph) resource(of string) *resource {
	r := g.resources.Get(of)
	if r == nil && g.planning() {
		r = g.journal.resources[of]
	}
	return r
}

// stake makes a claim of a version, the one with this index. It counts as granted until ResolveClaims.
func (g *Graph) stake(v *version, index int) {
	of := v.Claims()[index].Resource
	r := g.resource(of)
	switch {
	case r != nil:
	case g.planning():
		r = &resource{of: of, saved: true}
		g.journal.resources[of] = r
	default:
		r = &resource{of: of}
		g.resources.Add(r)
	}
	g.editResource(r)
	c := &v.claims()[index]
	*c = claim{Claim: &v.Claims()[index], v: v, on: r, pos: int32(len(r.claims))}
	r.claims = append(r.claims, c)
	g.claimed(c)
}

// withdraw removes a claim of a version that is not in use any more. A plan keeps the resource, for those that are restored.
func (g *Graph) withdraw(c *claim) {
	r := c.on
	g.editResource(r)
	last := len(r.claims) - 1
	r.claims[c.pos] = r.claims[last]
	r.claims[c.pos].pos = c.pos
	r.claims = slices.Delete(r.claims, last, last+1)
	if last == 0 && !g.planning() {
		g.resources.Delete(r.of)
	}
}

// hasClaims reports that a version of n claims something, or that n holds something as an earlier version did.
func (n *Node) hasClaims() bool {
	return n.claimRank != value.Newcomer || n.desired.hasClaims() || n.actual.hasClaims()
}

// hasClaims reports that v claims something; a nil version does not.
func (v *version) hasClaims() bool { return v != nil && v.ClaimSet() != nil }

// rankDesired ranks n, whose desired version has replaced old.
func (g *Graph) rankDesired(n *Node, old *version) {
	if n.actual != nil {
		g.edit(n).claimRank = n.claimant().rankAfter(n.actual)
	} else {
		g.edit(n).claimRank = min(n.claimRank, n.claimant().rankAfter(old))
	}
}

// reopenAll marks the claims of versions as unresolved.
func (g *Graph) reopenAll(versions ...*version) {
	for _, v := range versions {
		g.reopenClaims(v)
	}
}

// reopenClaims marks the claims of v as unresolved. It is called when v becomes desired or
// actual, or stops to be, and when the rank of its node changes.
func (g *Graph) reopenClaims(v *version) {
	if !v.hasClaims() {
		return
	}
	if v.refs == 0 { // not in use any more
		for _, c := range v.Claims() {
			g.reopen(g.resource(c.Resource))
		}
		return
	}
	claims := v.claims()
	for i := range claims {
		g.reopen(claims[i].on)
	}
}

// reopen marks one resource as unresolved. A resource with only yielding claims needs no resolution: all of them share it.
func (g *Graph) reopen(r *resource) {
	if r != nil && r.state == exclusive {
		g.editResource(r).state = undecided
		g.unresolved = append(g.unresolved, r)
	}
}

// claimed notes that the resource has a claim that does not yield, if c is one.
func (g *Graph) claimed(c *claim) {
	if !c.Yields && c.on.state == shared {
		g.editResource(c.on).state = exclusive
	}
}

// ResolveClaims assigns every unresolved resource. Next calls it first. Call it before reading
// states while no operation has been asked for yet. A node that loses one claim withdraws its
// others, which may reopen those. This terminates: a withdrawal only helps nodes that come later
// in a fixed order (see Outranks).
func (g *Graph) ResolveClaims() {
	var losers []*Node
	for len(g.unresolved) > 0 {
		g.Pace()
		r := g.unresolved[0]
		g.unresolved = g.unresolved[1:]
		g.editResource(r).state = shared
		var all lowest.Claimants[*Node]
		for _, c := range r.claims {
			g.claimed(c)
			all.Add(c.competition())
		}
		for _, c := range r.claims {
			g.setResult(c, &all)
			if n := c.v.node; n.claimRank != value.Newcomer && n.actual == nil && c.lost {
				losers = append(losers, n)
			}
		}
	}
	g.unresolved = nil
	g.resetRanks(losers)
}

// competition describes the claim for the choice of a holder.
func (c *claim) competition() lowest.Claim[*Node] {
	n := c.v.node
	return lowest.Claim[*Node]{By: n, Yields: c.Yields, Stands: n.actual == c.v, Competes: c.v == n.claimant(), GivesUp: c.losesAnother()}
}

// losesAnother reports whether the version has lost another claim. It then gives up this
// one, so that a value that cannot be applied keeps nothing from others.
func (c *claim) losesAnother() bool {
	others := c.v.lostClaims()
	if c.lost {
		others--
	}
	return others > 0
}

// setResult stores the result of a claim. One that another node holds counts as an unmet dependency.
func (g *Graph) setResult(c *claim, all *lowest.Claimants[*Node]) {
	holder, lost := all.Result(c.competition())
	is, was := claimResult{holder, lost}, c.claimResult
	if is == was {
		return
	}
	g.editClaim(c).claimResult = is
	switch {
	case was.holder == nil:
		g.oneUnmet(c.v)
	case is.holder == nil:
		g.oneMet(c.v)
	}
	g.touch(c.v.node)
	g.push(c.v.node)
	if is.lost != was.lost {
		g.countLost(c)
	}
}

// countLost counts a claim that was lost or won. It reopens the other claims of the version if
// one of them now loses another one, or no longer does. With two other lost claims, none does.
func (g *Graph) countLost(c *claim) {
	m := g.editVersion(c.v).more
	others := m.lost
	if c.lost {
		m.lost++
	} else {
		m.lost--
		others--
	}
	if others < 2 {
		g.reopenClaims(c.v)
	}
}

// claimError returns nil if the desired version has lost no claim.
func (n *Node) claimError() error {
	var lost []value.LostClaim
	for _, c := range n.desired.claims() {
		if c.lost {
			lost = append(lost, value.LostClaim{Claim: c.Claim, Holder: c.holder.key})
		}
	}
	if lost == nil {
		return nil
	}
	return &value.ClaimError{Lost: lost}
}

// Outranks is the order in which nodes get resources: first by rank, then by key.
func (n *Node) Outranks(o *Node) bool {
	if n.claimRank != o.claimRank {
		return n.claimRank > o.claimRank
	}
	return n.key < o.key
}

// claimant returns the version of n that competes for resources: the desired one, or the
// actual one while the desired one is invalid. It may be nil.
func (n *Node) claimant() *version {
	if n.desired != nil && n.desired.Err() != nil {
		return n.actual
	}
	return n.desired
}

// rankAfter returns the rank of a node that moves from version had to v.
func (v *version) rankAfter(had *version) value.Rank {
	if v == nil || had == nil {
		return value.Newcomer
	}
	return value.RankAfter(v.ClaimSet(), had.ClaimSet())
}

// resetRank makes n a newcomer again.
func (g *Graph) resetRank(n *Node) {
	if n.claimRank == value.Newcomer {
		return
	}
	g.edit(n).claimRank = value.Newcomer
	g.reopenClaims(n.desired)
}

// resetRanks makes those losers newcomers that have no actual value. Each winner outranks
// them anyway, so nothing needs to be resolved again.
func (g *Graph) resetRanks(losers []*Node) {
	for _, n := range losers {
		if n.LosesClaim() {
			g.edit(n).claimRank = value.Newcomer
		}
	}
}
