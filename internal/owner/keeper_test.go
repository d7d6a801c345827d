package owner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	if m, ok := store.(*conformance.Memory); ok {
		o.Get = func(ctx context.Context, key string) ([]byte, error) { return getIn(ctx, m, key) }
	}
	if change != nil {
		change(&o)
	}
	a.Keeper = owner.NewKeeper(o)
	return a
}

// getIn reads a key in a session, which a severed store does not begin.
func getIn(ctx context.Context, m *conformance.Memory, key string) ([]byte, error) {
	s, err := m.Session(ctx, time.Minute)
	if err != nil {
		return nil, err
	}
	defer s.Close(ctx)
	return s.Get(ctx, key)
}

// started returns an agent that has tried once to get the label.
func started(t *testing.T, store kvdbsync.Leaser, self owner.Holder) *agent {
	t.Helper()
	a := newAgent(store, self, nil)
	a.run(t)
	return a
}

// has fails unless the agent says so of the label: it is its own (why is nil), not known, or another's.
func (a *agent) has(t *testing.T, when string, why error) {
	t.Helper()
	synctest.Wait()
	if got := a.Withhold(); !errors.Is(got, why) {
		t.Fatalf("%s: %v, want %v\n%s", when, got, why, a.log)
	}
}

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

// put writes the key as people do, without a lease.
func put(store *conformance.Memory, h owner.Holder) {
	text, _ := json.Marshal(h)
	store.Txn(kvdbsync.Event{Key: key}, kvdbsync.Event{Key: key, Value: text})
}

// While one agent has the label, another applies nothing from the store. It names the first, and follows it.
func TestSecondAgentWaits(t *testing.T) {
	for _, other := range []owner.Holder{
		holderOn("beta", "i2"),
		holderOn("alpha", "i3"),
		{Label: "vpp1", Installation: "i1", Host: "alpha", PID: 7, Life: owner.NewID(), Boot: "of the copy", Space: "s", Started: 1}, // a copied machine
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &conformance.Memory{}
			alive := func(o *owner.Options) { o.Runs = func(int, uint64) bool { return true } }
			first, second := newAgent(store, holderOn("alpha", "i1"), alive), newAgent(store, other, alive)
			first.run(t)
			first.has(t, "alone", nil)
			second.run(t)
			for range 60 {
				first.has(t, "the first one", nil)
				second.has(t, "the second one", owner.ErrTaken)
				wait(time.Minute)
			}
			err := second.Withhold()
			for _, want := range []string{"vpp1", "pid 7", "host alpha", "installation i1", key, "memory"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not name %q: %v", want, err)
				}
			}
			if n := strings.Count(second.log.String(), "level=WARN"); n != 1 {
				t.Errorf("%d warnings, want one: %s", n, second.log)
			}
			if first.log.Len() > 0 {
				t.Errorf("the first one said %s", first.log)
			}
			first.end(t)
			wait(6 * time.Second)
			second.has(t, "after the end of the first", nil)
			second.end(t)
			if got := holder(t, store); got != "" {
				t.Errorf("%s holds the label after its end", got)
			}
		})
	}
}

// Two containers of one machine with copies of one state folder: the later one takes the label, and keeps it.
func TestCopiesOnOneMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &conformance.Memory{}
		in := func(space string) owner.Holder {
			h := holderOn("alpha", "i1")
			h.Space = space
			return h
		}
		first := started(t, store, in("c1"))
		second := started(t, store, in("c2"))
		second.has(t, "the later one", nil)
		wait(6 * time.Second)
		for range 60 {
			first.has(t, "the earlier one", owner.ErrTaken)
			second.has(t, "the later one", nil)
			wait(time.Minute)
		}
		first.end(t)
		second.end(t)
	})
}

