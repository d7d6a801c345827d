package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/explain"
	"github.com/keyplane/keyplane/scheduler/txnlog"
)

// plain registers interfaces whose Create is the given one.
func plain(tb testing.TB, s *scheduler.Scheduler, create func(name string) error) {
	type none = struct{}
	_, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, none]{
		Name: "interface", Model: models.For[*interfaces.Interface](),
		Create: func(_ context.Context, _ string, v *interfaces.Interface) (none, error) {
			return none{}, create(v.Name)
		},
		Update: func(context.Context, string, *interfaces.Interface, *interfaces.Interface, none) (none, error) {
			return none{}, nil
		},
		Delete: func(context.Context, string, *interfaces.Interface, none) error { return nil },
	})
	if err != nil {
		tb.Fatal(err)
	}
}

func TestStopBeginsNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{Concurrency: 1})
		var called atomic.Int32
		plain(t, s, func(string) error {
			called.Add(1)
			<-time.After(time.Second) // whatever its context says
			return nil
		})
		stop := begin(t, s)
		must(t, s.Submit(t.Context(), scheduler.Txn{Changes: interfacesNamed(t, s, 100)}))
		synctest.Wait()
		begun := time.Now()
		stop()
		if took := time.Since(begun); took > time.Second || called.Load() != 1 {
			t.Errorf("ended after %v and %d verbs", took, called.Load())
		}
		for _, st := range s.Statuses("") {
			if st.Err != nil {
				t.Errorf("%s failed: %v", st.Key, st.Err)
			}
		}
	})
}

func TestWhatFailsTogetherIsRetriedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{Log: slog.New(slog.DiscardHandler)})
		plain(t, s, func(string) error { return errors.New("broken") })
		defer begin(t, s)()
		_, err := s.Commit(t.Context(), scheduler.Txn{Changes: interfacesNamed(t, s, 1000)})
		if err == nil {
			t.Fatal("nothing failed")
		}
		<-time.After(10 * time.Minute)
		if n := len(s.History()); n > 20 {
			t.Errorf("%d transactions", n)
		}
	})
}

func TestHistoryIsBoundedByBytes(t *testing.T) {
	const most = 1 << 20
	s := scheduler.New(scheduler.Options{HistoryBytes: most})
	plain(t, s, func(string) error { return nil })
	defer begin(t, s)()
	for i := range 100 {
		m := &interfaces.Interface{Name: "if1", Mtu: uint32(i), PhysAddress: strings.Repeat("x", most/10)}
		v, err := s.Value(key("if1"), m)
		must(t, err)
		mustCommit(t, s, scheduler.Txn{Changes: []scheduler.Change{v.Change()}})
	}
	if n := len(s.History()); n > 10 || n < 2 {
		t.Errorf("%d records of a tenth of the bound each", n)
	}
}

func TestHistoryIsBoundedByCount(t *testing.T) {
	const most, last = 10, 99
	s := scheduler.New(scheduler.Options{HistoryCount: most})
	defer begin(t, s)()
	for range last + 1 {
		mustCommit(t, s, scheduler.Txn{})
	}
	h := s.History()
	if len(h) != most || h[0].Seq != last-most+1 || h[most-1].Seq != last {
		t.Errorf("%d records, from #%d to #%d; want the last %d, up to #%d", len(h), h[0].Seq, h[len(h)-1].Seq, most, last)
	}
}

