package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// slow registers interfaces whose verbs take d.
func slow(tb testing.TB, s *scheduler.Scheduler, d time.Duration, begun, most *atomic.Int32) {
	type none = struct{}
	verb := func(ctx context.Context) error {
		if n := begun.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer begun.Add(-1)
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	_, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, none]{
		Name: "interface", Model: models.For[*interfaces.Interface](),
		Create: func(ctx context.Context, _ string, _ *interfaces.Interface) (none, error) { return none{}, verb(ctx) },
		Delete: func(ctx context.Context, _ string, _ *interfaces.Interface, _ none) error { return verb(ctx) },
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func interfacesNamed(tb testing.TB, s *scheduler.Scheduler, n int) []scheduler.Change {
	var out []scheduler.Change
	for i := range n {
		m := &interfaces.Interface{Name: fmt.Sprintf("if%d", i)}
		v, err := s.Value(keyOf(tb, m), m)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, v.Change())
	}
	return out
}

func TestConcurrencyReachesItsLimit(t *testing.T) {
	const n, limit = 1000, 10
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{Concurrency: 3, Limits: map[string]int{"interface": limit}})
		var begun, most atomic.Int32
		slow(t, s, time.Second, &begun, &most)
		defer begin(t, s)()
		begin := time.Now()
		mustCommit(t, s, scheduler.Txn{Changes: interfacesNamed(t, s, n)})
		if got := most.Load(); got != limit {
			t.Errorf("%d verbs ran at once, want %d", got, limit)
		}
		if took, want := time.Since(begin), n/limit*time.Second; took != want {
			t.Errorf("took %v, want %v", took, want)
		}
	})
}

func TestVerbIsToldToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{VerbTimeout: time.Minute})
		var begun, most atomic.Int32
		slow(t, s, time.Hour, &begun, &most)
		defer begin(t, s)()
		begin := time.Now()
		r, err := s.Commit(t.Context(), scheduler.Txn{Changes: interfacesNamed(t, s, 1), Retry: scheduler.RetryPolicy{Never: true}})
		if took := time.Since(begin); took != time.Minute || err == nil {
			t.Errorf("took %v, err %v, want an error after a minute", took, err)
		}
		if st, _ := s.Status(r.Executed.At(0).Key); st.State != failed {
			t.Errorf("state is %v", st.State)
		}
	})
}

func TestRunEndsWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{})
		var begun, most atomic.Int32
		slow(t, s, time.Hour, &begun, &most)
		stop := begin(t, s)
		if err := s.Submit(t.Context(), scheduler.Txn{Changes: interfacesNamed(t, s, 100)}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stop()
		if n := begun.Load(); n != 0 {
			t.Errorf("%d verbs still run", n)
		}
		if _, err := s.Commit(t.Context(), scheduler.Txn{}); !errors.Is(err, scheduler.ErrStopped) {
			t.Errorf("Commit after the end: %v", err)
		}
	})
}

// BenchmarkConcurrentVerbs runs 10 k verbs that take 200 us each. It reports the
// rate as a part of what bare goroutines reach that run the same calls, as many
// at once, in the same run: sleeping is not exact.
func BenchmarkConcurrentVerbs(b *testing.B) {
	const n, limit, each = 10_000, 64, 200 * time.Microsecond
	var bare time.Duration
	for b.Loop() {
		b.StopTimer()
		bare += bareCalls(n, limit, each)
		s := scheduler.New(scheduler.Options{Concurrency: limit})
		var begun, most atomic.Int32
		slow(b, s, each, &begun, &most)
		stop := begin(b, s)
		changes := interfacesNamed(b, s, n)
		b.StartTimer()
		mustCommit(b, s, scheduler.Txn{Changes: changes})
		b.StopTimer()
		stop()
		b.StartTimer()
	}
	b.ReportMetric(float64(bare)/float64(b.Elapsed()), "of-bare")
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "values/s")
}

// bareCalls is the time that limit goroutines take for n calls.
func bareCalls(n, limit int, each time.Duration) time.Duration {
	begin := time.Now()
	var wg sync.WaitGroup
	for range limit {
		wg.Go(func() {
			for range n / limit {
				<-time.After(each)
			}
		})
	}
	wg.Wait()
	return time.Since(begin)
}

func TestReadingBackEndsWhenNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		type found = scheduler.Found[*interfaces.Interface, struct{}]
		_, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, struct{}]{
			Name: "interface", Model: models.For[*interfaces.Interface](),
			Retrieve: func(ctx context.Context, _ []scheduler.Desired[*interfaces.Interface]) iter.Seq2[found, error] {
				return func(yield func(found, error) bool) {
					<-ctx.Done()
					yield(found{}, ctx.Err())
				}
			},
		})
		must(t, err)
		defer begin(t, s)()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		if _, err := s.Commit(ctx, scheduler.Txn{Refresh: true}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Commit returns %v", err)
		}
		mustCommit(t, s, scheduler.Txn{})
		if took := time.Since(begun); took != time.Second {
			t.Errorf("the scheduler was busy for %v", took)
		}
	})
}
