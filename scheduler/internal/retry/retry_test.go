package retry_test

import (
	"slices"
	"testing"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/retry"
)

// start is any moment: the schedule has no clock.
var start = time.Unix(1e9, 0)

func TestDelaysDoubleUpToTheirMaximum(t *testing.T) {
	s := retry.New(retry.Policy{})
	f := retry.Failure{Concerns: true, Retries: true, Now: start, Policy: retry.Policy{Period: time.Second, Max: 5 * time.Second, Count: 4}}
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second} {
		s.Failed("k", f)
		if e := s.Pending("k"); e == nil || e.Attempt != i+1 {
			t.Fatalf("after failure %d: pending %+v, want attempt %d", i+1, e, i+1)
		}
		s.Ended("k", f.Txn, f.Now)
		if keys := s.Due(f.Now.Add(want/2), never); keys != nil {
			t.Errorf("attempt %d is due after half of %v", i+1, want)
		}
		f.Now = f.Now.Add(want)
		if keys := s.Due(f.Now, never); !slices.Equal(keys, []string{"k"}) {
			t.Errorf("attempt %d is not due after %v", i+1, want)
		}
	}
	s.Failed("k", f)
	if e := s.Pending("k"); e != nil {
		t.Errorf("attempt %d is planned; the policy allows 4", e.Attempt)
	}
}

func TestOnlyConcernedRunsChangeAPlan(t *testing.T) {
	s := retry.New(retry.Policy{})
	declared := retry.Failure{Concerns: true, Txn: 1, Now: start}
	s.Failed("k", declared)
	first := *s.Pending("k")
	s.Failed("k", retry.Failure{Txn: 2, Now: start.Add(time.Second), Policy: retry.Policy{Never: true}})
	if e := s.Pending("k"); e == nil || *e != first {
		t.Errorf("a resync changes the retry %+v to %+v", first, e)
	}
	s.Failed("k", retry.Failure{Txn: 2, Final: true})
	if e := s.Pending("k"); e != nil {
		t.Errorf("a final error leaves the retry %+v", e)
	}
	s.Failed("new", retry.Failure{Txn: 3, Now: start})
	if e := s.Pending("new"); e == nil || e.Txn != 3 {
		t.Errorf("a value that first fails in a resync has the retry %+v, want one of transaction 3", e)
	}
}

func TestResumeRepeatsTheAttempt(t *testing.T) {
	s := retry.New(retry.Policy{})
	s.Failed("k", retry.Failure{Concerns: true, Final: true, Txn: 1, Now: start}) // abandoned: no retry yet
	if s.Pending("k") != nil {
		t.Fatal("an abandoned verb is retried before it returns")
	}
	s.Resume("k", retry.Failure{Txn: 2, Now: start})
	if e := s.Pending("k"); e == nil || e.Attempt != 1 || e.Txn != 1 {
		t.Errorf("after the return: %+v, want attempt 1 of transaction 1", e)
	}
}

func TestWaitEndsWithTheFirst(t *testing.T) {
	s := retry.New(retry.Policy{})
	if d := s.Wait(start); d != time.Hour {
		t.Errorf("an empty schedule waits %v", d)
	}
	s.Postpone("late", 10*time.Second, start, 1)
	s.Postpone("early", 3*time.Second, start, 1)
	if d := s.Wait(start.Add(time.Second)); d != 2*time.Second {
		t.Errorf("waiting for %v, want 2s", d)
	}
	if d := s.Wait(start.Add(time.Minute)); d != 0 {
		t.Errorf("waiting for %v after the time, want 0", d)
	}
	s.Due(start, never)
	if d := s.Wait(start); d != 3*time.Second {
		t.Errorf("after a look at the due keys: waiting for %v, want 3s", d)
	}
	s.Drop("early")
	if keys := s.Due(start.Add(10*time.Second), never); !slices.Equal(keys, []string{"late"}) {
		t.Errorf("due: %q", keys)
	}
}

// never is for keys that need not wait.
func never(string) bool { return false }

func TestKeyThatMustWaitIsDueAfterRelease(t *testing.T) {
	s := retry.New(retry.Policy{})
	s.Failed("k", retry.Failure{Concerns: true, Txn: 1, Now: start})
	s.Ended("k", 1, start)
	later := start.Add(time.Minute)
	if keys := s.Due(later, func(string) bool { return true }); keys != nil {
		t.Errorf("%v are due, but must wait", keys)
	}
	if s.Wait(later) == 0 {
		t.Error("a key that must wait is due at once, so that its caller would spin")
	}
	s.Release(later)
	if keys := s.Due(later, never); s.Wait(later) == 0 || !slices.Equal(keys, []string{"k"}) {
		t.Errorf("after Release %v are due, want k", keys)
	}
}

// A failure is not tried again before its run has ended, whatever other runs do; the pause begins with that end.
func TestNothingIsDueBeforeItsRunHasEnded(t *testing.T) {
	s := retry.New(retry.Policy{})
	s.Failed("k", retry.Failure{Concerns: true, Txn: 7, Now: start})
	end := start.Add(time.Minute)
	s.Ended("k", 8, end) // another run
	s.Release(end)
	if keys := s.Due(end, never); keys != nil {
		t.Errorf("%v are due while their run lasts", keys)
	}
	s.Ended("k", 7, end)
	if d := s.Wait(end); d != time.Second {
		t.Errorf("after the end of the run: %v until the retry, want 1s", d)
	}
	if keys := s.Due(end.Add(time.Second), never); !slices.Equal(keys, []string{"k"}) {
		t.Errorf("due: %q", keys)
	}
}
