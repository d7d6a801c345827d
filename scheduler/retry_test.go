package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/scheduler"
)

func TestBackOff(t *testing.T) {
	const retrying = scheduler.Retrying
	for name, c := range map[string]struct {
		policy       scheduler.RetryPolicy
		period, most time.Duration // as it should be
		attempts     int           // within an hour, at least
		state        scheduler.State
	}{
		"of its transaction": {scheduler.RetryPolicy{Period: 100 * time.Millisecond, Max: 2 * time.Second, Count: 30}, 100 * time.Millisecond, 2 * time.Second, 31, failed},
		"by default":         {scheduler.RetryPolicy{}, time.Second, time.Minute, 50, retrying},
		"never":              {scheduler.RetryPolicy{Never: true}, time.Second, time.Minute, 1, failed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				times, state := failFor(t, time.Hour, c.policy)
				if n := len(times); n < c.attempts || state == failed && n > c.attempts || state != c.state {
					t.Errorf("%d attempts, then %v; want %d, then %v", n, state, c.attempts, c.state)
				}
				checkGaps(t, times, c.period, c.most)
			})
		})
	}
}

// failFor has a value fail for that long, and returns when its verb was called,
// and the state it ends with.
func failFor(t *testing.T, long time.Duration, policy scheduler.RetryPolicy) (times []time.Time, state scheduler.State) {
	s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
	plain(t, s, func(string) error {
		times = append(times, time.Now())
		return errors.New("broken")
	})
	defer begin(t, s)()
	one := interfacesNamed(t, s, 1)
	must(t, s.Submit(t.Context(), scheduler.Txn{Changes: one, Retry: policy}))
	<-time.After(long)
	st, _ := s.Status(one[0].Key)
	return times, st.State
}

// checkGaps wants the gap between times to double from period up to most, each
// up to a fifth longer, and not all by the same part.
func checkGaps(t *testing.T, times []time.Time, period, most time.Duration) {
	t.Helper()
	jitters := map[int64]bool{}
	for i, want := 1, period; i < len(times); i, want = i+1, min(2*want, most) {
		gap := times[i].Sub(times[i-1])
		if gap < want || gap > want+want/5 {
			t.Errorf("attempt %d comes after %v, want %v and up to a fifth more", i, gap, want)
		}
		jitters[int64(gap-want)*1000/int64(want)] = true
	}
	if len(times) > 10 && len(jitters) < 5 {
		t.Errorf("%d different jitters among %d gaps", len(jitters), len(times)-1)
	}
}

// TestRetryWithinCycleWaitsForItsTransaction checks that a transaction ends although a member of a
// cycle fails again and again, sooner than the slow verbs of the other members end.
func TestRetryWithinCycleWaitsForItsTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newFakeNet()
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		net.descriptors(t, s)
		defer begin(t, s)()
		net.set([]string{"break", "if2"})
		net.set([]string{"break", "route/10.4.0.0/16/if3", "slow"})
		txn := scheduler.Txn{Retry: scheduler.RetryPolicy{Period: slowness, Max: slowness}}
		for name, args := range map[string][]string{"if2": {"peer=if3"}, "if3": {"peer=if2"}, "route/10.4.0.0/16/if3": nil} {
			v, err := s.Value(key(name), message(name, args))
			must(t, err)
			txn.Changes = append(txn.Changes, v.Change())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.Commit(ctx, txn); errors.Is(err, context.DeadlineExceeded) {
			t.Error("the transaction has not ended within a minute")
		}
		net.mendAll()
		<-time.After(time.Minute)
		for _, c := range txn.Changes {
			if st, _ := s.Status(c.Key); st.State != scheduler.Configured {
				t.Errorf("%s is %v after the mend", c.Key, st.State)
			}
		}
	})
}

