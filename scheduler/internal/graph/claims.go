package graph

import (
	"github.com/keyplane/keyplane/scheduler/internal/lowest"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

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
	edges := v.edges()
	if edges == nil { // not in use any more
		for _, c := range v.Claims() {
			g.reopenClaim(g.Node(c.Of))
		}
		return
	}
	for i := range v.Claims() {
		g.reopenClaim(edges[len(v.Deps)+i].to)
	}
}

// reopenClaim marks one resource as unresolved. A resource with only yielding claims needs
// no resolution: all of them share it.
func (g *Graph) reopenClaim(of *Node) {
	if of != nil && of.resource == exclusive {
		g.bookkeep(of).resource = undecided
		g.unresolved = append(g.unresolved, of)
	}
}

// claimed notes that the resource n has a claim that does not yield, if e, which is a claim, is one.
func (g *Graph) claimed(n *Node, e *edge) {
	if !e.claim.Yields && n.resource == shared {
		g.bookkeep(n).resource = exclusive
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
		of := g.unresolved[0]
		g.unresolved = g.unresolved[1:]
		g.bookkeep(of).resource = shared
		var all lowest.Claimants[*Node]
		for _, e := range of.in() {
			g.claimed(of, e)
			all.Add(e.asClaim())
		}
		for _, e := range of.in() {
			g.setResult(e, &all)
			if n := e.v.node; n.claimRank != value.Newcomer && n.actual == nil && e.claim.lost {
				losers = append(losers, n)
			}
		}
	}
	g.unresolved = nil
	g.resetRanks(losers)
}

// asClaim describes the claim of an edge.
func (e *edge) asClaim() lowest.Claim[*Node] {
	n := e.v.node
	return lowest.Claim[*Node]{By: n, Yields: e.claim.Yields, Stands: e.ofActual(), Competes: e.v == n.claimant(), GivesUp: e.losesAnother()}
}

// losesAnother reports whether the version has lost another claim. It then gives up this
// one, so that a value that cannot be applied keeps nothing from others.
func (e *edge) losesAnother() bool {
	others := *e.v.lostClaims()
	if e.claim.lost {
		others--
	}
	return others > 0
}

// setResult stores the result of a claim. A lost one counts as an unmet dependency.
func (g *Graph) setResult(e *edge, all *lowest.Claimants[*Node]) {
	holder, lost := all.Result(e.asClaim())
	is, was := claimResult{holder, lost}, e.claim.claimResult
	if is == was {
		return
	}
	g.editEdge(e).claim.claimResult = is
	if is.holder == nil {
		g.meet(e)
	} else {
		g.unmeet(e)
	}
	g.touch(e.v.node)
	g.push(e.v.node)
	if is.lost != was.lost {
		g.countLost(e)
	}
}

// countLost counts a claim that was lost or won. It reopens the other claims of the version if
// one of them now loses another one, or no longer does. With two other lost claims, none does.
func (g *Graph) countLost(e *edge) {
	n := e.v.lostClaims()
	others := *n
	if e.claim.lost {
		*n++
	} else {
		*n--
		others--
	}
	if others < 2 {
		g.reopenClaims(e.v)
	}
}

// claimError returns nil if the desired version has lost no claim.
func (n *Node) claimError() error {
	var reasons []error
	for _, e := range n.desired.edges() {
		if e.isLost() {
			reasons = append(reasons, e.claim.Texts.Conflict(e.claim.holder.key))
		}
	}
	if reasons == nil {
		return nil
	}
	return &value.ClaimError{Reasons: reasons}
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
