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
		mustCommit(t, s, scheduler.Txn{Changes: []scheduler.Change{scheduler.Want(v)}})
	}
	if n := len(s.History()); n > 10 || n < 2 {
		t.Errorf("%d records of a tenth of the bound each", n)
	}
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
			txn.Changes = append(txn.Changes, scheduler.Want(v))
		}
	}
	mustCommit(t, s, txn)
	text := s.Explain("layer/0/0").String()
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
	s := scheduler.New(scheduler.Options{Out: &brokenPipe{}, Log: slog.New(slog.DiscardHandler)})
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
