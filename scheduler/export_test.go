package scheduler

import (
	"context"
	"sync"
)

// Pause waits until the present transactions have ended, and prevents the next one until
// release is called or the scheduler ends. Requests wait meanwhile. If ctx ends first,
// nothing is paused.
func (s *Scheduler) Pause(ctx context.Context) (release func()) {
	paused, resume := make(chan struct{}), make(chan struct{})
	release = sync.OnceFunc(func() { close(resume) })
	wait := func(running context.Context) {
		for len(s.open) > 0 {
			s.proceed(running)
		}
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
