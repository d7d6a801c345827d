package scheduler

import (
	"errors"
	"fmt"
)

// These errors are for mistakes in the use of a Scheduler. Nothing is done then.
var (
	// ErrRunning is for what must come before Run, and for a second Run.
	ErrRunning = errors.New("Run has been called")
	// ErrRegistered is for what must come before the descriptors of a southbound are registered.
	ErrRegistered = errors.New("a descriptor of this connection is registered already")
	// ErrTaken is for a name or keys that another descriptor has.
	ErrDuplicate = errors.New("another descriptor has this name or these keys")
	// ErrUnknownDescriptor is for a name under which no descriptor is registered.
	ErrUnknownDescriptor = errors.New("no descriptor has this name")
	// ErrNoValue is for the zero Value.
	ErrNoValue = errors.New("the value is empty; only Scheduler.Value and Decode make values")
	// ErrOtherScheduler is for a Value that another Scheduler has made.
	ErrOtherScheduler = errors.New("the value was made by another Scheduler")
	// ErrWrongKey is for a Change without a key, or with another one than its Value.
	ErrWrongKey = errors.New("the key of the change is not that of its value")
)

// check says what is wrong with the changes of txn as such.
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
		return fmt.Errorf("%w, which is %q", ErrWrongKey, c.Value.Key())
	}
	return nil
}
