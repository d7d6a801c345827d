package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// A loan is the graph while somebody else than Run's goroutine uses it. Run's goroutine waits
// for something to do meanwhile, and calls the loan in when there is something.
type loan struct {
	begun    time.Time
	wanted   atomic.Bool // the graph is to be given back
	returned chan struct{}
	ctx      context.Context // that of the borrower
}

// loanTime is how long a loan lasts at least, if it is needed. A small plan is made within
// it, however much else there is to do.
const loanTime = 20 * time.Millisecond

// errInterrupted is why a borrower could not finish: the loan was called in.
var errInterrupted = errors.New("interrupted")

// borrow waits until Run's goroutine has nothing to do, and takes the graph.
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

// callIn has the graph given back. It does nothing without a loan.
func (l *loan) callIn() {
	if l != nil {
		l.wanted.Store(true)
		<-l.returned
	}
}

// An interruption is the panic by which pace ends what until called.
type interruption struct{ err error }

// pace ends what until called if the loan is called in or the borrower's context ends.
func (l *loan) pace() {
	if l.wanted.Load() && time.Since(l.begun) >= loanTime {
		panic(interruption{errInterrupted})
	}
	if err := l.ctx.Err(); err != nil {
		panic(interruption{fmt.Errorf("planning: %w", err)})
	}
}

// until calls do and returns why it was interrupted, or nil.
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

// next waits for something to do, and lends the graph meanwhile. It returns nil when ctx ends.
func (s *Scheduler) next(ctx context.Context, due <-chan time.Time) (do func(context.Context)) {
	var lent *loan
	defer func() { lent.callIn() }()
	for {
		loans, returned := s.loans, (chan struct{})(nil)
		if lent != nil {
			loans, returned = nil, lent.returned
		}
		select {
		case <-ctx.Done():
			return nil
		case do := <-s.requests:
			return do
		case <-s.observations.Ready():
			return func(ctx context.Context) { s.handleObservations(ctx, s.changedObservations(s.observations.Take())) }
		case <-s.inbox.ready.C():
			return func(ctx context.Context) { s.handleInbox(ctx, s.inbox.drain()) }
		case <-s.executor.Late():
			return func(ctx context.Context) { s.handleLateResults(ctx, s.executor.TakeLate()) }
		case <-due:
			return s.retryDue
		case lent = <-loans:
		case <-returned:
			lent = nil
		}
	}
}