// TestNoticesNeverOverflow has the southbound say more than anybody reads, while
// a verb takes its time. The newest of each key counts, in one transaction.
func TestNoticesNeverOverflow(t *testing.T) {
	const notices, keys = 100_000, 5
	synctest.Test(t, func(t *testing.T) {
		s := scheduler.New(scheduler.Options{})
		plain(t, s, func(string) error {
			<-time.After(time.Second)
			return nil
		})
		_, err := scheduler.Register(s, scheduler.Descriptor[*emptypb.Empty, struct{}]{Name: "host", Prefix: "host/"})
		must(t, err)
		defer begin(t, s)()
		must(t, s.Submit(t.Context(), scheduler.Txn{Changes: interfacesNamed(t, s, 1)}))
		synctest.Wait()
		for i := range notices {
			o := scheduler.Observed{Key: fmt.Sprintf("host/%d", i%keys)}
			if last := (i/keys)%2 == 1; last != (i%keys == 0) { // in the end only the first key is gone again
				o.Value = &emptypb.Empty{}
			}
			s.Observe(o)
		}
		<-time.After(time.Minute)

		if got := len(s.Statuses("host/")); got != keys-1 {
			t.Errorf("%d keys stand, want %d", got, keys-1)
		}
		h := s.History() // the notification does not wait for the verb, so it ends first
		if got := len(h[0].Values); len(h) != 2 || h[0].Type != scheduler.Notification || got != keys-1 {
			t.Errorf("%d transactions, the first with %d values; want 2, and %d", len(h), got, keys-1)
		}
	})
}

func TestExplainTellsEachValueOnce(t *testing.T) {
	const depth = 200
	s := scheduler.New(scheduler.Options{})
	_, err := scheduler.Register(s, scheduler.Descriptor[*emptypb.Empty, struct{}]{
		Name: "layer", Prefix: "layer/",
		Create: func(context.Context, string, *emptypb.Empty) (struct{}, error) { return struct{}{}, nil },
		Delete: func(context.Context, string, *emptypb.Empty, struct{}) error { return nil },
		Dependencies: func(key string, _ *emptypb.Empty) (out []scheduler.Dependency) {
			var layer, i int
			if _, err := fmt.Sscanf(key, "layer/%d/%d", &layer, &i); err != nil {
				panic(err)
			}
			for j := range 3 {
				out = append(out, scheduler.Dependency{Label: fmt.Sprint(j), Key: fmt.Sprintf("layer/%d/%d", layer+1, j)})
			}
			return out
		},
	})
	must(t, err)
	defer begin(t, s)()
	var txn scheduler.Txn
	for layer := range depth {
		for i := range 3 {
			v, err := s.Value(fmt.Sprintf("layer/%d/%d", layer, i), &emptypb.Empty{})
			must(t, err)
			txn.Changes = append(txn.Changes, v.Change())
		}
	}
	mustCommit(t, s, txn)
	text := explain.Key(s, "layer/0/0").String()
	if lines := strings.Count(text, "\n"); lines > 10*depth || !strings.Contains(text, "nobody declares") {
		t.Errorf("%d lines", lines)
	}
}

func TestPanicInMeaningIsAnError(t *testing.T) {
	s := scheduler.New(scheduler.Options{})
	_, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, struct{}]{
		Name: "interface", Model: models.For[*interfaces.Interface](),
		Validate: func(string, *interfaces.Interface) error { panic("of Validate") },
	})
	must(t, err)
	if _, err := s.Value(key("if1"), &interfaces.Interface{Name: "if1"}); !errors.Is(err, scheduler.ErrInvalid) {
		t.Errorf("Value returns %v", err)
	}
}

// brokenPipe fails after its first write.
type brokenPipe struct{ writes int }

func (b *brokenPipe) Write(p []byte) (int, error) {
	if b.writes++; b.writes > 1 {
		return 0, errors.New("broken pipe")
	}
	return len(p), nil
}

func TestOutputThatBreaksStopsNothing(t *testing.T) {
	s := scheduler.New(scheduler.Options{TransactionLog: txnlog.New(txnlog.Options{Full: true, Out: &brokenPipe{}, Log: slog.New(slog.DiscardHandler)})})
	plain(t, s, func(string) error { return nil })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	for i := range 3 {
		mustCommit(t, s, scheduler.Txn{Changes: interfacesNamed(t, s, i+1)})
	}
	must(t, s.Flush(t.Context()))
	cancel()
	if err := <-done; err == nil {
		t.Error("Run does not say that the output broke")
	}
}