func TestRestartAfterADeath(t *testing.T) {
	again := holderOn("alpha", "i1")
	again.Boot = "after the next boot"
	tests := []struct {
		name string
		next owner.Holder
		wait time.Duration
	}{
		{"of the same installation", holderOn("alpha", "i1"), 0},
		{"of the same installation, after another boot", again, 5 * time.Second},
		{"without the state folder, on the same host", holderOn("alpha", "i2"), 0},
		{"without the state folder, in another container", owner.Holder{Label: "vpp1", Installation: "i2", Host: "c2", PID: 1, Life: "x", Boot: "alpha", Space: "c2", Started: 1}, 5 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &conformance.Memory{}
				killed, err := store.Lease(t.Context(), 10*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				text, _ := json.Marshal(holderOn("alpha", "i1"))
				if _, err := killed.Claim(t.Context(), key, nil, text); err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(5*time.Second, store.Revoke) // the store ends its lease

				next := started(t, store, tt.next)
				if tt.wait > 0 {
					wait(tt.wait - time.Second)
					next.has(t, "before the end of the lease", owner.ErrTaken)
					wait(2 * time.Second)
				}
				next.has(t, "after the death", nil)
				wait(time.Minute)
				next.has(t, "later", nil)
				if got := holder(t, store); got != tt.next.Installation {
					t.Errorf("%q holds the label, want %s", got, tt.next.Installation)
				}
				if strings.Contains(next.log.String(), "WARN") {
					t.Errorf("said %s", next.log)
				}
				next.end(t)
			})
		})
	}
}

func TestLostLeaseIsTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &conformance.Memory{}
		a := started(t, store, holderOn("alpha", "i1"))
		restore := store.Sever()
		wait(time.Minute)
		a.has(t, "while the store is away", owner.ErrUnsettled)
		restore()
		wait(31 * time.Second)
		a.has(t, "after the outage", nil)
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

// Whoever wants to know asks for an attempt, which does not wait for the back-off.
func TestWithholdBeginsAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &conformance.Memory{}
		restore := store.Sever()
		a := started(t, store, holderOn("alpha", "i1"))
		wait(time.Hour)
		restore()
		a.has(t, "before the attempt", owner.ErrUnsettled)
		wait(time.Second)
		a.has(t, "after it", nil)
		a.end(t)
	})
}

// A busyStore can be read, and leaves requests for leases unanswered while it is busy.
type busyStore struct {
	*conformance.Memory
	busy atomic.Bool
}

func (s *busyStore) Lease(ctx context.Context, ttl time.Duration) (kvdbsync.Lease, error) {
	if s.busy.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Memory.Lease(ctx, ttl)
}

// An unanswered request does not say that the store lets nobody hold the label, unless it always is.
func TestLeaseWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &busyStore{Memory: &conformance.Memory{}}
		read := func(o *owner.Options) {
			o.Get = func(ctx context.Context, key string) ([]byte, error) { return getIn(ctx, store.Memory, key) }
		}
		first := started(t, store.Memory, holderOn("alpha", "i1"))
		first.has(t, "alone", nil)
		store.busy.Store(true)
		second := newAgent(store, holderOn("beta", "i2"), read)
		second.run(t)
		for range 10 {
			wait(time.Second)
			second.has(t, "while the store is busy", owner.ErrUnsettled)
		}
		store.busy.Store(false)
		wait(time.Minute)
		second.has(t, "when the store answers", owner.ErrTaken)
		second.end(t)
		first.end(t)

		store.busy.Store(true)
		third := newAgent(store, holderOn("gamma", "i3"), read)
		third.run(t)
		wait(5 * time.Minute)
		third.has(t, "in a store that never answers such requests", nil)
		third.end(t)
	})
}

