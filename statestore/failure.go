package statestore

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// ErrSilent says that the disk neither takes nor refuses what is written, such as one that is frozen for a copy, or whose
// server is away. Who saves something waits for it.
var ErrSilent = errors.New("the disk does not answer; changes wait for it")

// silence is how long a write may take before Failure and the log say so.
const silence = 3 * time.Second

// Failure returns why the newest changes are not written; nil: they are, or are about to be. It waits for no
// disk.
func (s *Store) Failure() error {
	if since := s.since.Load(); since != nil {
		if took := time.Since(*since); took >= silence {
			return fmt.Errorf("%w, for %v so far", ErrSilent, took.Round(time.Second))
		}
	}
	return s.failure.get()
}

// work notes that the caller, who holds mu, writes files until it calls end. If that takes long, the log says so, and
// when it is over.
func (s *Store) work() (end func()) {
	now := time.Now()
	s.since.Store(&now)
	timer := time.AfterFunc(silence, func() { s.log.Error("state cannot be written", "err", ErrSilent, "for_at_least", silence) })
	return func() {
		s.since.Store(nil)
		if !timer.Stop() {
			s.log.Info("the disk of the state answers again", "took", time.Since(now))
		}
	}
}

// A reason is an error that whoever holds mu sets, and anybody may read. The zero value is nil.
type reason struct{ err atomic.Pointer[error] }

func (r *reason) set(err error) { r.err.Store(&err) }

func (r *reason) get() error {
	if err := r.err.Load(); err != nil {
		return *err
	}
	return nil
}
