// Package loan has the terms on which one goroutine lends what it owns to another one.
//
//	the borrower               the owner
//	New, offers the Loan       takes it, and touches nothing until the end
//	Begin                      waits for work of its own, or for Returned
//	Until(work that calls      CallIn, when there is work
//	  Pace often)
//	GiveBack                   goes on
//
// A [Desk] is the place where they meet: it repeats work that was interrupted.
package loan

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// A Loan is one use by a borrower.
type Loan struct {
	begun    time.Time
	wanted   atomic.Bool // it must be returned
	returned chan struct{}
	ctx      context.Context // of the borrower
}

// leastTime is the minimum time of a loan. A small piece of work is done within it, even if the
// owner is busy.
const leastTime = 20 * time.Millisecond

// ErrCalledIn means that the loan was called in before the work was done.
var ErrCalledIn = errors.New("interrupted")

// New returns a loan that has not begun. The work of the borrower ends with ctx.
func New(ctx context.Context) *Loan { return &Loan{returned: make(chan struct{}), ctx: ctx} }

// Begin is called by the borrower when the owner has taken the loan. GiveBack must follow.
func (l *Loan) Begin() { l.begun = time.Now() }

// GiveBack ends the loan.
func (l *Loan) GiveBack() { close(l.returned) }

// Returned is closed when the loan has ended.
func (l *Loan) Returned() <-chan struct{} { return l.returned }

// CallIn has the borrower return the loan, and waits for that. It does nothing without a loan.
func (l *Loan) CallIn() {
	if l != nil {
		l.wanted.Store(true)
		<-l.returned
	}
}

// An interruption is the panic with which Pace ends the function of Until.
type interruption struct{ err error }

// Pace ends the function of Until if the loan is called in or the borrower's context ends.
func (l *Loan) Pace() {
	if l.wanted.Load() && time.Since(l.begun) >= leastTime {
		panic(interruption{ErrCalledIn})
	}
	if err := l.ctx.Err(); err != nil {
		panic(interruption{err})
	}
}

// Until calls do. It returns the reason of an interruption, or nil: ErrCalledIn, or the error of
// the borrower's context. The panic only leaves functions that have no other way to stop early.
// The borrower undoes what they have left half-done.
func (l *Loan) Until(do func()) (err error) {
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
