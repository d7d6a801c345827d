package scheduler

import (
	"context"
	"sync"
)

// Sync waits until all transactions that were submitted before have ended, and all requests
// and notifications that the scheduler handled in between.
func (s *Scheduler) Sync(ctx context.Context) error {
	return s.runInLoop(ctx, func(context.Context) {})
}

// Pause waits until the present transaction has ended, and prevents the next one until
// release is called or the scheduler ends. Requests wait meanwhile. If ctx ends first,
// nothing is paused.
func (s *Scheduler) Pause(ctx context.Context) (release func()) {
	resume := make(chan struct{})
	wait := func(running context.Context) {
		select {
		case <-resume:
		case <-running.Done():
		}
	}
	select {
	case s.requests <- wait:
	case <-s.stopped:
	case <-ctx.Done():
	}
	return sync.OnceFunc(func() { close(resume) })
}
