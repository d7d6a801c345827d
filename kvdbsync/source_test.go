package kvdbsync_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

var errDown = errors.New("connection refused")

// run starts a Source on a connector, in a bubble of synthetic time.
func run(t *testing.T, o kvdbsync.Options) *kvdbsync.Source {
	t.Helper()
	s := newSource(o)
	start(t, s)
	return s
}

func newSource(o kvdbsync.Options) *kvdbsync.Source {
	o.Name = "mem"
	return kvdbsync.NewSource(o)
}

// start runs a source until the end of the test.
func start(t *testing.T, s *kvdbsync.Source) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// elapse lets synthetic time pass.
func elapse(d time.Duration) { <-time.After(d) }

func put(key, value string) kvdbsync.Event { return kvdbsync.Event{Key: key, Value: []byte(value)} }

// taken is what the next Take yields, once nothing moves any more: "a=1 b- c?", where b
// was deleted and c is absent.
func taken(s *kvdbsync.Source) string {
	synctest.Wait()
	c, ok := s.Take()
	if !ok {
		return "nothing"
	}
	var words []string
	for _, e := range c.Events {
		switch {
		case e.Err != nil:
			words = append(words, e.Key+"!"+e.Err.Error())
		case e.Value == nil && e.Absent:
			words = append(words, e.Key+"?")
		case e.Value == nil:
			words = append(words, e.Key+"-")
		default:
			words = append(words, e.Key+"="+string(e.Value))
		}
	}
	for _, err := range c.Problems {
		words = append(words, "("+err.Error()+")")
	}
	if c.Resynced {
		words = append(words, "resynced")
	}
	return strings.Join(words, " ")
}

func expect(t *testing.T, s *kvdbsync.Source, want string) {
	t.Helper()
	if got := taken(s); got != want {
		t.Errorf("took %q, want %q", got, want)
	}
}

func TestKeysAreRelativeToRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m conformance.Memory
		m.Txn(put("/vnf-agent/vpp1/config/a", "1"), put("/vnf-agent/vpp1/status/a", "1"), put("/vnf-agent/vpp10/config/a", "1"))
		s := run(t, kvdbsync.Options{Connector: &m, Root: "/vnf-agent/vpp1/", Prefix: "config/"})
		expect(t, s, "config/a=1 resynced")
		m.Txn(put("/vnf-agent/vpp1/config/b", "1"), put("/vnf-agent/vpp1/status/a", "2"))
		expect(t, s, "config/b=1")
		expect(t, s, "nothing")
	})
}

func TestAnEmptyStoreIsSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := run(t, kvdbsync.Options{Connector: new(conformance.Memory)})
		<-s.Ready()
		if c, ok := s.Take(); !ok || !c.Synced || c.Source != "mem" {
			t.Errorf("took %+v, %v", c, ok)
		}
	})
}

func TestAGapDeletesOnlyAtTheEndOfAListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := make(chan step)
		s := run(t, kvdbsync.Options{Connector: script(steps)})
		steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{put("a", "1"), put("b", "1"), put("c", "1")}, Synced: true}}
		expect(t, s, "a=1 b=1 c=1 resynced")
		steps <- step{err: errDown}
		steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{put("a", "2")}}}
		steps <- step{err: errDown}
		expect(t, s, "nothing") // half of a listing says nothing
		steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{put("a", "3")}}}
		expect(t, s, "nothing")
		steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{put("c", "1")}, Synced: true}}
		expect(t, s, "a=3 b? resynced")
	})
}

