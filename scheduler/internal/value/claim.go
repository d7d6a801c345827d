package value

import (
	"slices"
	"strings"
)

// A Claim reserves a resource that only one value can have. Package scheduler has it under the same name, with its rules.
type Claim struct {
	// Resource is unique among all descriptors: "host-name/tap0".
	Resource string
	// Field is the path of the field that makes the claim, and Value its value. The error of a
	// value that loses the claim names both.
	Field string
	Value any
	// Want describes the allowed values: "a name that no other interface has".
	Want string
	// Yields makes the claim shared: any number of yielding values may hold the resource,
	// while no other value claims it.
	Yields bool
}

// Label is shown while another value still uses the resource.
func (c *Claim) Label() string { return strings.TrimPrefix(c.Resource, identityClaim) + "-is-free" }

// coveredBy reports that a node which holds had also holds c.
func (c Claim) coveredBy(had Claim) bool {
	return c.Resource == had.Resource && (c.Yields || !had.Yields)
}

// A LostClaim is one on a resource that another value holds.
type LostClaim struct {
	*Claim
	Holder string // key
}

// A ClaimError lists the claims of a value that other values hold.
type ClaimError struct{ Lost []LostClaim }

// Error has one line for each lost claim.
func (e *ClaimError) Error() string {
	lines := make([]string, len(e.Lost))
	for i, l := range e.Lost {
		lines[i] = l.Holder + " has " + l.Resource
	}
	return strings.Join(lines, "\n")
}

// fewClaims is the number of claims up to which a search is faster than a map.
const fewClaims = 8

// A Rank orders claimants. It survives re-creation and waiting for dependencies. It
// ends when the actual value vanishes, when it cannot be created again, and when another
// one wins.
type Rank uint8

// The ranks, lowest first.
const (
	Newcomer      Rank = iota // holds no resource that it claims
	PartialHolder             // holds some of them
	FullHolder
)

// RankAfter returns the rank of a claimant that had the one set of claims and has another; nil: none.
func RankAfter(now, had *[]Claim) Rank {
	switch {
	case now == nil || had == nil:
		return Newcomer
	case now == had: // as when a created value becomes actual
		return FullHolder
	}
	switch covered(*now, *had) {
	case 0:
		return Newcomer
	case len(*now):
		return FullHolder
	}
	return PartialHolder
}

// covered returns how many claims are covered by one of had. A value may have thousands of claims,
// such as one for each of its NAT mappings.
func covered(claims, had []Claim) (n int) {
	covers := coverage(had)
	for _, c := range claims {
		if covers(c) {
			n++
		}
	}
	return n
}

// coverage returns a function that reports whether one of the claims in had covers c.
func coverage(had []Claim) func(c Claim) bool {
	if len(had) <= fewClaims {
		return func(c Claim) bool { return slices.ContainsFunc(had, c.coveredBy) }
	}
	firm := make(map[string]bool, len(had)) // by resource: held without yielding
	for _, h := range had {
		firm[h.Resource] = firm[h.Resource] || !h.Yields
	}
	return func(c Claim) bool {
		isFirm, held := firm[c.Resource]
		return held && (c.Yields || isFirm)
	}
}
