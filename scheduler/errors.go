package scheduler

import (
	"errors"
	"fmt"

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

// check validates the changes of txn themselves.
func (s *Scheduler) check(txn Txn) error {
	var errs []error
	for i, c := range txn.Changes {
		if err := s.checkChange(c); err != nil {
			errs = append(errs, fmt.Errorf("change %d of %q: %w", i+1, c.Key, err))
		}
	}
	return errors.Join(errs...)
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