// Nobody keeps the label who has only written its key, or has a lease such as no agent takes.
func TestClaimThatDoesNotCount(t *testing.T) {
	living := holderOn("beta", "i2")
	far := living
	far.Expires = 1 << 40
	long := living
	long.Host = strings.Repeat("x", 1<<20)
	claims := map[string]func(*testing.T, *conformance.Memory){
		"a put":                              func(_ *testing.T, m *conformance.Memory) { put(m, living) },
		"a put that says when it ends":       func(_ *testing.T, m *conformance.Memory) { put(m, far) },
		"another text":                       func(_ *testing.T, m *conformance.Memory) { m.Txn(kvdbsync.Event{Key: key, Value: []byte("x")}) },
		"a name of a megabyte":               func(t *testing.T, m *conformance.Memory) { leased(t, m, long, 30*time.Second) },
		"a lease of more than a minute":      func(t *testing.T, m *conformance.Memory) { leased(t, m, living, time.Hour) },
		"a lease with an end that overflows": func(t *testing.T, m *conformance.Memory) { leased(t, m, far, kvdbsync.Forever) },
	}
	for name, claim := range claims {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				alive := func(o *owner.Options) { o.Runs = func(int, uint64) bool { return true } }
				store := &conformance.Memory{}
				claim(t, store)
				a := newAgent(store, holderOn("alpha", "i1"), alive)
				a.run(t)
				a.has(t, "before the start", nil)
				claim(t, store)
				for range 30 {
					a.has(t, "while the agent runs", nil)
					wait(time.Second)
				}
				if got := holder(t, store); got != "i1" {
					t.Errorf("%q holds the label", got)
				}
				a.end(t)
			})
		})
	}
}

// leased writes the key under a lease, over that of others.
func leased(t *testing.T, m *conformance.Memory, h owner.Holder, ttl time.Duration) (end func()) {
	l, err := m.Lease(t.Context(), ttl)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(h)
	if err := l.Apply(t.Context(), []kvdbsync.Pair{{Key: key, Value: text}}); err != nil {
		t.Fatal(err)
	}
	return func() { _ = l.Close(t.Context()) }
}

// A claim under a lease withholds the store as long as the lease lasts, and no longer.
func TestClaimUnderALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &conformance.Memory{}
		a := started(t, store, holderOn("alpha", "i1"))
		end := leased(t, store, holderOn("beta", "i2"), 30*time.Second)
		wait(6 * time.Second)
		a.has(t, "after the claim", owner.ErrTaken)
		wait(time.Hour)
		a.has(t, "while it is renewed", owner.ErrTaken)
		end()
		wait(6 * time.Second)
		a.has(t, "after its end", nil)
		a.end(t)
	})
}

// An agent that had the label, and was away while another took it, applies nothing when it comes back, and does not take
// it back.
func TestTakenWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &conformance.Memory{}
		a := started(t, store, holderOn("alpha", "i1"))
		restore := store.Sever()
		wait(time.Minute)
		restore()
		other := started(t, store, holderOn("beta", "i2")) // before a tries again
		other.has(t, "alone", nil)
		if err := a.Withhold(); err == nil {
			t.Fatal("the agent applies what the store says before it has asked whose the label is")
		}
		for range 60 {
			wait(time.Minute)
			a.has(t, "while the other has it", owner.ErrTaken)
			other.has(t, "the other", nil)
		}
		other.end(t)
		wait(6 * time.Second)
		a.has(t, "after the end of the other", nil)
		a.end(t)
	})
}

// A process that has slept knows by the clock that its lease may be over, before anybody has noticed that it is lost.
func TestLeaseThatIsOverByTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &conformance.Memory{}
		lease, err := store.Lease(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		slept := &sleptLease{Lease: lease}
		a := started(t, lent{slept}, holderOn("alpha", "i1"))
		a.has(t, "before", nil)
		slept.over.Store(true)
		if err := a.Withhold(); !errors.Is(err, owner.ErrUnsettled) {
			t.Errorf("after it: %v", err)
		}
		a.has(t, "after the next attempt", nil)
		a.end(t)
	})
}

