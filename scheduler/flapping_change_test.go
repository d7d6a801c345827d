package scheduler_test

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/explain"
	"github.com/keyplane/keyplane/scheduler/internal/retry"
)

// A host is one interface in a system.
type host struct {
	mtu     atomic.Uint32
	updates atomic.Int32
}

// register adds the descriptor of the interface to s.
func (h *host) register(t *testing.T, s *scheduler.Scheduler) {
	t.Helper()
	type none = struct{}
	write := func(v *interfaces.Interface) (none, error) { h.mtu.Store(v.GetMtu()); return none{}, nil }
	_, err := scheduler.Register(s, scheduler.Descriptor[*interfaces.Interface, none]{
		Name: "interface", Model: models.For[*interfaces.Interface](),
		Create: func(_ context.Context, _ string, v *interfaces.Interface) (none, error) { return write(v) },
		Update: func(_ context.Context, _ string, _, v *interfaces.Interface, _ none) (none, error) {
			h.updates.Add(1)
			return write(v)
		},
		Delete: func(context.Context, string, *interfaces.Interface, none) error { return nil },
		Retrieve: func(context.Context, []scheduler.Desired[*interfaces.Interface]) iter.Seq2[scheduler.Found[*interfaces.Interface, none], error] {
			return func(yield func(scheduler.Found[*interfaces.Interface, none], error) bool) {
				if mtu := h.mtu.Load(); mtu != 0 {
					yield(scheduler.Found[*interfaces.Interface, none]{Value: &interfaces.Interface{Name: "if0", Mtu: mtu}}, nil)
				}
			}
		},
	})
	must(t, err)
}

// What somebody else changes at once is changed back with pauses, however the change is noticed. The log says so once. A
// resync and a new declaration do not wait.
func TestWhatIsChangedAgainAndAgain(t *testing.T) {
	for name, notice := range map[string]func(s *scheduler.Scheduler, key string){
		"read back": func(s *scheduler.Scheduler, _ string) { _ = s.Refresh("interface") },
		"observed": func(s *scheduler.Scheduler, key string) {
			s.Observe(scheduler.Observed{Key: key, Value: &interfaces.Interface{Name: "if0", Mtu: 1000}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				s := scheduler.New(scheduler.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
				var h host
				h.register(t, s)
				defer begin(t, s)()
				declared := &interfaces.Interface{Name: "if0", Mtu: 1500}
				key := keyOf(t, declared)
				v, err := s.Value(key, declared)
				must(t, err)
				mustCommit(t, s, scheduler.Txn{Changes: []scheduler.Change{v.Change()}})
				change := func() {
					h.mtu.Store(1000)
					notice(s, key)
					synctest.Wait()
				}
				for range retry.After {
					if st, _ := s.Status(key); st.State != scheduler.Configured || h.mtu.Load() != 1500 {
						t.Fatalf("it is %v with MTU %d", st.State, h.mtu.Load())
					}
					change()
				}
				st, _ := s.Status(key)
				if text := explain.Key(s, key).Text; st.State != scheduler.Retrying || h.mtu.Load() != 1000 || !strings.Contains(text, "somebody else changes it repeatedly") {
					t.Fatalf("after %d changes it is %v with MTU %d, explained as %q", retry.After, st.State, h.mtu.Load(), text)
				}
				for begun := time.Now(); time.Since(begun) < time.Hour; <-time.After(time.Second) {
					if h.mtu.Load() == 1500 {
						change()
					}
				}
				if h.updates.Load() < 30 || h.updates.Load() > 80 {
					t.Errorf("changed back %d times in an hour: want one a minute in the end", h.updates.Load())
				}
				if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), key) {
					t.Errorf("%d warnings, want one:\n%s", n, &log)
				}
				for _, txn := range []scheduler.Txn{{Refresh: true}, {Changes: []scheduler.Change{v.Change()}}} {
					change()
					mustCommit(t, s, txn)
					if st, _ := s.Status(key); st.State != scheduler.Configured || h.mtu.Load() != 1500 {
						t.Errorf("after %+v it is %v with MTU %d", txn, st.State, h.mtu.Load())
					}
				}
				change()
				<-time.After(2 * time.Minute) // the other controller has ended
				if st, _ := s.Status(key); st.State != scheduler.Configured || h.mtu.Load() != 1500 {
					t.Errorf("in the end it is %v with MTU %d", st.State, h.mtu.Load())
				}
			})
		})
	}
}
