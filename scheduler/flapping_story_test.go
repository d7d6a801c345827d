package scheduler_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/explain"
	"github.com/keyplane/keyplane/scheduler/internal/retry"
)

// Two controllers that undo each other's work do not burn the machine: what the other one
// removes at once is created with pauses, the log says so once, and so does Explain.
func TestWhatIsRemovedAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		var created atomic.Int32
		plain(t, s, func(string) error { created.Add(1); return nil })
		defer begin(t, s)()
		change := interfacesNamed(t, s, 1)
		key := change[0].Key
		mustCommit(t, s, scheduler.Txn{Changes: change})

		end := time.After(time.Hour)
		for other := true; other; {
			s.Observe(scheduler.Observed{Key: key}) // the other controller has removed it
			synctest.Wait()
			if st, _ := s.Status(key); st.State == scheduler.Configured {
				if created.Load() > 100 {
					t.Fatal("created again without end")
				}
				continue // it was created at once
			}
			seen := created.Load()
			if text := explain.Key(s, key).Text; !strings.Contains(text, "RETRYING") || !strings.Contains(text, "somebody else removes it repeatedly") {
				t.Fatalf("explained as %q", text)
			}
			for created.Load() == seen && other {
				select {
				case <-end:
					other = false
				case <-time.After(time.Second):
				}
			}
		}
		if n := created.Load(); n < 30 || n > 80 {
			t.Errorf("created %d times in an hour: want one a minute in the end", n)
		}
		if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), key) {
			t.Errorf("%d warnings, want one:\n%s", n, &log)
		}
		<-time.After(2 * time.Minute) // the other controller has ended
		if st, _ := s.Status(key); st.State != scheduler.Configured {
			t.Errorf("%v in the end: %v", st.State, st.Err)
		}
	})
}

// TestFlappingValueObeysItsPolicy has the creation of a flapping value fail. It is retried as often as the
// policy allows.
func TestFlappingValueObeysItsPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		policy   scheduler.RetryPolicy
		attempts int
	}{
		"never":      {scheduler.RetryPolicy{Never: true}, 1},
		"three more": {scheduler.RetryPolicy{Count: 3}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler), Retry: c.policy})
				created := 0
				plain(t, s, func(string) error {
					created++
					if created > retry.After {
						return errors.New("broken")
					}
					return nil
				})
				defer begin(t, s)()
				change := interfacesNamed(t, s, 1)
				mustCommit(t, s, scheduler.Txn{Changes: change})
				for range retry.After {
					s.Observe(scheduler.Observed{Key: change[0].Key})
					synctest.Wait()
				}
				<-time.After(time.Hour)
				st, _ := s.Status(change[0].Key)
				if n := created - retry.After; n != c.attempts || st.State != failed {
					t.Errorf("%d attempts, then %v; want %d, then FAILED", n, st.State, c.attempts)
				}
			})
		})
	}
}

// TestPlanForgetsNoFlaps plans the removal of a flapping value. It flaps on.
func TestPlanForgetsNoFlaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		plain(t, s, func(string) error { return nil })
		defer begin(t, s)()
		change := interfacesNamed(t, s, 1)
		key := change[0].Key
		mustCommit(t, s, scheduler.Txn{Changes: change})
		for range 5 {
			if _, err := s.Plan(t.Context(), scheduler.Txn{Changes: unwantAll([]string{key})}); err != nil {
				t.Fatal(err)
			}
			s.Observe(scheduler.Observed{Key: key})
			synctest.Wait()
		}
		if st, _ := s.Status(key); st.State != scheduler.Retrying {
			t.Errorf("it is %v after 5 losses; want RETRYING", st.State)
		}
	})
}

// While the scheduler is paused nothing is done; what came meanwhile follows.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		var created atomic.Int32
		plain(t, s, func(string) error { created.Add(1); return nil })
		end := begin(t, s)
		release := s.Pause(t.Context())
		committed, txn := make(chan error, 1), scheduler.Txn{Changes: interfacesNamed(t, s, 1)}
		go func() {
			_, err := s.Commit(t.Context(), txn)
			committed <- err
		}()
		<-time.After(time.Hour)
		if n := created.Load(); n != 0 {
			t.Errorf("%d verbs while paused", n)
		}
		release()
		must(t, <-committed)
		release()
		s.Pause(t.Context())
		end()                // also while it is paused
		s.Pause(t.Context()) // nothing is left to be paused
	})
}

// What the agent itself has removed in between begins anew: only what it keeps flaps.
func TestWhatIsDeclaredAnewDoesNotFlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		plain(t, s, func(string) error { return nil })
		defer begin(t, s)()
		change := interfacesNamed(t, s, 1)
		key := change[0].Key
		for range 5 {
			mustCommit(t, s, scheduler.Txn{Changes: change})
			for range 3 {
				s.Observe(scheduler.Observed{Key: key})
				synctest.Wait()
				if st, _ := s.Status(key); st.State != scheduler.Configured {
					t.Fatalf("%v: %v", st.State, st.Err)
				}
			}
			mustCommit(t, s, scheduler.Txn{Changes: []scheduler.Change{scheduler.Unwant(key)}})
		}
	})
}