// A key or a lease that is gone before its time is told, because the store may have lost more. A store whose leases are over at
// once for a moment is no store that lets nobody hold the label.
func TestLossOfTheKeyIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &conformance.Memory{}
		lease, err := store.Lease(t.Context(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		slept := &sleptLease{Lease: lease}
		lost := 0
		a := newAgent(lent{slept}, holderOn("alpha", "i1"), func(o *owner.Options) {
			o.Lost = func() { lost++ }
			o.Get = func(ctx context.Context, key string) ([]byte, error) { return getIn(ctx, store, key) }
		})
		a.run(t)
		a.has(t, "at first", nil)
		store.Txn(kvdbsync.Event{Key: key})
		wait(time.Minute)
		a.has(t, "when the key is back", nil)
		if lost != 1 {
			t.Errorf("%d losses were told, want 1", lost)
		}
		slept.over.Store(true)
		slept.fails.Store(3)
		wait(time.Minute)
		a.has(t, "when the lease is another one", nil)
		if lost != 2 || strings.Contains(a.log.String(), "WARN") {
			t.Errorf("%d losses were told, want 2; %s", lost, a.log)
		}
		slept.over.Store(true)
		slept.fails.Store(100)
		wait(10 * time.Minute)
		a.has(t, "when no lease holds", nil)
		if !strings.Contains(a.log.String(), "no lease in this store keeps") {
			t.Errorf("nobody is warned: %s", a.log)
		}
		a.end(t)
	})
}

// A sleptLease may be over, and has not been lost yet.
type sleptLease struct {
	kvdbsync.Lease
	over  atomic.Bool
	fails atomic.Int64 // number of next claims for which it is over
}

func (l *sleptLease) Claim(ctx context.Context, key string, old, value []byte) ([]byte, error) {
	l.over.Store(false)
	if l.fails.Add(-1) >= 0 {
		return nil, kvdbsync.ErrSessionOver
	}
	return l.Lease.Claim(ctx, key, old, value)
}

func (l *sleptLease) Over() error {
	if l.over.Load() {
		return kvdbsync.ErrSessionOver
	}
	return l.Lease.Over()
}

func (l *sleptLease) Close(context.Context) error { return nil }

// lent gives one lease, again and again.
type lent struct{ lease kvdbsync.Lease }

func (l lent) Lease(context.Context, time.Duration) (kvdbsync.Lease, error) { return l.lease, nil }

// A look reads one key. A list of a prefix makes Redis scan all keys of all agents.
func TestLooksListNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &conformance.Memory{}
		lease, err := store.Lease(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		counted := &countedLease{Lease: lease}
		a := started(t, lent{counted}, holderOn("alpha", "i1"))
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

// A store that may only be read is one without a lease: the agent works, and says so once.
func TestStoreThatMayNotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(forbidden{}, holderOn("alpha", "i1"), func(o *owner.Options) { o.Get = (&conformance.Memory{}).Get })
		a.run(t)
		for range 3 {
			a.has(t, "without a lease", nil)
			wait(time.Minute)
		}
		if n := strings.Count(a.log.String(), "level=WARN"); n != 1 || !strings.Contains(a.log.String(), "permission denied") {
			t.Errorf("%d warnings, want one: %s", n, a.log)
		}
		a.end(t)
	})
}

// A fullStore takes no writes any more, so nobody can claim a label there, and shows what it has.
type fullStore struct {
	*conformance.Memory
	full atomic.Bool
}

func (s *fullStore) Lease(ctx context.Context, ttl time.Duration) (kvdbsync.Lease, error) {
	lease, err := s.Memory.Lease(ctx, ttl)
	if s.full.Load() {
		return nil, errors.New("database space exceeded")
	}
	return fullLease{lease, s}, err
}

type fullLease struct {
	kvdbsync.Lease
	in *fullStore
}

func (l fullLease) Claim(ctx context.Context, key string, old, value []byte) ([]byte, error) {
	if l.in.full.Load() {
		return nil, errors.New("database space exceeded")
	}
	return l.Lease.Claim(ctx, key, old, value)
}

