package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// A loan is the graph while another goroutine than Run's uses it. Run's goroutine waits
// for work meanwhile, and calls the loan in when there is some.
type loan struct {
	begun    time.Time
	wanted   atomic.Bool // the graph must be returned
	returned chan struct{}
	ctx      context.Context // of the borrower
}

// loanTime is the minimum time of a loan. A small plan is made within it, even in a busy
// scheduler.
const loanTime = 20 * time.Millisecond

// errInterrupted means that the loan was called in.
var errInterrupted = errors.New("interrupted")

// borrow waits until Run's goroutine is idle, and takes the graph. Only one plan is made
// at a time, because there is one graph. The borrower returns it with giveBack in any
// case.
func (s *Scheduler) borrow(ctx context.Context) (*loan, error) {
	l := &loan{returned: make(chan struct{}), ctx: ctx}
	select {
	case s.loans <- l:
		l.begun = time.Now()
		return l, nil
	case <-s.stopped:
		return nil, ErrStopped
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the scheduler to begin: %w", ctx.Err())
	}
}

func (l *loan) giveBack() { close(l.returned) }

// callIn requests the graph. It does nothing without a loan.
func (l *loan) callIn() {
	if l != nil {
		l.wanted.Store(true)
		<-l.returned
	}
}

// An interruption is the panic with which pace ends the function of until.
type interruption struct{ err error }

// pace ends the function of until if the loan is called in or the borrower's context ends.
func (l *loan) pace() {
	if l.wanted.Load() && time.Since(l.begun) >= loanTime {
		panic(interruption{errInterrupted})
	}
	if err := l.ctx.Err(); err != nil {
		panic(interruption{fmt.Errorf("planning: %w", err)})
	}
}

// until calls do. It returns the reason of an interruption, or nil. The panic only leaves
// the functions of the graph, which have no other way to stop early. The caller rolls the
// graph back afterwards.
func (l *loan) until(do func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case interruption:
			err = p.err
		default:
			panic(p)
		}
	}()
	do()
	return nil
}

// mayGoOn is ready if r is not nil. A select with it is fair to the other cases.
func (r *run) mayGoOn() <-chan struct{} {
	if r == nil {
		return nil
	}
	ready := make(chan struct{})
	close(ready)
	return ready
}

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
	var lent *loan
	defer func() { lent.callIn() }()
	for {
		loans, returned := s.loans, (chan struct{})(nil)
		requests, observed, retries := s.newWork(due)
		var parked *run
		if lent != nil {
			loans, returned = nil, lent.returned
		} else {
			parked = s.readyRun(ctx)
		}
		select {
		case <-ctx.Done():
			lent.callIn()
			s.settle(ctx)
			return nil
		case <-parked.mayGoOn():
			return func(ctx context.Context) { s.resume(ctx, parked) }
		case <-s.reader.Ready():
			lent.callIn() // a parked run may go on
			lent = nil
		case <-s.executor.Finished():
			s.deliver(s.executor.TakeFinished())
			lent.callIn()
			lent = nil
		case <-s.executor.Overdue():
			s.deliver(s.executor.TakeOverdue(ctx))
			lent.callIn()
			lent = nil
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
