package owner_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/internal/owner"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

const key = "/vnf-agent/vpp1/owner"

// An agent is a Keeper with what it did.
type agent struct {
	*owner.Keeper
	log   *bytes.Buffer
	ended chan error
	kill  context.CancelFunc // ends Run, which releases the label
}

// holderOn is an agent on a host, whose processes are not seen from others.
func holderOn(host, installation string) owner.Holder {
	return owner.Holder{Label: "vpp1", Installation: installation, Host: host, PID: 7, Life: owner.NewID(), Boot: host, Space: host, Started: 1}
}

func newAgent(store kvdbsync.Leaser, self owner.Holder, change func(*owner.Options)) *agent {
	a := &agent{log: &bytes.Buffer{}, ended: make(chan error, 1)}
	o := owner.Options{
		Store: "memory", Leaser: store, Key: key, Self: self,
		Log:  slog.New(slog.NewTextHandler(a.log, &slog.HandlerOptions{Level: slog.LevelInfo})),
		Runs: func(int, uint64) bool { return false },
	}
	if change != nil {
		change(&o)
	}
	a.Keeper = owner.NewKeeper(o)
	return a
}

func (a *agent) take(t *testing.T) error { t.Helper(); return a.Take(t.Context(), time.Second) }

func (a *agent) run(t *testing.T) {
	t.Helper()
	var ctx context.Context
	ctx, a.kill = context.WithCancel(t.Context())
	go func() { a.ended <- a.Run(ctx) }()
	synctest.Wait()
}

func (a *agent) end(t *testing.T) {
	t.Helper()
	a.kill()
	if err := <-a.ended; err != nil {
		t.Errorf("the end: %v", err)
	}
}

// runs says that the agent has not ended.
func (a *agent) runs(t *testing.T) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-a.ended:
		t.Fatalf("ended: %v", err)
	default:
	}
}

func holder(t *testing.T, m *conformance.Memory) string {
	t.Helper()
	value, err := m.Get(t.Context(), key)
	if errors.Is(err, kvdbsync.ErrNotFound) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	_, id, _ := strings.Cut(string(value), `"installation":"`)
	return id[:2]
}

func mustTake(t *testing.T, a *agent) {
	t.Helper()
	if err := a.take(t); err != nil {
		t.Fatal(err)
	}
}

func TestSecondAgentIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &conformance.Memory{}
		first := newAgent(store, holderOn("alpha", "i1"), nil)
		mustTake(t, first)
		first.run(t)

		begun := time.Now()
		elsewhere := newAgent(store, holderOn("beta", "i2"), nil)
		err := elsewhere.take(t)
		elsewhere.Close()
		var taken *owner.TakenError
		if !errors.As(err, &taken) || taken.Holder.Installation != "i1" {
			t.Fatalf("another host: %v", err)
		}
		for _, want := range []string{"vpp1", "pid 7", "host alpha", "installation i1", key, "memory"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the error does not name %q: %v", want, err)
			}
		}
		if took := time.Since(begun); took < 10*time.Second || took > 14*time.Second {
			t.Errorf("refused after %v: want the time of a lease", took)
		}

		begun = time.Now()
		same := holderOn("alpha", "i3")
		here := newAgent(store, same, func(o *owner.Options) { o.Runs = func(int, uint64) bool { return true } })
		if err := here.take(t); !errors.Is(err, owner.ErrTaken) || time.Since(begun) > time.Second {
			t.Errorf("the same host: %v after %v: want it at once", err, time.Since(begun))
		}
		here.Close()
		first.runs(t)
		first.end(t)
		if got := holder(t, store); got != "" {
			t.Errorf("%s holds the label after its end", got)
		}
	})
}