// TestRunningVerbIsTheAttempt has the retry of a value last longer than the pauses of another one. What
// is due meanwhile is the other value alone.
func TestRunningVerbIsTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		var times []time.Time
		plain(t, s, func(name string) error {
			if name == "if0" {
				times = append(times, time.Now())
				<-time.After(slowness)
			}
			return errors.New("broken")
		})
		defer begin(t, s)()
		both := interfacesNamed(t, s, 2)
		must(t, s.Submit(t.Context(), scheduler.Txn{Changes: both[:1], Retry: scheduler.RetryPolicy{Period: time.Second, Count: 1}}))
		must(t, s.Submit(t.Context(), scheduler.Txn{Changes: both[1:], Retry: scheduler.RetryPolicy{Period: slowness / 10, Max: slowness / 10}}))
		<-time.After(time.Minute)
		st, _ := s.Status(both[0].Key)
		if len(times) != 2 || times[1].Sub(times[0]) < time.Second || st.State != failed {
			t.Errorf("called at %v, then %v; want two calls a second apart, then FAILED", times, st.State)
		}
	})
}

// TestEqualFaultsAreOne has if0 and if1 fail for one reason, if2 for its own, and if3 and if4 for one reason that names what must be
// made again for each. if5 fails with the text of if0, for good.
func TestEqualFaultsAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		plain(t, s, func(name string) error {
			switch name {
			case "if2":
				return fmt.Errorf("%s is broken", name)
			case "if5":
				return scheduler.Terminal(errors.New("broken"))
			case "if3", "if4":
				return scheduler.NeedsNew("of "+name, errors.New("nothing is left"))
			}
			return errors.New("broken")
		})
		defer begin(t, s)()
		all := interfacesNamed(t, s, 6)
		for _, some := range [][]scheduler.Change{all[:2], all[2:]} { // those that fail alike come one after the other
			must(t, s.Submit(t.Context(), scheduler.Txn{Changes: some, Retry: scheduler.RetryPolicy{Period: time.Second, Max: time.Second}}))
			synctest.Wait()
		}
		faults := func() (out []error) {
			for _, c := range all {
				st, _ := s.Status(c.Key)
				out = append(out, st.Err)
			}
			return out
		}
		first := faults()
		<-time.After(10 * time.Second)
		later := faults()
		if first[0] != first[1] || first[0] != later[1] || first[2] != later[2] || first[2] == first[0] || first[3] == first[4] || first[5] == first[0] {
			t.Errorf("at first %p, later %p: 0 and 1 have one error, 2 keeps its own, and those of 3, 4 and 5 differ", first, later)
		}
	})
}

// TestUndoneTransactionEndsNoRetries undoes a transaction that removes if0 and fails at if1. if0 is
// CONFIGURED or RETRYING before, and the undoing fails to create it. It is retried as before the transaction.
func TestUndoneTransactionEndsNoRetries(t *testing.T) {
	for name, c := range map[string]struct {
		failures int                   // of if0, at first
		policy   scheduler.RetryPolicy // by default
	}{
		"configured before": {0, scheduler.RetryPolicy{}},
		"retrying before":   {1, scheduler.RetryPolicy{Never: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler), Retry: c.policy})
				failures := map[string]int{"if0": c.failures, "if1": 1}
				plain(t, s, func(name string) error {
					if failures[name] > 0 {
						failures[name]--
						return errors.New("broken")
					}
					return nil
				})
				defer begin(t, s)()
				both := interfacesNamed(t, s, 2)
				key := both[0].Key
				must(t, s.Submit(t.Context(), scheduler.Txn{Changes: both[:1], Retry: scheduler.RetryPolicy{Period: time.Minute}}))
				synctest.Wait()
				failures["if0"] = 1
				if _, err := s.Commit(t.Context(), scheduler.Txn{Revert: true, Changes: append(unwantAll([]string{key}), both[1])}); err == nil {
					t.Error("the transaction has not failed")
				}
				if st, _ := s.Status(key); st.State != scheduler.Retrying {
					t.Errorf("%v after the transaction, want RETRYING", st.State)
				}
				<-time.After(2 * time.Minute)
				if st, _ := s.Status(key); st.State != scheduler.Configured {
					t.Errorf("%v in the end, want CONFIGURED", st.State)
				}
			})
		})
	}
}
