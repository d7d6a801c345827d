package idle_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/idle"
)

// errEnded is the error of a runner whose owner has ended.
var errEnded = errors.New("the owner has ended")

// Work that is interrupted begins again after growing pauses, a bounded number of times.
func TestInterruptedWorkBeginsAgain(t *testing.T) {
	for _, interruptions := range []int{0, 2, idle.Attempts} {
		synctest.Test(t, func(t *testing.T) {
			r := &idle.Runner{Offers: make(chan *idle.Work), Ended: t.Context().Done(), Err: errEnded}
			begun, calls := time.Now(), 0
			go func() { // the owner
				for range min(interruptions+1, idle.Attempts) {
					<-(<-r.Offers).Done()
				}
			}()
			err := r.Run(t.Context(), func(*idle.Work) error {
				calls++
				if calls <= interruptions {
					return idle.ErrInterrupted
				}
				return nil
			})
			if failed := interruptions == idle.Attempts; errors.Is(err, idle.ErrInterrupted) != failed {
				t.Errorf("after %d interruptions: %v", interruptions, err)
			}
			pauses := time.Duration(1<<min(interruptions, idle.Attempts-1)-1) * 100 * time.Millisecond
			if took := time.Since(begun); took != pauses || calls != min(interruptions+1, idle.Attempts) {
				t.Errorf("%d interruptions: %d calls in %s, want pauses of %s", interruptions, calls, took, pauses)
			}
		})
	}
}

// Nobody waits for an owner that has ended, nor longer than the context.
func TestNobodyWaitsInVain(t *testing.T) {
	ended := make(chan struct{})
	r := &idle.Runner{Offers: make(chan *idle.Work), Ended: ended, Err: errEnded}
	never := func(*idle.Work) error { t.Error("the work has begun"); return nil }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Run(ctx, never); !errors.Is(err, context.Canceled) {
		t.Errorf("the context has ended: %v", err)
	}
	close(ended)
	if err := r.Run(t.Context(), never); !errors.Is(err, errEnded) {
		t.Errorf("the owner has ended: %v", err)
	}
}