// TestChangesAreDecodedBeforeTheyAreTaken has values decoded while they are listed, after
// they have changed, and when a later listing differs. A value that stays is not decoded.
func TestChangesAreDecodedBeforeTheyAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := make(chan step)
		var decoded atomic.Int32
		s := kvdbsync.NewSource(kvdbsync.Options{Name: "mem", Connector: script(steps),
			Decode: func(e kvdbsync.Event) any { decoded.Add(1); return e.Key + " is " + string(e.Value) },
		})
		go func() { _ = s.Run(t.Context()) }()
		take := func() string {
			synctest.Wait()
			var words []string
			c, _ := s.Take()
			for _, e := range c.Events {
				words = append(words, fmt.Sprintf("%s=%s: %v", e.Key, e.Value, e.Decoded))
			}
			return strings.Join(words, ", ")
		}
		steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{put("a", "1"), put("b", "1")}}}
		synctest.Wait()
		if n := decoded.Load(); n != 2 {
			t.Errorf("%d events were decoded during the listing; want 2", n)
		}
		steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{put("a", "2"), put("c", "1")}, Synced: true}}
		synctest.Wait()
		steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{put("c", "2"), put("d", "1"), put("b", "1"), {Key: "e"}}}}
		if got, want := take(), "a=2: a is 2, b=1: b is 1, c=2: c is 2, d=1: d is 1"; got != want {
			t.Errorf("took %s\nwant %s", got, want)
		}
		steps <- step{err: errDown}
		steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{put("a", "3"), put("c", "2")}, Synced: true}}
		if got, want := take(), "a=3: a is 3, b=: <nil>, d=: <nil>"; got != want {
			t.Errorf("took %s\nwant %s", got, want)
		}
		if n := decoded.Load(); n != 7 {
			t.Errorf("%d events were decoded, want 7: the 4 of the first listing, and those that changed later", n)
		}
	})
}

// TestLaterListingsAreTold has Listed called after each listing but the first, also after one that the
// connector makes by itself, as for Consul whose index went back.
func TestLaterListingsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := make(script)
		listed := 0
		s := run(t, kvdbsync.Options{Connector: c, Listed: func() { listed++ }})
		whole := step{b: kvdbsync.Batch{Events: []kvdbsync.Event{put("a", "1")}, Synced: true}}
		for _, test := range []struct {
			step step
			want int
		}{
			{whole, 0},
			{step{b: kvdbsync.Batch{Events: []kvdbsync.Event{put("b", "1")}}}, 0},
			{whole, 1},
			{step{err: errDown}, 1},
			{whole, 2},
		} {
			c <- test.step
			synctest.Wait()
			if listed != test.want {
				t.Errorf("told of %d listings, want %d", listed, test.want)
			}
		}
		s.Take()
	})
}

// TestLaterListingsDropValues lists a store again. The listing keeps no value that the consumer
// has, but all that it may still get.
func TestLaterListingsDropValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := make(chan step)
		s := run(t, kvdbsync.Options{Connector: script(steps), MinBackoff: 1, MaxBackoff: 1})
		steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{put("a", "1"), put("b", "1"), put("c", "1")}, Synced: true}}
		expect(t, s, "a=1 b=1 c=1 resynced")
		steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{put("c", "2")}}}
		synctest.Wait() // and the consumer does not take it
		steps <- step{err: errDown}
		again := []kvdbsync.Event{put("a", "1"), put("b", "2"), put("c", "3"), put("c", "2"), put("a", "2"), put("a", "1")}
		steps <- step{b: kvdbsync.Batch{Events: again}}
		synctest.Wait()
		if again[0].Value != nil || string(again[1].Value) != "2" || string(again[3].Value) != "2" {
			t.Errorf("the listing keeps a value that the consumer has, or loses a change: %v", again)
		}
		steps <- step{b: kvdbsync.Batch{Synced: true}}
		expect(t, s, "c=2 b=2 resynced")
	})
}