// While a store takes no writes, the agent that waits for another one applies nothing: the key of that one is there, so it lives.
func TestStoreThatIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fullStore{Memory: &conformance.Memory{}}
		first := started(t, store.Memory, holderOn("alpha", "i1"))
		second := newAgent(store, holderOn("beta", "i2"), func(o *owner.Options) {
			o.Get = func(ctx context.Context, key string) ([]byte, error) { return getIn(ctx, store.Memory, key) }
		})
		second.run(t)
		second.has(t, "beside the first one", owner.ErrTaken)
		store.full.Store(true)
		for range 60 {
			wait(time.Second)
			if second.Withhold() == nil {
				t.Fatalf("both have the label: %s", second.log)
			}
		}
		first.end(t)
		wait(time.Minute)
		second.has(t, "after the end of the first one", nil)
		second.end(t)
	})
}

// A store whose answers make the agent panic stops nothing but the lease.
func TestStoreThatMakesTheLeasePanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, store := range []kvdbsync.Leaser{panicking{}, lent{panickingLease{}}} {
			a := newAgent(store, holderOn("alpha", "i1"), func(o *owner.Options) { o.Get = (&conformance.Memory{}).Get })
			a.run(t)
			wait(time.Hour)
			a.has(t, "after an hour", nil)
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

// failing counts the attempts.
type failing struct{ attempts *int }

func (f failing) Lease(context.Context, time.Duration) (kvdbsync.Lease, error) {
	*f.attempts++
	return nil, errors.New("connection refused")
}

type forbidden struct{}

func (forbidden) Lease(context.Context, time.Duration) (kvdbsync.Lease, error) {
	return nil, errors.New("permission denied")
}

// A store that is away is nothing to warn of: its source does.
func TestStoreThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		var a *agent
		a = newAgent(failing{&attempts}, holderOn("alpha", "i1"), func(o *owner.Options) {
			o.Turned = func() { _ = a.Withhold() } // as the consumer of a source does
		})
		a.run(t)
		wait(time.Hour)
		a.has(t, "after an hour", owner.ErrUnsettled)
		if attempts > 1000 {
			t.Errorf("%d attempts in an hour", attempts)
		}
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
		a, b := newAgent(store, holderOn("alpha", "i1"), nil), newAgent(store, holderOn("beta", "i2"), nil)
		a.run(t)
		b.run(t)
		one, two := a.Withhold(), b.Withhold()
		if (one == nil) == (two == nil) || !errors.Is(errors.Join(one, two), owner.ErrTaken) {
			t.Errorf("two at once: %v, %v", one, two)
		}
		a.end(t)
		b.end(t)
	})
}

// What was published goes when another has the label, and nothing is published until that one has ended.
func TestPublishing(t *testing.T) {
	const status = "/vnf-agent/vpp1/status"
	synctest.Test(t, func(t *testing.T) {
		store := &conformance.Memory{}
		a := newAgent(store, holderOn("alpha", "i1"), nil)
		into := a.Publishing(store)
		begun := make(chan kvdbsync.Session, 1)
		go func() {
			s, err := into.Session(t.Context(), time.Minute)
			if err != nil {
				t.Error(err)
			}
			begun <- s
		}()
		synctest.Wait()
		if len(begun) > 0 {
			t.Error("a session has begun before it is known whose the label is")
		}
		a.run(t)
		s := <-begun
		write := func() error { return s.Apply(t.Context(), []kvdbsync.Pair{{Key: status, Value: []byte("x")}}) }
		if err := write(); err != nil {
			t.Fatal(err)
		}
		end := leased(t, store, holderOn("beta", "i2"), 10*time.Second)
		<-s.Lost()
		if err := write(); !errors.Is(err, kvdbsync.ErrSessionOver) {
			t.Errorf("a write after another has the label: %v", err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got, err := store.Get(t.Context(), status); !errors.Is(err, kvdbsync.ErrNotFound) {
			t.Errorf("%q is still there: %v", got, err)
		}
		if _, err := into.Session(t.Context(), time.Minute); !errors.Is(err, owner.ErrTaken) {
			t.Errorf("a session while another has the label: %v", err)
		}
		end()
		wait(6 * time.Second)
		s, err := into.Session(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		store.Revoke()
		<-s.Lost()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		a.end(t)
	})
}

// wait lets time pass, which is not that of the clock.
func wait(d time.Duration) { <-time.After(d) }
