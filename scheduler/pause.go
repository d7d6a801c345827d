package scheduler

import (
	"context"
	"sync"
)

// Pause waits for the end of what is under way, and has the scheduler begin nothing more
// until release is called, or the scheduler ends. What is asked of it meanwhile waits.
// When ctx ends before, nothing is paused.
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
