package scheduler

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// A Claim is on something that one value alone can have, whatever its key: a name in
// the kernel, the ends of a tunnel. The value that has it keeps it for as long as it is
// declared to have it, also while it is made anew or waits for what it depends on; of those
// that come new to it the one with the lowest key gets it. The others are INVALID, nothing
// is called for them, and they do not stand, until it is theirs. A value that does not get
// all that it claims takes nothing. A value that vanished, or that could not be created, is
// as new as others; so all are when a system has restarted.
type Claim struct {
	Resource string // what is claimed, for all descriptors: "host-name/tap0"
	Field    string // the field that says so
	Value    any    // what it holds
	Want     string // what would be right: "a name that no other interface has"
	// Yields: any number may have it that yield, while none claims it that does not.
	Yields bool
}

// A ConflictError says that another value has what a value claims.
type ConflictError struct {
	Holder string // the key of the other value
	err    *models.FieldError
}

func (e *ConflictError) Error() string { return e.err.Error() }

func (e *ConflictError) Unwrap() error { return e.err }

// claims are those of a value, as the graph has them; nil: there are none.
func (d *descriptor) claims(key string, m proto.Message) *[]graph.Claim {
	if d.claimed == nil {
		return nil
	}
	claims := d.claimed(key, m)
	if len(claims) == 0 {
		return nil
	}
	out := make([]graph.Claim, len(claims))
	for i, c := range claims {
		out[i] = graph.Claim{Of: "claim on " + c.Resource, Label: c.Resource + "-is-free", Yields: c.Yields, Conflict: c.conflict}
	}
	return &out
}

func (c Claim) conflict(key string) error {
	want := fmt.Sprintf("%s (see %s)", c.Want, key)
	return &ConflictError{Holder: key, err: &models.FieldError{Field: c.Field, Value: c.Value, Expected: want}}
}

// errOf is what is wrong with n, as people are shown it.
func errOf(n *graph.Node) error {
	err := n.Err()
	if taken, ok := err.(*graph.ClaimError); ok { //nolint:errorlint // it is never wrapped
		return &invalidError{taken}
	}
	return err
}

// rivals are the keys of the values that err says have what somebody claims.
func rivals(err error) (out []string) {
	switch e := err.(type) { //nolint:errorlint // it unwraps what it meets itself
	case *ConflictError:
		out = append(out, e.Holder)
	case interface{ Unwrap() error }:
		out = rivals(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			out = append(out, rivals(one)...)
		}
	}
	return out
}