// TestDecodedValuesAreBounded has a consumer that takes nothing for some time. Values above the
// bound are left to it.
func TestDecodedValuesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := make(chan step)
		s := kvdbsync.NewSource(kvdbsync.Options{Name: "mem", Connector: script(steps), Decode: func(e kvdbsync.Event) any { return e.Key }})
		go func() { _ = s.Run(t.Context()) }()
		steps <- step{b: kvdbsync.Batch{Synced: true}}
		for range 2 {
			for _, key := range []string{"a", "b", "c", "d"} {
				value := strings.Repeat(key, 3<<15) + time.Now().String()
				steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{put(key, value), put("small "+key, value[:1]+time.Now().String())}}}
			}
			synctest.Wait()
			c, _ := s.Take()
			var decoded []string
			for _, e := range c.Events {
				if e.Decoded != nil && len(e.Value) > 1000 {
					decoded = append(decoded, e.Key)
				}
			}
			if got := strings.Join(decoded, " "); got != "a b" || len(c.Events) != 8 {
				t.Errorf("of %d values, the large ones that were decoded are %q, want \"a b\"", len(c.Events), got)
			}
			elapse(time.Second)
		}
	})
}

func TestProblemsAndErrorsAreHandedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := make(chan step)
		s := run(t, kvdbsync.Options{Connector: script(steps)})
		bad := kvdbsync.Event{Key: "a", Err: errors.New("a.yaml:3")}
		steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{bad}, Problems: []error{errors.New("b.yaml")}, Synced: true}}
		expect(t, s, "a!a.yaml:3 (b.yaml) resynced")
		steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{put("c", "1")}}}
		expect(t, s, "c=1 (b.yaml)")
		steps <- step{b: kvdbsync.Batch{Problems: []error{errors.New("b.yaml")}}}
		expect(t, s, "nothing")
		steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{put("a", "1")}, Problems: []error{}}}
		expect(t, s, "a=1")
	})
}

// What is withheld is read, and merged, until it may be taken.
func TestWithheld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &conformance.Memory{}
		store.Txn(put("/a", "1"))
		var may atomic.Bool
		s := run(t, kvdbsync.Options{Connector: store, Root: "/", Withhold: func() error {
			if may.Load() {
				return nil
			}
			return errDown
		}})
		expect(t, s, "nothing")
		if h := s.Health(); h.State != kvdbsync.Withheld || !errors.Is(h.Err, errDown) || h.Waiting != 1 {
			t.Errorf("withheld: %+v", h)
		}
		<-s.Ready() // the consumer has looked in vain
		store.Txn(put("/a", "2"))
		store.Txn(put("/b", "1"))
		expect(t, s, "nothing")
		<-s.Ready()
		may.Store(true)
		s.Recheck()
		<-s.Ready()
		expect(t, s, "a=2 b=1 resynced")
		if h := s.Health(); h.State != kvdbsync.Synced || h.Err != nil {
			t.Errorf("taken: %+v", h)
		}
	})
}

// Keys that come and go while all is withheld, which may be for months, leave nothing.
func TestWithheldKeepsNothingOfWhatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &conformance.Memory{}
		store.Txn(put("/stays", "1"))
		var may atomic.Bool
		s := run(t, kvdbsync.Options{Connector: store, Root: "/", Withhold: func() error {
			if may.Load() {
				return nil
			}
			return errDown
		}})
		for i := range 10_000 {
			key := fmt.Sprintf("/%d", i)
			store.Txn(put(key, "1"))
			store.Txn(kvdbsync.Event{Key: key})
			synctest.Wait()
		}
		store.Txn(put("/last", "1"))
		synctest.Wait()
		if n := s.Health().Waiting; n != 2 {
			t.Errorf("%d keys wait, want 2", n)
		}
		may.Store(true)
		s.Recheck()
		expect(t, s, "stays=1 last=1 resynced")
	})
}

func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m conformance.Memory
		m.Fail(errDown)
		watches := &counting{Connector: &m}
		s := run(t, kvdbsync.Options{Connector: watches})
		elapse(time.Hour)
		synctest.Wait()
		begun := watches.times()
		// Up to 30 s apart, 15 s on average: 240 an hour.
		if n := len(begun); n < 150 || n > 400 {
			t.Errorf("%d attempts in an hour", n)
		}
		for i := 1; i < len(begun); i++ {
			bound := min(100*time.Millisecond<<min(i-1, 20), 30*time.Second)
			if apart := begun[i].Sub(begun[i-1]); apart > bound {
				t.Errorf("attempt %d came %v after the one before it, the bound is %v", i, apart, bound)
			}
		}
		h := s.Health()
		if h.State != kvdbsync.Connecting || !errors.Is(h.Err, errDown) || h.Failures != len(begun) {
			t.Errorf("health %+v", h)
		}
	})
}

