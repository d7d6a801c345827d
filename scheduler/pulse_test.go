package scheduler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/scheduler"
)

// The loop is alive while a verb hangs and while it is paused. It is stuck while a function that the
// loop itself calls does not return.
func TestPulseTellsAStuckLoopFromAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		b.hang("create thing/a")
		s, stop := b.begin(t, scheduler.Options{})
		defer stop()
		loop := s.Pulse().Watch()
		looks := func(when string, want ...bool) {
			t.Helper()
			for i, want := range want {
				synctest.Wait()
				if got := loop.Alive(); got != want {
					t.Errorf("%s, look %d: alive is %v", when, i+1, got)
				}
			}
		}
		looks("idle", true, true)
		must(t, s.Submit(t.Context(), wanting(t, s, "thing/a")))
		<-time.After(time.Second)
		looks("a verb hangs", true, true)
		b.release("create thing/a", nil)
		release := s.Pause(t.Context())
		looks("paused", true, true)
		release()

		stuck := make(chan struct{})
		must(t, s.Start(t.Context(), wanting(t, s, "thing/b"), func(*scheduler.Record, error) { <-stuck }))
		looks("a function does not return", true, false, false)
		close(stuck)
		looks("it has returned", true, true)
	})
}

// wanting returns a transaction that declares one value.
func wanting(t *testing.T, s *scheduler.Scheduler, key string) scheduler.Txn {
	t.Helper()
	v, err := s.Value(key, wrapperspb.String("1"))
	must(t, err)
	return scheduler.Txn{Changes: []scheduler.Change{v.Change()}}
}
