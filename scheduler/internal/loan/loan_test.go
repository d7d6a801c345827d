package loan_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/loan"
)

// A loan that is called in ends at the next Pace, but not before its minimum time.
func TestCallIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := loan.New(t.Context())
		l.Begin()
		begun, paces := time.Now(), 0
		calledIn := make(chan struct{})
		go func() { l.CallIn(); close(calledIn) }()
		synctest.Wait()
		err := l.Until(func() {
			for {
				l.Pace()
				paces++
				<-time.After(time.Millisecond)
			}
		})
		if took := time.Since(begun); !errors.Is(err, loan.ErrCalledIn) || paces != 20 || took != 20*time.Millisecond {
			t.Errorf("%v after %s and %d paces", err, took, paces)
		}
		select {
		case <-calledIn:
			t.Error("CallIn returned before the loan")
		default:
		}
		l.GiveBack()
		<-calledIn
		<-l.Returned()
		(*loan.Loan)(nil).CallIn() // without a loan there is nothing to wait for
	})
}

// The borrower's context ends its work; a panic of the work itself goes on.
func TestUntil(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := loan.New(ctx)
	l.Begin()
	defer l.GiveBack()
	if err := l.Until(l.Pace); err != nil {
		t.Error(err)
	}
	cancel()
	if err := l.Until(l.Pace); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	defer func() {
		if p := recover(); p != "mistake" {
			t.Errorf("the panic is %v", p)
		}
	}()
	_ = l.Until(func() { panic("mistake") })
}
