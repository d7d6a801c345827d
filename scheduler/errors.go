package scheduler

import (
	"errors"
	"fmt"
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// These errors report mistakes in the use of a Scheduler. The call has no effect.
var (
	// ErrRunning is returned by calls that must come before Run, and by a second Run.
	ErrRunning = errors.New("Run has been called")
	// ErrRegistered is returned by calls that must come before the descriptors of a
	// connection are registered.
	ErrRegistered = errors.New("a descriptor of this connection is registered already")
	// ErrDuplicate means that another descriptor has the name or the keys.
	ErrDuplicate = kind.ErrDuplicate
	// ErrUnknownDescriptor means that no registered descriptor has the name.
	ErrUnknownDescriptor = kind.ErrUnknownDescriptor
	// ErrNoValue is returned for the zero Value.
	ErrNoValue = errors.New("the value is empty; only Scheduler.Value and Decode make values")
	// ErrOtherScheduler is returned for a Value of another Scheduler.
	ErrOtherScheduler = errors.New("the value was made by another Scheduler")
	// ErrWrongKey is returned for a Change without a key, or with another key than its
	// Value.
	ErrWrongKey = errors.New("the key of the change differs from the key of its value")
)

// checked returns txn with the values of all changes, after validating the changes themselves.
// It does not modify the caller's changes.
func (s *Scheduler) checked(txn Txn) (Txn, error) {
	if slices.ContainsFunc(txn.Changes, func(c Change) bool { return c.message != nil }) {
		txn.Changes = slices.Clone(txn.Changes)
		for i := range txn.Changes {
			s.prepare(&txn.Changes[i])
		}
	}
	var errs []error
	for i, c := range txn.Changes {
		if err := s.checkChange(c); err != nil {
			errs = append(errs, fmt.Errorf("change %d of %q: %w", i+1, c.Key, err))
		}
	}
	return txn, errors.Join(errs...)
}

// prepare makes the value of a change by Want.
func (s *Scheduler) prepare(c *Change) {
	if c.message == nil || c.Key == "" {
		return
	}
	v, err := s.Value(c.Key, c.message)
	if err != nil {
		*c = Refuse(c.Key, err)
		return
	}
	*c = v.Change()
}

func (s *Scheduler) checkChange(c Change) error {
	switch {
	case c.Value == nil && c.Key == "":
		return fmt.Errorf("%w: the key is empty", ErrWrongKey)
	case c.Value == nil:
		return nil
	case c.Value.v == nil:
		return ErrNoValue
	case c.Value.by != s:
		return ErrOtherScheduler
	case c.Value.Key() != c.Key:
		return fmt.Errorf("%w; expected %q", ErrWrongKey, c.Value.Key())
	}
	return nil
}
