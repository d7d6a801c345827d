package scheduler

import (
	"context"
	"sync"
	"time"
)

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

// HastenOnce has the timer of the next wait fire at once, and not again for parkAfter. A loop that is not scheduled between the
// start of a timer and a look at the clock sees the same: the timer has fired, and less than parkAfter has passed.
func (s *Scheduler) HastenOnce(ctx context.Context) error {
	return s.ask(ctx, func(context.Context) {
		fires := s.parking.C
		hastened := make(chan time.Time, 1)
		hastened <- time.Now()
		s.parking.C = hastened
		go func() {
			for first := true; ; first = false {
				select {
				case at := <-fires:
					if !first {
						hastened <- at
					}
				case <-s.stopped:
					return
				}
			}
		}()
	})
}
