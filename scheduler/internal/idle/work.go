// Package idle runs work on the state of a goroutine, its owner, while that has nothing to do. The work has a goroutine
// of its own, so that whoever wants it waits, and not the owner.
//
//	the work                   the owner
//	Runner.Run offers it       takes it, and touches nothing until it is Done
//	Until(what calls           waits for work of its own, or for Done
//	  Pace often)              Interrupt, when there is work
//	returns                    goes on
package idle

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// A Work is one attempt.
type Work struct {
	begun  time.Time
	wanted atomic.Bool // it must end
	done   chan struct{}
	ctx    context.Context // of whoever wants it
}

// leastTime is the minimum time of an attempt. A small piece of work is done within it, even if the
// owner is busy.
const leastTime = 20 * time.Millisecond

// ErrInterrupted means that the owner wanted its state back before the work was done.
var ErrInterrupted = errors.New("interrupted")

func newWork(ctx context.Context) *Work { return &Work{done: make(chan struct{}), ctx: ctx} }

// Done is closed when the work has ended.
func (w *Work) Done() <-chan struct{} { return w.done }

// Interrupt has the work end, and waits for that. It does nothing without work.
func (w *Work) Interrupt() {
	if w != nil {
		w.wanted.Store(true)
		<-w.done
	}
}

// An interruption is the panic with which Pace ends the function of Until.
type interruption struct{ err error }

// Pace ends the function of Until if the work is interrupted or its context ends.
func (w *Work) Pace() {
	if w.wanted.Load() && time.Since(w.begun) >= leastTime {
		panic(interruption{ErrInterrupted})
	}
	if err := w.ctx.Err(); err != nil {
		panic(interruption{err})
	}
}

// Until calls do. It returns the reason of an interruption, or nil: ErrInterrupted, or the error of
// the context. The panic only leaves functions that have no other way to stop early.
// The caller undoes what they have left half-done.
func (w *Work) Until(do func()) (err error) {
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
