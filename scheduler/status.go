package scheduler

import (
	"iter"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// A Status describes one value at one time. It is immutable.
type Status struct {
	Key   string
	State State
	// Last is the last operation; VALIDATE if the newest intent was refused.
	Last Verb
	// Err is the reason of INVALID, UNIMPLEMENTED, FAILED and RETRYING; else nil.
	Err error
	// Details are the labels of the unmet dependencies if State is PENDING, the paths of the
	// invalid fields if it is INVALID, and otherwise the warnings about Desired.
	Details []string
	// Since is the time from which the value has State.
	Since time.Time
	// Desired is as declared; Actual is normalized. nil: there is none. Nobody may change them.
	Desired, Actual proto.Message
	// Waits are the unmet dependencies if State is PENDING.
	Waits []Dependency
	// Base is the key of the base of a derived value; empty: it is a base value.
	Base string
	// Descriptor is the name of the descriptor; empty: none has the key.
	Descriptor string
	// Meta is the metadata of the actual value; nil: none.
	Meta any

	value *graph.Value // the desired value, else the actual one
	txn   uint32       // the last transaction that changed it; see run.mark
}

// Normalized returns the desired value as Descriptor.Normalize returns it; without a desired
// value, the actual one. Nobody may change it.
func (st *Status) Normalized() proto.Message { return kind.Message(st.value) }

// Dependencies returns the dependencies of the value.
func (st *Status) Dependencies() []Dependency {
	if st.value == nil {
		return nil
	}
	return publicDependencies(st.value.Deps)
}

// Derived returns the keys of the values that are derived from it.
func (st *Status) Derived() []string {
	if st.value == nil {
		return nil
	}
	out := make([]string, len(st.value.Derived))
	for i, d := range st.value.Derived {
		out[i] = d.Key
	}
	return out
}

// Warnings names the fields of the desired value that its descriptor ignores.
func (st *Status) Warnings() []string { return kind.Warnings(st.value) }

// All returns a consistent snapshot of all statuses, in no order. No transaction waits for it.
func (s *Scheduler) All() iter.Seq[*Status] { return s.statuses.All() }

// Statuses returns the statuses of all values with the key prefix, sorted by key. They
// form one consistent snapshot. No transaction waits for it.
func (s *Scheduler) Statuses(prefix string) []*Status {
	var out []*Status
	for st := range s.statuses.All() {
		if strings.HasPrefix(st.Key, prefix) {
			out = append(out, st)
		}
	}
	slices.SortFunc(out, func(a, b *Status) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// Status returns the status of the value under key, and whether there is one.
func (s *Scheduler) Status(key string) (*Status, bool) {
	st := s.statuses.Find(key)
	return st, st != nil
}
