package scheduler

import (
	"context"
	"time"

	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/scheduler/internal/idle"
)

// newWork returns the channels of work that begins runs: none while too many are open.
func (s *Scheduler) newWork(due <-chan time.Time) (requests chan func(context.Context), observed <-chan struct{}, retries <-chan time.Time) {
	if len(s.open) >= mostOpen {
		return nil, nil, nil
	}
	return s.requests, s.observations.Ready(), due
}

// next waits for work while a run may begin, and returns what begins one, or has an open run go on and returns nil. Meanwhile, plans
// use the graph. Work that comes interrupts a plan first, so no other goroutine uses the graph while the work runs.
func (s *Scheduler) next(ctx context.Context, due <-chan time.Time) (do func(context.Context)) {
	var plan *idle.Work // uses the graph
	interrupt := func() { plan.Interrupt(); plan = nil }
	defer func() {
		s.pulse.Work() // a plan that never ends makes the loop stuck
		plan.Interrupt()
	}()
	for {
		ready, plans, done := s.beside(ctx, plan)
		requests, observed, retries := s.newWork(due)
		s.pulse.Rest()
		select {
		case <-ctx.Done():
			return nil
		case <-wake.If(ready != nil):
			s.pulse.Work()
			s.drive(ctx, ready)
			return nil
		case <-s.landing.C:
			s.pulse.Work()
			interrupt()
			s.landSlow(ctx)
			return nil
		case <-s.reader.Ready():
			s.pulse.Work()
			interrupt() // a run may go on
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

// beside returns what may go on while a plan is made, or while none is: its end, or a run and the plans that wait.
func (s *Scheduler) beside(ctx context.Context, plan *idle.Work) (ready *run, plans chan *idle.Work, done <-chan struct{}) {
	if plan != nil {
		return nil, nil, plan.Done()
	}
	ready = s.readyRun(ctx)
	if ready == nil && !s.graph.Flying() {
		plans = s.idle.Offers
	}
	return ready, plans, nil
}
