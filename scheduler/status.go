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
	Key             string
	State           State
	Last            Verb // the last operation; VALIDATE if the newest intent was refused
	Err             error
	Details         []string      // PENDING: labels of unmet dependencies; INVALID: paths of invalid fields; else warnings of Desired
	Since           time.Time     // of State
	Desired, Actual proto.Message // Desired is as declared; Actual is normalized
	Waits           []Dependency  // PENDING: the unmet dependencies
	Base            string        // of a derived value: the key of its base
	Descriptor      string        // empty: none
	Meta            any

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
