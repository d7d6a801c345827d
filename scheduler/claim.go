package scheduler

import (
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// A Claim reserves a resource that only one value can have, such as a name in the kernel.
// The holder keeps the resource while it declares the claim, also while it is recreated or
// pending. If it becomes free, the value with the lowest key gets it. All other values
// with this claim are INVALID and not applied; their error names the holder. A value that does not get all its claims
// holds none. A value that vanished or could not be created has no precedence. Neither has
// any value after the system restarts.
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

// graphClaims returns claims in the form of the graph; nil: none.
func graphClaims(claims []Claim) *[]value.Claim {
	if len(claims) == 0 {
		return nil
	}
	out := make([]value.Claim, len(claims))
	for i := range claims {
		c := &claims[i]
		out[i] = value.Claim{Of: "claim on " + c.Resource, Yields: c.Yields, Texts: (*kind.Claimed)(c)}
	}
	return &out
}