func TestBackOffStartsAnewAfterASync(t *testing.T) {
	for _, synced := range []time.Duration{0, time.Second, time.Minute} {
		t.Run(synced.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var m conformance.Memory
				m.Fail(errDown)
				watches := &counting{Connector: &m}
				s := run(t, kvdbsync.Options{Connector: watches})
				elapse(time.Hour)
				m.Fail(nil)
				<-s.Ready()
				elapse(synced)
				expect(t, s, "resynced")
				before := len(watches.times())
				m.Fail(errDown)
				synctest.Wait()
				m.Fail(nil)
				elapse(101 * time.Millisecond)
				if after := len(watches.times()); after != before+1 {
					t.Errorf("%d new attempts within the first bound", after-before)
				}
			})
		})
	}
}

// Three members are restarted one after the other: each time the store is away for a few
// seconds, and then again as soon as it has been listed.
func TestAStoreThatIsBackIsFoundSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m conformance.Memory
		s := run(t, kvdbsync.Options{Connector: &m})
		<-s.Ready()
		expect(t, s, "resynced")
		for range 5 {
			m.Fail(errDown)
			elapse(10 * time.Second)
			m.Fail(nil)
			back := time.Now()
			<-s.Ready()
			expect(t, s, "resynced")
			if after := time.Since(back); after > time.Second {
				t.Errorf("found after %v", after)
			}
		}
	})
}

// A listing that is interrupted costs the store as much as one that is not.
func TestAListingThatNeverCompletesIsBackedOffFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watches := &counting{Connector: halfway{}}
		run(t, kvdbsync.Options{Connector: watches})
		elapse(30 * time.Second)
		synctest.Wait()
		if n := len(watches.times()); n > 20 {
			t.Errorf("%d listings in 30 s", n)
		}
	})
}

// halfway lists half of a store, and then can do no more.
type halfway struct{}

func (halfway) Watch(context.Context, string) iter.Seq2[kvdbsync.Batch, error] {
	return func(yield func(kvdbsync.Batch, error) bool) {
		if yield(kvdbsync.Batch{Events: []kvdbsync.Event{put("a", "1")}}, nil) {
			yield(kvdbsync.Batch{}, errDown)
		}
	}
}

func TestAWatchThatBreaksOnceItIsSyncedIsBackedOffFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watches := &counting{Connector: brittle{}}
		run(t, kvdbsync.Options{Connector: watches})
		elapse(time.Hour)
		synctest.Wait()
		if n := len(watches.times()); n > 400 {
			t.Errorf("%d listings in an hour", n)
		}
	})
}

// brittle lists an empty store, and then can do no more.
type brittle struct{}

func (brittle) Watch(context.Context, string) iter.Seq2[kvdbsync.Batch, error] {
	return func(yield func(kvdbsync.Batch, error) bool) {
		if yield(kvdbsync.Batch{Synced: true}, nil) {
			yield(kvdbsync.Batch{}, errDown)
		}
	}
}

