// Package published keeps what is published of each value in little memory: a [Status] has a third of the
// size of the scheduler.Status that readers get, which package scheduler makes when somebody reads. A [Table] has
// the statuses of the values that the graph knows. [Shown] has those of values that the system has made by itself.
//
// A Status is immutable except for Txn, which belongs to the goroutine of the scheduler.
package published

import (
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/counters"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// A Status is what is published of one value. The zero Status is that of an unknown key.
// A test limits it to 64 bytes, a size class in which Go allocates.
type Status struct {
	Desired, Actual *graph.Value // nil: none
	Meta            any          // of the actual value; nil: none
	base            *graph.Node  // of a derived value; nil: none
	since           int64        // ns since 1970
	rare            *rare        // nil for most values
	Txn             uint32       // the last transaction that changed it
	State, Last     uint8        // a scheduler.State and a scheduler.Verb
	Unknown         bool         // nobody knows whether Actual still exists, or whether there is none
}

// A rare has what most values do not have.
type rare struct {
	err     error
	unmet   []value.Dep
	key     string           // of a status without a value
	removed *kind.Descriptor // of a value that was removed
}

// Of returns the status of n, in a state since a time.
func Of(n *graph.Node, state uint8, since time.Time) *Status {
	s := &Status{
		Desired: n.Desired(), Actual: n.Actual(), Meta: n.Meta(), base: n.Base(),
		since: since.UnixNano(), State: state, Unknown: n.Unknown(),
	}
	if err := kind.ErrOf(n); err != nil || s.Value() == nil {
		s.rare = &rare{err: err, key: n.Key()}
	}
	return s
}

// OfShown returns the status of a value that was found and has no node, in a state since a time.
func OfShown(actual *graph.Value, state uint8, since time.Time) *Status {
	return &Status{Actual: actual, since: since.UnixNano(), State: state}
}

// Await adds the dependencies for which the value waits. It is called before the status is
// published.
func (s *Status) Await(unmet []value.Dep) {
	if len(unmet) > 0 {
		s.rare = &rare{err: s.Err(), key: s.Key(), unmet: unmet}
	}
}

// After returns what is published of a value when it is removed.
func (s *Status) After(state, last uint8, since time.Time) *Status {
	return &Status{
		base: s.base, since: since.UnixNano(), State: state, Last: last,
		rare: &rare{key: s.Key(), removed: s.Descriptor()},
	}
}

// Key is the key of the value.
func (s *Status) Key() string {
	if s.rare != nil {
		return s.rare.key
	}
	return s.Value().Key
}

// Continue takes over what did not change since the status before. It is called before the
// status is published.
func (s *Status) Continue(before *Status) {
	s.Txn = before.Txn
	if before.State == s.State {
		s.since = before.since
	}
}

// Mark notes the last transaction that changed the value. It does nothing if s is nil.
func (s *Status) Mark(txn uint32) {
	if s != nil {
		s.Txn = txn
	}
}

// Known returns a copy; for nil it returns the zero Status.
func (s *Status) Known() Status {
	if s == nil {
		return Status{}
	}
	return *s
}

// Value is the desired value, else the actual one; nil: none, or s is nil.
func (s *Status) Value() *graph.Value {
	switch {
	case s == nil:
		return nil
	case s.Desired != nil:
		return s.Desired
	}
	return s.Actual
}

// Descriptor is the descriptor of the actual value, else of the desired one; nil: none has it.
func (s *Status) Descriptor() *kind.Descriptor {
	switch {
	case s.Actual != nil:
		return kind.OfValue(s.Actual)
	case s.Desired == nil && s.rare != nil:
		return s.rare.removed
	}
	return kind.OfValue(s.Desired)
}

// DescriptorName is the name of the descriptor; empty: none has the key.
func (s *Status) DescriptorName() string {
	if d := s.Descriptor(); d != nil {
		return d.Name
	}
	return ""
}

// Place returns what the counters distinguish about s. A value without a status has no place.
func (s *Status) Place() counters.Place {
	if s == nil {
		return counters.Place{}
	}
	return counters.Place{Exists: true, Descriptor: s.DescriptorName(), State: int32(s.State)}
}

// Roles reports whether n, of which s is the last published status, is a derived value with a descriptor,
// and whether it is one without, a property.
func (s *Status) Roles(n *graph.Node) (derived, property bool) {
	isPart := n.Base() != nil || s.Base() != ""
	described := kind.Of(n) != nil || s.Descriptor() != nil
	return isPart && described, isPart && !described
}

// Base is the key of the base of a derived value; empty: it is a base value.
func (s *Status) Base() string {
	if s.base == nil {
		return ""
	}
	return s.base.Key()
}

// Since is the time from which the value has its state.
func (s *Status) Since() time.Time { return time.Unix(0, s.since) }

// Err is why the newest intent was refused, or why the last operation failed.
func (s *Status) Err() error {
	if s.rare == nil {
		return nil
	}
	return s.rare.err
}

// Unmet are the dependencies for which the value waits.
func (s *Status) Unmet() []value.Dep {
	if s.rare == nil {
		return nil
	}
	return s.rare.unmet
}
