package publish_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/keyplane/keyplane/internal/summary"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/orchestrator/publish"
	"github.com/keyplane/keyplane/scheduler"
)

// A shelf is a store that keeps the summaries that were put, in order.
type shelf struct {
	kvdbsync.Store
	mu   sync.Mutex // guards the others
	puts []summary.Summary
	down error
}

func (s *shelf) Put(_ context.Context, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return s.down
	}
	one, err := summary.Parse(key, value)
	s.puts = append(s.puts, one)
	return err
}

// taken returns what was put since the last call.
func (s *shelf) taken() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.puts {
		line := fmt.Sprint(one.States)
		if len(one.Derived) > 0 {
			line += fmt.Sprint(" derived ", one.Derived)
		}
		if one.Oldest != nil {
			line += " " + one.Oldest.Key
		}
		if one.Ended {
			line += " ended"
		}
		out = append(out, line)
	}
	s.puts = nil
	return out
}

func (s *shelf) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

func (s *shelf) open(context.Context) (kvdbsync.Store, func(), error) { return s, func() {}, nil }

func TestSummaries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sched, _ := newScheduler(t)
		store, said := &shelf{}, &journal{}
		stop := running(t, publish.Summaries{Name: "etcd", Label: "vpp1", Version: "v1", Open: store.open, Scheduler: sched, Log: said.log()}.Run)
		expect := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			if got := store.taken(); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: put %q, want %q", what, got, want)
			}
		}
		commit(t, sched, "a=ok", "b=waits", "c=invalid", "h=half")
		sched.Observe(scheduler.Observed{Key: "config/text/found", Value: wrapperspb.String("that nobody declares")})
		elapse(10 * time.Second)
		if _, found := sched.Status("config/text/found"); !found {
			t.Fatal("what was observed is not there")
		}
		expect("at the start", "map[CONFIGURED:2 INVALID:1 PENDING:1] derived map[PENDING:1] config/text/b")

		elapse(40 * time.Second)
		expect("without a change")
		elapse(20 * time.Second)
		expect("after a period", "map[CONFIGURED:2 INVALID:1 PENDING:1] derived map[PENDING:1] config/text/b")

		commit(t, sched, "other=ok")
		for i := range 50 { // a value that changes all the time
			commit(t, sched, fmt.Sprintf("n%d=ok", i))
			elapse(100 * time.Millisecond)
		}
		elapse(5 * time.Second)
		synctest.Wait()
		if got := store.taken(); len(got) < 1 || len(got) > 2 {
			t.Errorf("in 10 s with 50 changes, %d were put: %q", len(got), got)
		}

		store.fail(errors.New("away"))
		commit(t, sched, "c-")
		elapse(time.Minute)
		expect("while the store is down")
		store.fail(nil)
		elapse(2 * time.Minute)
		synctest.Wait()
		if got := store.taken(); len(got) == 0 || got[0] != "map[CONFIGURED:54]" {
			t.Errorf("after the store is back, put %q", got)
		}
		if got := said.messages(); got != "WARN cannot publish the summary" {
			t.Errorf("logged %s", got)
		}
		stop()
		expect("at the end", "map[CONFIGURED:54] ended")
	})
}

// After the clock was set back, the next summary comes at once, and then one in each period.
func TestSummariesAfterTheClockWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sched, _ := newScheduler(t)
		store := &shelf{}
		corrected := time.Now().Add(5 * time.Minute)
		clock := func() time.Time {
			if now := time.Now(); now.Before(corrected) {
				return now.Add(24 * time.Hour)
			}
			return time.Now()
		}
		stop := running(t, publish.Summaries{Name: "etcd", Label: "vpp1", Open: store.open, Scheduler: sched, Now: clock}.Run)
		elapse(5 * time.Minute)
		synctest.Wait()
		store.taken()
		for _, wait := range []time.Duration{11 * time.Second, time.Minute} {
			elapse(wait)
			synctest.Wait()
			if got := store.taken(); len(got) != 1 {
				t.Errorf("%v later: put %q, want one summary", wait, got)
			}
		}
		stop()
	})
}

func TestSummariesIntoAReadOnlyStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sched, _ := newScheduler(t)
		store, said := &shelf{down: kvdbsync.ErrReadOnly}, &journal{}
		if err := (publish.Summaries{Name: "filedb", Label: "vpp1", Open: store.open, Scheduler: sched, Log: said.log()}).Run(t.Context()); err != nil {
			t.Error(err)
		}
		if got := said.messages(); got != "WARN cannot publish the summary into this store: it is read-only" {
			t.Errorf("logged %s", got)
		}
	})
}