func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := make(chan step)
		s := run(t, kvdbsync.Options{Connector: script(steps), MinBackoff: time.Nanosecond})
		begun := time.Now()
		look := func(state kvdbsync.State, since time.Time, keys int, rev int64, failures int) {
			t.Helper()
			synctest.Wait()
			h := s.Health()
			if h.State != state || !h.Since.Equal(since) || h.Keys != keys || h.Rev != rev || h.Failures != failures {
				t.Errorf("health %v since %v, %d keys, revision %d, %d failures", h.State, h.Since, h.Keys, h.Rev, h.Failures)
			}
			if (h.Err != nil) != (failures > 0) {
				t.Errorf("%d failures and the error is %v", failures, h.Err)
			}
		}
		look(kvdbsync.Connecting, begun, 0, 0, 0)
		elapse(time.Second)
		steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{put("a", "1")}, Rev: 7}}
		look(kvdbsync.Syncing, begun, 0, 0, 0)
		steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{put("b", "1")}, Rev: 7, Synced: true}}
		synced := time.Now()
		look(kvdbsync.Synced, synced, 2, 7, 0)
		elapse(time.Second)
		steps <- step{b: kvdbsync.Batch{Events: []kvdbsync.Event{{Key: "a"}}, Rev: 8}}
		look(kvdbsync.Synced, synced, 1, 8, 0)
		lost := time.Now()
		steps <- step{err: errDown}
		elapse(time.Second)
		steps <- step{err: errDown}
		look(kvdbsync.Lost, lost, 1, 8, 2)
		elapse(time.Second)
		steps <- step{b: kvdbsync.Batch{Rev: 3, Synced: true}}
		look(kvdbsync.Synced, time.Now(), 0, 3, 0)
	})
}

func TestTheSameFailureIsWarnedOfOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m conformance.Memory
		var out bytes.Buffer
		m.Fail(errDown)
		run(t, kvdbsync.Options{Connector: &m, Log: slog.New(slog.NewTextHandler(&out, nil))})
		elapse(time.Hour)
		m.Fail(errors.New("permission denied"))
		elapse(time.Hour)
		m.Fail(nil)
		elapse(time.Minute)
		synctest.Wait()
		if n := strings.Count(out.String(), "level=WARN"); n != 2 {
			t.Errorf("%d warnings, want one of each failure:\n%s", n, out.String())
		}
		if !strings.Contains(out.String(), "store synced") {
			t.Errorf("not a word of the sync:\n%s", out.String())
		}
	})
}

func TestAWatchThatJustEndsIsBegunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := make(chan step)
		s := run(t, kvdbsync.Options{Connector: script(steps)})
		steps <- step{end: true}
		steps <- step{b: kvdbsync.Batch{Synced: true}}
		expect(t, s, "resynced")
		steps <- step{end: true}
		synctest.Wait()
		if err := s.Health().Err; !errors.Is(err, kvdbsync.ErrEnded) {
			t.Errorf("health says %v", err)
		}
	})
}

// A step is what a scripted connector does next.
type step struct {
	b   kvdbsync.Batch
	err error
	end bool
}

// script is a connector that does what it is told; each step of a watch that is
// under way comes from the channel.
type script chan step

func (c script) Watch(ctx context.Context, _ string) iter.Seq2[kvdbsync.Batch, error] {
	return func(yield func(kvdbsync.Batch, error) bool) {
		for {
			select {
			case s := <-c:
				if s.end || !yield(s.b, s.err) || s.err != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// counting notes when watches begin.
type counting struct {
	kvdbsync.Connector
	mu    sync.Mutex
	begun []time.Time
}

func (c *counting) Watch(ctx context.Context, prefix string) iter.Seq2[kvdbsync.Batch, error] {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = append(c.begun, time.Now())
	return c.Connector.Watch(ctx, prefix)
}

func (c *counting) times() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.begun)
}

// A watch may end with an error of its own when its reader has stopped, and may even emit once more.
func TestStreamAfterItsReader(t *testing.T) {
	t.Parallel()
	batches := 0
	for range kvdbsync.Stream(t.Context(), func(emit func(kvdbsync.Batch) error) error {
		first := emit(kvdbsync.Batch{Rev: 1})
		return cmp.Or(errors.New("the line broke"), first, emit(kvdbsync.Batch{Rev: 2}))
	}) {
		batches++
		break
	}
	if batches != 1 {
		t.Errorf("%d batches", batches)
	}
}
