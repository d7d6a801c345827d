package scheduler

import (
	"context"
	"fmt"
	"sync"
)

// Sync waits until all transactions that were submitted before have ended, and all
// requests and notifications that the scheduler handled in between. Tests and tools use it
// to wait for the effects of Submit, Observe and Refresh.
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

// whenEnded calls do when the runs that are parked now have ended. Runs that begin later
// do not count, so do is called even if the scheduler is never idle.
func (s *Scheduler) whenEnded(do func()) {
	left := len(s.parked)
	if left == 0 {
		do()
		return
	}
	for _, r := range s.parked {
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

// Pause waits until the present transactions have ended, and prevents the next one until
// release is called or the scheduler ends. Requests wait meanwhile. If ctx ends first,
// nothing is paused.
func (s *Scheduler) Pause(ctx context.Context) (release func()) {
	paused, resume := make(chan struct{}), make(chan struct{})
	release = sync.OnceFunc(func() { close(resume) })
	wait := func(running context.Context) {
		s.awaitParked(running)
		close(paused)
		s.pulse.Rest()
		select {
		case <-resume:
		case <-running.Done():
		}
	}
	select {
	case s.requests <- wait:
	case <-s.stopped:
		return release
	case <-ctx.Done():
		return release
	}
	select {
	case <-paused:
	case <-ctx.Done():
		release()
	}
	return release
}
