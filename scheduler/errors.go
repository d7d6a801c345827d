package scheduler

import (
	"errors"
	"fmt"
	"slices"

	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// ErrMisuse is the error of a call that can never be right. Its text names the mistake: a call
// after Run that must come before it, a second Run, a Connection after its descriptors, a name
// that no descriptor or more than one has, the zero Value, a Value of another Scheduler, or a
// Change whose key is empty or differs from that of its Value. The call has no effect.
var ErrMisuse = kind.ErrMisuse

// These are the mistakes in a Change.
var (
	errNoValue        = fmt.Errorf("%w: the value is empty; Scheduler.Value and Decode make values", ErrMisuse)
	errOtherScheduler = fmt.Errorf("%w: the value was made by another Scheduler", ErrMisuse)
	errNoKey          = fmt.Errorf("%w: the key is empty", ErrMisuse)
)

// NeedsNew marks an error of Create: the value under key, on which the value depends, exists, but has nothing left for
// this one. The scheduler deletes key and what depends on it, and creates all of it again. If Create then fails in the
// same way, it is retried like any other failure, and each attempt may have key created again once. The Linux side of a TAP needs it: only VPP makes one, together with its own side.
func NeedsNew(key string, err error) error { return &value.Renewal{Key: key, Err: err} }

// tooLate returns the error of a call after Run that must come before it.
func tooLate(call string) error {
	return fmt.Errorf("%w: %s comes before Run, which has been called", ErrMisuse, call)
}

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

// checkChange returns the mistake in one change. It runs on the caller's goroutine, so a
// wrong transaction costs the loop nothing.
func (s *Scheduler) checkChange(c Change) error {
	switch {
	case c.Value == nil && c.Key == "":
		return errNoKey
	case c.Value == nil:
		return nil
	case c.Value.v == nil:
		return errNoValue
	case c.Value.by != s:
		return errOtherScheduler
	case c.Value.Key() != c.Key:
		return fmt.Errorf("%w: the key of the change differs from the key of its value; expected %q", ErrMisuse, c.Value.Key())
	}
	return nil
}
