package scheduler_test

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/scheduler"
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
		must(t, s.Wait(t.Context(), last))
		if st, _ := s.Status(last); st == nil || st.State != kvscheduler.ValueState_CONFIGURED {
			t.Errorf("after Wait it is %v", st)
		}
	})
}
