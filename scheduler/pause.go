package scheduler

import (
	"context"
	"sync"
)

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
