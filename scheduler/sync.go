package scheduler

import (
	"context"
	"fmt"
)

// Sync waits until all transactions that were submitted before have ended, and all
// requests and notifications that the scheduler handled in between. Tests and tools use it
// to wait for the effects of Submit, Observe and Refresh. It does not wait for a read-back that comes later; see Refresh.
func (s *Scheduler) Sync(ctx context.Context) error {
	ended := make(chan struct{})
	if err := s.ask(ctx, func(context.Context) { s.whenEnded(func() { close(ended) }) }); err != nil {
		return err
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the scheduler to end: %w", ctx.Err())
	}
}

// whenEnded calls do when the runs that are open now have ended. Runs that begin later
// do not count, so do is called even if the scheduler is never idle.
func (s *Scheduler) whenEnded(do func()) {
	left := len(s.open)
	if left == 0 {
		do()
		return
	}
	for _, r := range s.open {
		done := r.done
		r.done = func(rec *Record) {
			if done != nil {
				done(rec)
			}
			if left--; left == 0 {
				do()
			}
		}
	}
}
