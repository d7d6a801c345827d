package scheduler

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// A Status is what is known of one value at one time. It is immutable.
type Status struct {
	Key             string
	State           State
	Last            Verb // the last operation done, VALIDATE if the newest intent was refused
	Err             error
	Details         []string      // PENDING: labels of unmet dependencies; INVALID: paths of invalid fields; else warnings of Want
	Since           time.Time     // of State
	Desired, Actual proto.Message // Want is as declared; Have is normalized
	Waits           []Dependency  // PENDING: the unmet dependencies
	Base            string        // of a derived value: the key it is derived from
	Descriptor      string        // empty: none
	Meta            any

	value *graph.Value // what is wanted, else what stands
	txn   uint32       // the last transaction that did something to it, or what fits of its number
}

// Dependencies are those of the value.
func (st *Status) Dependencies() []Dependency {
	if st.value == nil {
		return nil
	}
	return st.value.Deps
}

// Derived are the keys of the values that are derived from it while it stands.
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

// Statuses returns the status of each value whose key has the prefix, sorted by
// key, all as of one moment. No transaction waits for it.
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

// Status returns the status of the value under key, and whether there is any.
func (s *Scheduler) Status(key string) (*Status, bool) {
	st := s.statuses.Find(key)
	return st, st != nil
}
