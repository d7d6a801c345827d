package scheduler_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
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
		if st, _ := s.Status(last); st == nil || st.State != scheduler.Configured {
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

// TestSettled waits until neither a value nor a part of it is pending. "if1" needs "if0", and
// the part of "if2" needs "if1".
func TestSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		register := func(d scheduler.Descriptor[*interfaces.Interface, struct{}]) {
			d.Create = func(_ context.Context, _ string, v *interfaces.Interface) (none struct{}, err error) {
				if v.Name == "broken" {
					err = errors.New("broken")
				}
				return none, err
			}
			d.Delete = func(context.Context, string, *interfaces.Interface, struct{}) error { return nil }
			_, err := scheduler.Register(s, d)
			must(t, err)
		}
		model := models.For[*interfaces.Interface]()
		key := model.KeyOf
		needs := func(name string) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: name + "-exists", Key: key(name)}}
		}
		register(scheduler.Descriptor[*interfaces.Interface, struct{}]{
			Name: "interface", Model: model,
			Dependencies: func(_ string, v *interfaces.Interface) []scheduler.Dependency {
				if v.Name == "if1" {
					return needs("if0")
				}
				return nil
			},
			Derived: func(_ string, v *interfaces.Interface) []scheduler.KeyValue {
				if v.Name == "if2" {
					return []scheduler.KeyValue{{Key: "part/if2", Value: v}}
				}
				return nil
			},
		})
		register(scheduler.Descriptor[*interfaces.Interface, struct{}]{
			Name: "part", Prefix: "part/",
			Dependencies: func(string, *interfaces.Interface) []scheduler.Dependency { return needs("if1") },
		})
		defer begin(t, s)()
		want := func(name string) {
			v, err := s.Value(key(name), &interfaces.Interface{Name: name})
			must(t, err)
			_, _ = s.Commit(t.Context(), scheduler.Txn{Changes: []scheduler.Change{v.Change()}})
		}
		want("if2")
		want("if1")
		want("broken")
		must(t, wait.NonePending(t.Context(), s, key("broken"), key("nowhere")))
		must(t, wait.NonePending(t.Context(), s))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := wait.NonePending(ctx, s, key("if2"), key("if1"), key("broken"))
		const told = "context deadline exceeded while waiting: config/linux/interfaces/v2/interface/if1 is PENDING: it waits for if0-exists; part/if2 is PENDING: it waits for if1-exists"
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, wait.ErrNotApplied) || err.Error() != told {
			t.Errorf("at the deadline: %v", err)
		}

		begun, settled := time.Now(), make(chan time.Duration)
		go func() {
			if err := wait.NonePending(t.Context(), s, key("if2"), key("if1")); err != nil {
				t.Error(err)
			}
			settled <- time.Since(begun)
		}()
		<-time.After(time.Minute)
		want("if0")
		if took := <-settled; took != time.Minute {
			t.Errorf("settled after %s, not when the last dependency was met", took)
		}
	})
}
