package faults

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/faults/stores"
	"github.com/keyplane/keyplane/internal/testkit"
)

// A Scale is the size and the length of faults.
type Scale struct {
	Keys    int           // present before the fault
	Stop    time.Duration // time for which a server is stopped, or a line is cut
	Pending int           // changes that wait for a slow consumer
	Flood   int           // changes of one key
	Kills   int           // of the agent
	Many    int           // keys, of the fault about large numbers of keys
	Grace   time.Duration // of the orchestrator; 0: its default

	SlowKeys, SlowBytes int // keys that are listed over a slow line, and bytes of their values
	SlowRate            int // of that line, bytes per second

	Swift time.Duration // bound for a change while a store is upgraded; 0: none
	Bound time.Duration // bound for the recovery
}

// small is the size for go test.
func small() Scale {
	return Scale{Keys: 100, Stop: 2 * time.Second, Pending: 3000, Flood: 500, Kills: 4, Grace: time.Second, Bound: testkit.Patience,
		SlowKeys: 400, SlowBytes: 1200, SlowRate: 120 << 10}
}

// full is the size for make faults, which writes docs/faults.md.
func full() Scale {
	return Scale{Keys: 1000, Stop: 30 * time.Second, Pending: 100_000, Flood: 50_000, Kills: 30, Many: 1_000_000, Swift: 3 * time.Second, Bound: testkit.Patience,
		SlowKeys: 20_000, SlowRate: 100_000}
}

// A Run is one life: a store, its one writer, and an agent that follows the store.
type Run struct {
	testing.TB
	Scale Scale
	Rand  *rand.Rand
	Store *stores.Store
	Kind  stores.Kind
	Agent *Agent

	ctx    context.Context
	record *history.Recorder
	holds  map[string]string // content of the store, as written
	valid  map[string]string // the same without garbage: garbage keeps the valid text before it
	saved  map[string]string // content of the store when it was saved
	texts  int               // number of texts so far
	blind  bool              // nothing is recorded, because the agent is measured
	// distrusted: the fault replaces the store by another one, so removals wait.
	distrusted bool
	healed     time.Time // end of the fault; zero: the fault's function has not returned
}

// newRun opens the store. The agent does not run yet; the seed decides all later choices.
func newRun(t testing.TB, kind stores.Kind, extra stores.Ability, scale Scale, seed uint64) *Run {
	begun := time.Now()
	r := &Run{
		TB: t, Scale: scale, Rand: rand.New(rand.NewPCG(seed, 0)), Kind: kind, Store: kind.Open(t, extra),
		ctx: t.Context(), record: history.NewRecorder(begun), holds: map[string]string{}, valid: map[string]string{},
	}
	return r
}

// see records an observation, unless the run is a benchmark.
func (r *Run) see(who string, all bool, changes func() []history.Change) {
	if !r.blind {
		r.record.See(who, all, changes()...)
	}
}

// follow starts the agent, and waits until the southbound equals the store.
func (r *Run) follow() {
	r.Helper()
	south := newSouthbound(map[string]string{}, func(c history.Change) error {
		r.see("southbound", false, func() []history.Change { return []history.Change{c} })
		return nil
	})
	agent, err := newAgent(agentOptions{
		connector: r.Store.Connector, south: south, see: r.see, grace: r.Scale.Grace, log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		r.Fatal(err)
	}
	r.Agent = agent
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- agent.Run(ctx) }()
	r.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			r.Errorf("the agent ended: %v", err)
		}
	})
	r.await("the first listing")
}

// await waits until the southbound equals the store.
func (r *Run) await(what string) {
	r.Helper()
	r.awaitTexts(what, r.valid)
}

// awaitTexts waits until the southbound has exactly these texts, or fails the test with
// the first differences and the health of the source.
func (r *Run) awaitTexts(what string, want map[string]string) {
	r.Helper()
	// A hanging agent must fail with its health, not by the timeout of go test.
	late := time.NewTimer(r.Scale.Bound)
	defer late.Stop()
	select {
	case <-r.Agent.South.Expect(want):
	case <-late.C:
		bad := history.Complete(want, r.Agent.South.Has())
		r.Fatalf("%s: after %v %d of %d names are not as they should be, such as:\n%v\nhealth: %+v",
			what, r.Scale.Bound, len(bad), len(want), bad[:min(3, len(bad))], r.Agent.Source.Health())
	}
}

// awaitRecovery waits for the recovery, and checks the whole life. It returns the time from the
// end of the fault to the last verb.
func (r *Run) awaitRecovery() time.Duration {
	r.Helper()
	if r.healed.IsZero() {
		r.healed = time.Now()
	}
	// A last write, so that there is an operation after the end of the fault to measure.
	r.Write(history.Change{Key: "last", Text: r.text()})
	r.await("after the fault")
	r.compareBooks()
	_, last := r.Agent.South.Verbs()
	r.checkHistory()
	return last.Sub(r.healed)
}

// compareBooks checks that the test's record of the store equals the store.
func (r *Run) compareBooks() {
	r.Helper()
	held, err := r.Store.List(r.ctx)
	if err != nil {
		r.Fatal(err)
	}
	// Otherwise a mistake of the test would look like one of the agent.
	if bad := history.Complete(held, r.holds); len(bad) > 0 {
		r.Fatalf("the test's record differs from the store: %d names, such as %v", len(bad), bad[0])
	}
}

// checkHistory applies all validators to the history.
func (r *Run) checkHistory() {
	r.Helper()
	h := r.record.History()
	h.Distrusted = r.distrusted
	bad := append(history.Ordered(h), history.NoPhantom(h)...)
	// Other stores make the changes of one write visible one after the other.
	if r.Kind.Can&stores.Groups != 0 {
		bad = append(bad, history.Atomic(groupwise(h))...)
	}
	r.report(append(bad, history.Complete(r.valid, r.Agent.South.Has())...))
}

// report fails the test with the first ten violations.
func (r *Run) report(bad []history.Violation) {
	r.Helper()
	for i, v := range bad {
		if i == 10 {
			r.Errorf("and %d more", len(bad)-i)
			break
		}
		r.Error(v)
	}
}

// groupwise removes the observers that see one change at a time.
func groupwise(h history.History) history.History {
	var seen []history.Seen
	for _, s := range h.Seen {
		if s.Who != "southbound" {
			seen = append(seen, s)
		}
	}
	h.Seen = seen
	return h
}

// until polls ok until it returns true. It is for conditions without a notification.
func (r *Run) until(what string, ok func() bool) {
	r.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(r.Scale.Bound); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			r.Fatalf("after %v still not: %s; health: %+v", r.Scale.Bound, what, r.Agent.Source.Health())
		}
	}
}

// heal marks the end of the fault.
func (r *Run) heal() { r.healed = time.Now() }

// linger waits for the length of the fault.
func (r *Run) linger() {
	timer := time.NewTimer(r.Scale.Stop)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.ctx.Done():
	}
}

// wiped records that the store has held only texts since from.
func (r *Run) wiped(from time.Time, texts map[string]string) {
	var changes []history.Change
	for name, text := range texts {
		changes = append(changes, history.Change{Key: name, Text: text})
	}
	r.record.Write(from, true, changes...)
	r.holds = maps.Clone(texts)
	r.valid = maps.Clone(texts)
	maps.DeleteFunc(r.valid, func(_, text string) bool { return strings.HasPrefix(text, stores.RawMark) })
}

// text returns a text that no write has had before.
func (r *Run) text() string {
	r.texts++
	return fmt.Sprintf("v%d", r.texts)
}
