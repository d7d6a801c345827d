package scheduler_test

import (
	"errors"
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/stats"
)

// checkCounts compares the counts by descriptor and state, which are kept step by step, with a
// walk over all values.
func checkCounts(t *testing.T, s *scheduler.Scheduler) {
	t.Helper()
	walked := map[string]map[scheduler.State]uint64{}
	for st := range s.All() {
		if walked[st.Descriptor] == nil {
			walked[st.Descriptor] = map[scheduler.State]uint64{}
		}
		walked[st.Descriptor][st.State]++
	}
	for descriptor, counted := range stats.Of(s).Values {
		maps.DeleteFunc(counted, func(_ scheduler.State, n uint64) bool { return n == 0 })
		if !maps.Equal(counted, walked[descriptor]) {
			t.Errorf("descriptor %q: counted %v, and there are %v", descriptor, counted, walked[descriptor])
		}
		delete(walked, descriptor)
	}
	if len(walked) > 0 {
		t.Errorf("not counted: %v", walked)
	}
}

// A transaction waits for the one before it; both are counted with their times.
func TestStatsCountWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{})
		const took = 50 * time.Millisecond
		slow(t, s, took, new(atomic.Int32), new(atomic.Int32))
		defer begin(t, s)()
		changes := interfacesNamed(t, s, 2)
		for i := range changes {
			if err := s.Submit(t.Context(), scheduler.Txn{Changes: changes[i : i+1]}); err != nil {
				t.Fatal(err)
			}
		}
		mustCommit(t, s, scheduler.Txn{})
		got := stats.Of(s)
		waits, durations := got.Waits[scheduler.Northbound], got.Durations[scheduler.Northbound]
		if waits.Count != 3 || waits.Max != took || waits.Total != 2*took {
			t.Errorf("waits are %+v, want 3 of 0 s, %v and %v", waits, took, took)
		}
		if durations.Count != 3 || durations.Total != 2*took {
			t.Errorf("durations are %+v, want 3 of %v, %v and 0 s", durations, took, took)
		}
		create := got.Verbs["interface"][scheduler.Create]
		at := 0
		for bounds := stats.Bounds(); bounds[at] < took; at++ {
		}
		if create.Count != 2 || create.Buckets[at] != 2 {
			t.Errorf("Create is %+v, want two calls of %v in bucket %d", create, took, at)
		}
		if execute := got.Phases[stats.PhaseExecute]; execute.Total != 2*took {
			t.Errorf("executing took %v, want %v", execute.Total, 2*took)
		}
	})
}

// Notifications and retries wait too: for the transaction that runs when they come.
func TestStatsCountWaitsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{})
		const took = 80 * time.Millisecond
		slow(t, s, took, new(atomic.Int32), new(atomic.Int32))
		defer begin(t, s)()
		if err := s.Submit(t.Context(), scheduler.Txn{Changes: interfacesNamed(t, s, 1)}); err != nil {
			t.Fatal(err)
		}
		s.Observe(scheduler.Observed{Key: interfacesNamed(t, s, 2)[1].Key, Value: nil})
		synctest.Wait()
		<-time.After(3 * time.Second)
		if n := stats.Of(s).Waits[scheduler.Notification]; n.Count != 1 || n.Max != took {
			t.Errorf("the notification waited %+v, want %v", n, took)
		}
	})
}

// A connection is not ready before it is, and after it is lost.
func TestStatsTellConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{})
		link, err := s.Connection("net")
		if err != nil {
			t.Fatal(err)
		}
		defer begin(t, s)()
		check := func(want bool) {
			t.Helper()
			synctest.Wait()
			if got, known := stats.Of(s).Connections["net"]; !known || got != want {
				t.Errorf("ready is %t, want %t", got, want)
			}
		}
		check(false)
		link.Ready()
		check(true)
		link.Lost(errors.New("unplugged"))
		check(false)
	})
}

// A transaction that is refused as a whole has executed nothing.
func TestRefusedTransactionTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTar()
		s, stop := b.begin(t, scheduler.Options{})
		defer stop()
		_, err := s.Commit(t.Context(), scheduler.Txn{Revert: true, Changes: []scheduler.Change{scheduler.Refuse("thing/a", errRefusedByTar)}})
		if err == nil {
			t.Fatal("it is not refused")
		}
		if n := stats.Of(s).Phases[stats.PhaseExecute].Count; n != 0 {
			t.Errorf("%d executions, want none", n)
		}
	})
}