func TestRestartAfterADeath(t *testing.T) {
	tests := []struct {
		name string
		next owner.Holder
		wait time.Duration
	}{
		{"of the same installation", holderOn("alpha", "i1"), 0},
		{"without the state folder, on the same host", holderOn("alpha", "i2"), 0},
		{"without the state folder, in another container", owner.Holder{Label: "vpp1", Installation: "i2", Host: "c2", PID: 1, Life: "x", Boot: "alpha", Space: "c2", Started: 1}, 5 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &conformance.Memory{}
				l, err := store.Lease(t.Context(), time.Hour)
				if err != nil {
					t.Fatal(err)
				}
				killed := newAgent(lent{l}, holderOn("alpha", "i1"), nil)
				mustTake(t, killed)
				time.AfterFunc(5*time.Second, store.Revoke) // the store ends its lease

				begun := time.Now()
				next := newAgent(store, tt.next, nil)
				mustTake(t, next)
				if took := time.Since(begun); took < tt.wait || took > tt.wait+time.Second {
					t.Errorf("it took %v, want %v", took, tt.wait)
				}
				next.run(t)
				wait(time.Minute)
				next.runs(t)
				if got := holder(t, store); got != tt.next.Installation {
					t.Errorf("%q holds the label, want %s", got, tt.next.Installation)
				}
				next.end(t)
			})
		})
	}
}

// lent gives one lease, again and again.
type lent struct{ lease kvdbsync.Lease }

func (l lent) Lease(context.Context, time.Duration) (kvdbsync.Lease, error) { return l.lease, nil }

func TestLostLeaseIsTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &conformance.Memory{}
		a := newAgent(store, holderOn("alpha", "i1"), nil)
		mustTake(t, a)
		a.run(t)
		restore := store.Sever()
		wait(time.Minute)
		a.runs(t)
		restore()
		wait(31 * time.Second)
		a.runs(t)
		if holder(t, store) != "i1" || !strings.Contains(a.log.String(), "held again") {
			t.Errorf("after an outage %q holds the label; %s", holder(t, store), a.log)
		}
		store.Txn(kvdbsync.Event{Key: key}) // somebody wipes the store
		wait(6 * time.Second)
		if holder(t, store) != "i1" {
			t.Errorf("after the key was deleted %q holds the label", holder(t, store))
		}
		a.end(t)
	})
}

// A look reads one key. A list of a prefix makes Redis scan all keys of all agents.
func TestLooksListNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &conformance.Memory{}
		lease, err := store.Lease(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		counted := &countedLease{Lease: lease}
		a := newAgent(lent{counted}, holderOn("alpha", "i1"), nil)
		mustTake(t, a)
		a.run(t)
		wait(time.Minute)
		a.end(t)
		if counted.gets == 0 || counted.lists > 0 {
			t.Errorf("%d keys read and %d lists in a minute; want reads only", counted.gets, counted.lists)
		}
	})
}

// A countedLease counts the reads of a lease.
type countedLease struct {
	kvdbsync.Lease
	gets, lists int
}

func (l *countedLease) Get(ctx context.Context, key string) ([]byte, error) {
	l.gets++
	return l.Lease.Get(ctx, key)
}

func (l *countedLease) List(ctx context.Context, prefix string) ([]kvdbsync.Pair, error) {
	l.lists++
	return l.Lease.List(ctx, prefix)
}

func TestAnotherThatLivesStopsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &conformance.Memory{}
		var paused atomic.Int32
		a := newAgent(store, holderOn("alpha", "i1"), func(o *owner.Options) {
			o.Pause = func(context.Context) func() { paused.Add(1); return func() { paused.Add(-1) } }
		})
		mustTake(t, a)
		a.run(t)
		restore := store.Sever()
		wait(time.Minute)
		restore()
		other := newAgent(store, holderOn("beta", "i2"), nil)
		mustTake(t, other) // before a tries again
		other.run(t)
		<-watch(t, owner.Admitting(&conformance.Memory{}, other.Keeper)) // which is admitted at once
		go func() { _ = a.Admit(t.Context()) }()                         // as a watch does that reaches the store again
		wait(5 * time.Second)
		a.runs(t)
		if paused.Load() != 1 {
			t.Error("it is not known whether the other lives, and the agent is not paused")
		}
		wait(9 * time.Second)
		var taken *owner.TakenError
		if err := <-a.ended; !errors.As(err, &taken) || taken.Holder.Installation != "i2" {
			t.Errorf("ended with %v", err)
		}
		other.runs(t)
		other.end(t)
	})
}

