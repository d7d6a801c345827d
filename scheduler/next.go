package scheduler

import (
	"context"
	"time"

	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/scheduler/internal/loan"
)

// newWork returns the channels of work that may begin: none while too many runs are parked.
func (s *Scheduler) newWork(due <-chan time.Time) (requests chan func(context.Context), observed <-chan struct{}, retries <-chan time.Time) {
	if len(s.parked) >= mostParked {
		return nil, nil, nil
	}
	return s.requests, s.observations.Ready(), due
}

// next waits for work, and lends the graph meanwhile. It returns nil when ctx ends. Work
// that comes while the graph is lent calls the loan in first, so no other goroutine uses
// the graph while the work runs.
func (s *Scheduler) next(ctx context.Context, due <-chan time.Time) (do func(context.Context)) {
	var lent *loan.Loan
	recall := func() { lent.CallIn(); lent = nil } // takes the graph back
	defer func() {
		s.pulse.Work() // a plan that never gives the graph back makes the loop stuck
		lent.CallIn()
	}()
	for {
		loans, returned := s.desk.Offers, (<-chan struct{})(nil)
		requests, observed, retries := s.newWork(due)
		var parked *run
		if lent != nil {
			loans, returned = nil, lent.Returned()
		} else {
			parked = s.readyRun(ctx)
		}
		s.pulse.Rest()
		select {
		case <-ctx.Done():
			s.pulse.Work()
			lent.CallIn()
			s.awaitParked(ctx)
			return nil
		case <-wake.If(parked != nil):
			return func(ctx context.Context) { s.resume(ctx, parked) }
		case <-s.reader.Ready():
			s.pulse.Work()
			recall() // a parked run may go on
		case <-s.executor.Finished():
			s.deliver(s.executor.TakeFinished())
			recall()
		case <-s.executor.Overdue():
			s.deliver(s.executor.TakeOverdue(ctx))
			recall()
		case do := <-requests:
			return do
		case <-observed:
			return func(ctx context.Context) { s.handleObservations(ctx, s.changedObservations(s.observations.Take())) }
		case <-s.inbox.Ready():
			return func(ctx context.Context) { s.handleInbox(ctx, s.inbox.Take()) }
		case <-s.executor.Late():
			return func(ctx context.Context) { s.handleLateResults(ctx, s.executor.TakeLate()) }
		case <-retries:
			return s.retryDue
		case lent = <-loans:
		case <-returned:
			lent = nil
		}
	}
}
