package value

import (
	"slices"
	"strings"
)

// An Identity is what a value is about, if several keys can name it. The Resource is the key in canonical form; "": the kind has no
// identities.
type Identity Claim

// Identified is a kind whose values have identities.
type Identified interface {
	Identity(key string, data any) Identity
	// Renamed says that the item of one key is that of another one from now on. It is not called for plans.
	Renamed(from, to string)
}

// identityClaim begins the resources of claims on identities.
const identityClaim = "identity of "

// Claim is what values with the identity claim.
func (id Identity) Claim() Claim {
	id.Resource = identityClaim + id.Resource
	return Claim(id)
}

// Identity returns the identity that c claims; false: it claims something else.
func (c Claim) Identity() (key string, ok bool) { return strings.CutPrefix(c.Resource, identityClaim) }

// OfIdentity reports whether c is a claim on an identity.
func (c Claim) OfIdentity() bool { return strings.HasPrefix(c.Resource, identityClaim) }

// Claims returns the claims of a value with the identity: others, and the one on the identity.
func (id Identity) Claims(others []Claim) *[]Claim {
	out := append(slices.Clone(others), id.Claim())
	return &out
}

// WithoutIdentity returns the claims that are not on an identity; nil: none.
func WithoutIdentity(claims []Claim) *[]Claim {
	out := slices.DeleteFunc(slices.Clone(claims), Claim.OfIdentity)
	if len(out) == 0 {
		return nil
	}
	return &out
}
