package loan_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/loan"
)

// errEnded is the error of a desk whose owner has ended.
var errEnded = errors.New("the owner has ended")

// Work that is interrupted begins again after growing pauses, a bounded number of times.
func TestInterruptedWorkBeginsAgain(t *testing.T) {
	for _, interruptions := range []int{0, 2, loan.Attempts} {
		synctest.Test(t, func(t *testing.T) {
			d := &loan.Desk{Offers: make(chan *loan.Loan), Ended: t.Context().Done(), Err: errEnded}
			begun, calls := time.Now(), 0
			go func() { // the owner
				for range min(interruptions+1, loan.Attempts) {
					<-(<-d.Offers).Returned()
				}
			}()
			err := d.Use(t.Context(), func(*loan.Loan) error {
				calls++
				if calls <= interruptions {
					return loan.ErrCalledIn
				}
				return nil
			})
			if failed := interruptions == loan.Attempts; errors.Is(err, loan.ErrCalledIn) != failed {
				t.Errorf("after %d interruptions: %v", interruptions, err)
			}
			pauses := time.Duration(1<<min(interruptions, loan.Attempts-1)-1) * 100 * time.Millisecond
			if took := time.Since(begun); took != pauses || calls != min(interruptions+1, loan.Attempts) {
				t.Errorf("%d interruptions: %d calls in %s, want pauses of %s", interruptions, calls, took, pauses)
			}
		})
	}
}

// A borrower does not wait for an owner that has ended, nor longer than its context.
func TestABorrowerDoesNotWaitInVain(t *testing.T) {
	ended := make(chan struct{})
	d := &loan.Desk{Offers: make(chan *loan.Loan), Ended: ended, Err: errEnded}
	never := func(*loan.Loan) error { t.Error("the work has begun"); return nil }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Use(ctx, never); !errors.Is(err, context.Canceled) {
		t.Errorf("the context has ended: %v", err)
	}
	close(ended)
	if err := d.Use(t.Context(), never); !errors.Is(err, errEnded) {
		t.Errorf("the owner has ended: %v", err)
	}
}
