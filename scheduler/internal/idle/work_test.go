package idle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Interrupted work ends at the next Pace, but not before its minimum time.
func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWork(t.Context())
		w.begun = time.Now()
		begun, paces := time.Now(), 0
		interrupted := make(chan struct{})
		go func() { w.Interrupt(); close(interrupted) }()
		synctest.Wait()
		err := w.Until(func() {
			for {
				w.Pace()
				paces++
				<-time.After(time.Millisecond)
			}
		})
		if took := time.Since(begun); !errors.Is(err, ErrInterrupted) || paces != 20 || took != 20*time.Millisecond {
			t.Errorf("%v after %s and %d paces", err, took, paces)
		}
		select {
		case <-interrupted:
			t.Error("Interrupt returned before the end")
		default:
		}
		close(w.done)
		<-interrupted
		<-w.Done()
		(*Work)(nil).Interrupt() // without work there is nothing to wait for
	})
}

// The context ends the work; a panic of the work itself goes on.
func TestUntil(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := newWork(ctx)
	if err := w.Until(w.Pace); err != nil {
		t.Error(err)
	}
	cancel()
	if err := w.Until(w.Pace); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	defer func() {
		if p := recover(); p != "mistake" {
			t.Errorf("the panic is %v", p)
		}
	}()
	_ = w.Until(func() { panic("mistake") })
}
