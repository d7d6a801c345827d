package scheduler

import (
	"context"
	"time"

	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/scheduler/internal/idle"
)

// newWork returns the channels of work that may begin: none while too many runs are parked.
func (s *Scheduler) newWork(due <-chan time.Time) (requests chan func(context.Context), observed <-chan struct{}, retries <-chan time.Time) {
	if len(s.parked) >= mostParked {
		return nil, nil, nil
	}
	return s.requests, s.observations.Ready(), due
}

// next waits for work, and lets plans use the graph meanwhile. It returns nil when ctx ends. Work that
// comes interrupts a plan first, so no other goroutine uses the graph while the work runs.
func (s *Scheduler) next(ctx context.Context, due <-chan time.Time) (do func(context.Context)) {
	var plan *idle.Work // uses the graph
	interrupt := func() { plan.Interrupt(); plan = nil }
	defer func() {
		s.pulse.Work() // a plan that never ends makes the loop stuck
		plan.Interrupt()
	}()
	for {
		plans, done := s.idle.Offers, (<-chan struct{})(nil)
		requests, observed, retries := s.newWork(due)
		var parked *run
		if plan != nil {
			plans, done = nil, plan.Done()
		} else {
			parked = s.readyRun(ctx)
		}
		s.pulse.Rest()
		select {
		case <-ctx.Done():
			s.pulse.Work()
			plan.Interrupt()
			s.awaitParked(ctx)
			return nil
		case <-wake.If(parked != nil):
			return func(ctx context.Context) { s.resume(ctx, parked) }
		case <-s.reader.Ready():
			s.pulse.Work()
			interrupt() // a parked run may go on
		case <-s.executor.Finished():
			s.deliver(s.executor.TakeFinished())
			interrupt()
		case <-s.executor.Overdue():
			s.deliver(s.executor.TakeOverdue(ctx))
			interrupt()
		case do := <-requests:
			return do
		case <-observed:
			return s.handleObservations
		case <-s.inbox.Ready():
			return func(ctx context.Context) { s.handleInbox(ctx, s.inbox.Take()) }
		case <-s.executor.Late():
			return func(ctx context.Context) { s.handleLateResults(ctx, s.executor.TakeLate()) }
		case <-retries:
			return s.retryDue
		case plan = <-plans:
		case <-done:
			plan = nil
		}
	}
}
