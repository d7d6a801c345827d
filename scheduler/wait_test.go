package scheduler_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/wait"
)

// TestWaitForWhatHasNotBegun waits for a value whose transaction waits for
// another to end.
func TestWaitForWhatHasNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		var begun, most atomic.Int32
		slow(t, s, time.Second, &begun, &most)
		defer begin(t, s)()
		two := interfacesNamed(t, s, 2)
		must(t, s.Submit(t.Context(), scheduler.Txn{Changes: two[:1]}))
		go func() { _ = s.Submit(t.Context(), scheduler.Txn{Changes: two[1:]}) }()
		synctest.Wait()
		last := two[1].Key
		if _, ok := s.Status(last); ok {
			t.Fatal("the second transaction has begun already")
		}
		must(t, wait.For(t.Context(), s, last))
		if st, _ := s.Status(last); st == nil || st.State != kvscheduler.ValueState_CONFIGURED {
			t.Errorf("after Wait it is %v", st)
		}
	})
}

// TestWaitEndsWithWhatItWaitsFor waits for a value that is made at a known time,
// to the moment, and no longer than until a deadline.
func TestWaitEndsWithWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		begun := time.Now()
		var made time.Time
		plain(t, s, func(string) error {
			if time.Since(begun) < time.Minute {
				return errors.New("not yet")
			}
			made = time.Now()
			return nil
		})
		defer begin(t, s)()
		one := interfacesNamed(t, s, 1)
		must(t, s.Submit(t.Context(), scheduler.Txn{Changes: one}))

		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		err := wait.For(ctx, s, one[0].Key)
		if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took != 7*time.Second {
			t.Errorf("Wait with a deadline returns after %v: %v", took, err)
		}
		must(t, wait.For(t.Context(), s, one[0].Key))
		if made.IsZero() || !time.Now().Equal(made) {
			t.Errorf("Wait returns %v after it was made", time.Since(made))
		}
	})
}