// A watch that has reached the store yields nothing while another may have the label.
func TestAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &conformance.Memory{}
		store.Txn(kvdbsync.Event{Key: "/vnf-agent/vpp1/config/a", Value: []byte("{}")})
		restore := store.Sever()
		late := newAgent(store, holderOn("beta", "i2"), nil)
		mustTake(t, late) // which the outage of the store does not prevent
		late.run(t)
		restore()
		first := newAgent(store, holderOn("alpha", "i1"), nil)
		mustTake(t, first)
		first.run(t)

		yielded := watch(t, owner.Admitting(store, late.Keeper))
		wait(8 * time.Second)
		if len(yielded) > 0 {
			t.Fatalf("yielded %v while another has the label", <-yielded)
		}
		wait(6 * time.Second)
		if err := <-late.ended; !errors.Is(err, owner.ErrTaken) {
			t.Errorf("ended with %v", err)
		}
		if len(yielded) > 0 {
			t.Errorf("yielded %v while another has the label", <-yielded)
		}
		if len(<-watch(t, owner.Admitting(store, first.Keeper))) != 1 {
			t.Error("the owner does not see the store")
		}
		first.end(t)
	})
}

// watch passes on what the first batch of a watch has.
func watch(t *testing.T, c kvdbsync.Connector) <-chan []kvdbsync.Event {
	out := make(chan []kvdbsync.Event, 1)
	go func() {
		next, stop := iter.Pull2(c.Watch(t.Context(), "/vnf-agent/vpp1/config/"))
		defer stop()
		if b, err, ok := next(); ok && err == nil {
			out <- b.Events
		}
	}()
	synctest.Wait()
	return out
}

// A store that may only be read is one without a lease: the agent works, and says so once.
func TestStoreThatMayNotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &conformance.Memory{}
		a := newAgent(forbidden{}, holderOn("alpha", "i1"), nil)
		mustTake(t, a)
		a.run(t)
		for range 3 {
			if <-watch(t, owner.Admitting(store, a.Keeper)); t.Context().Err() != nil {
				t.Fatal("not admitted")
			}
			wait(time.Minute)
		}
		a.runs(t)
		if n := strings.Count(a.log.String(), "level=WARN"); n != 1 || !strings.Contains(a.log.String(), "permission denied") {
			t.Errorf("%d warnings, want one: %s", n, a.log)
		}
		a.end(t)
	})
}

// A store whose answers make the agent panic stops nothing but the lease.
func TestStoreThatMakesTheLeasePanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, store := range []kvdbsync.Leaser{panicking{}, lent{panickingLease{}}} {
			a := newAgent(store, holderOn("alpha", "i1"), nil)
			mustTake(t, a)
			a.run(t)
			wait(time.Hour)
			a.runs(t)
			a.end(t)
		}
	})
}

type panicking struct{}

func (panicking) Lease(context.Context, time.Duration) (kvdbsync.Lease, error) {
	panic("an answer without a header")
}

// A panickingLease has no methods that can be called but TTL.
type panickingLease struct{ kvdbsync.Lease }

func (panickingLease) TTL() time.Duration { return time.Minute }

type forbidden struct{}

func (forbidden) Lease(context.Context, time.Duration) (kvdbsync.Lease, error) {
	return nil, errors.New("permission denied")
}

// A store that is away is nothing to warn of: its source does.
func TestStoreThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(forbidden{}, holderOn("alpha", "i1"), nil)
		mustTake(t, a)
		a.run(t)
		wait(time.Hour)
		a.runs(t)
		if a.log.Len() > 0 {
			t.Errorf("said %s", a.log)
		}
		a.end(t)
	})
}

// Two that start at once: one gets the label, the other is told whose it is.
func TestRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &conformance.Memory{}
		agents := []*agent{newAgent(store, holderOn("alpha", "i1"), nil), newAgent(store, holderOn("beta", "i2"), nil)}
		ends := make(chan error, 2)
		for _, a := range agents {
			go func() { ends <- a.take(t) }()
		}
		a, b := <-ends, <-ends
		if (a == nil) == (b == nil) || !errors.Is(errors.Join(a, b), owner.ErrTaken) {
			t.Errorf("two at once: %v, %v", a, b)
		}
		for _, a := range agents {
			a.Close()
		}
	})
}

// wait lets time pass, which is not that of the clock.
func wait(d time.Duration) { <-time.After(d) }
