package scheduler

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/published"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// A Status describes one value at one time. It is immutable.
type Status struct {
	Key   string
	State State
	// Last is the last operation; VALIDATE if the newest intent was refused. A PENDING value that
	// does not exist, and had no operation so far, has CREATE, which waits.
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
	// Unknown means that nobody knows whether the value exists: its connection is lost, or its kind could
	// not be read back since. The details say why. Actual and Meta are nil then.
	Unknown bool
	// Waits are the unmet dependencies if State is PENDING.
	Waits []Dependency
	// Base is the key of the base of a derived value; empty: it is a base value.
	Base string
	// Descriptor is the name of the descriptor; empty: none has the key.
	Descriptor string
	// Meta is the metadata of the actual value; nil: none.
	Meta any

	of *published.Status // nil: the Status does not come from a Scheduler
}

// statusOf returns the status of a value as readers see it.
func statusOf(x *published.Status) *Status {
	st := &Status{
		Key: x.Key(), State: State(x.State), Last: Verb(x.Last), Err: x.Err(), Since: x.Since(),
		Desired: kind.Declared(x.Desired), Actual: kind.Message(x.Actual), Meta: x.Meta,
		Base: x.Base(), Descriptor: x.DescriptorName(), Waits: publicDependencies(x.Unmet()), of: x,
	}
	if x.Unknown {
		st.Unknown, st.Actual, st.Meta = true, nil, nil
	}
	switch st.State {
	case Pending:
		st.Details = value.Labels(x.Unmet())
	case Invalid:
		st.Details = models.Fields(st.Err)
	default:
		st.Details = kind.Warnings(x.Desired)
	}
	return st
}

// Normalized returns the desired value as Descriptor.Normalize returns it; without a desired
// value, the actual one. Nobody may change it.
func (st *Status) Normalized() proto.Message { return kind.Message(st.of.Value()) }

// Dependencies returns the dependencies of the value.
func (st *Status) Dependencies() []Dependency {
	v := st.of.Value()
	if v == nil {
		return nil
	}
	return publicDependencies(v.Deps)
}

// Derived returns the keys of the values that are derived from it.
func (st *Status) Derived() []string {
	v := st.of.Value()
	if v == nil {
		return nil
	}
	out := make([]string, len(v.Derived()))
	for i, d := range v.Derived() {
		out[i] = d.Key
	}
	return out
}

// Warnings names the fields of the desired value that its descriptor ignores.
func (st *Status) Warnings() []string { return kind.Warnings(st.of.Value()) }

// All returns a consistent snapshot of all statuses, in no order. No transaction waits for it. It has those of
// Found.Shown, too.
func (s *Scheduler) All() iter.Seq[*Status] {
	return func(yield func(*Status) bool) {
		for x := range s.compact() {
			if !yield(statusOf(x)) {
				return
			}
		}
	}
}

// compact yields the statuses of all values that the graph has, and of those that it does not keep.
func (s *Scheduler) compact() iter.Seq[*published.Status] {
	return func(yield func(*published.Status) bool) {
		moment := s.shown.Now()
		for x := range s.statuses.All() {
			moment.Hide(x)
			if !yield(x) {
				return
			}
		}
		moment.Rest()(yield)
	}
}

// Statuses returns the statuses of all values with the key prefix, sorted by key. They
// form one consistent snapshot. No transaction waits for it.
func (s *Scheduler) Statuses(prefix string) []*Status {
	var out []*Status
	for x := range s.compact() {
		if strings.HasPrefix(x.Key(), prefix) {
			out = append(out, statusOf(x))
		}
	}
	slices.SortFunc(out, func(a, b *Status) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// Status returns the status of the value under key, and whether there is one.
func (s *Scheduler) Status(key string) (*Status, bool) {
	x := cmp.Or(s.statuses.Find(key), s.shown.Find(key))
	if x == nil {
		return nil, false
	}
	return statusOf(x), true
}
