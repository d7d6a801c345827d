package publish_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
	"github.com/keyplane/keyplane/orchestrator/publish"
	"github.com/keyplane/keyplane/scheduler"
)

// A world is a scheduler and a store, and what is between them.
type world struct {
	*scheduler.Scheduler
	conformance.Memory
	journal

	refuse  atomic.Value // a prefix of keys that the store does not take
	hangs   atomic.Bool  // Apply does not return before its time
	takes   atomic.Int64 // nanoseconds, Apply
	panics  atomic.Bool  // at the next Apply
	ends    atomic.Bool  // the session, at the next Apply; Get still works
	lists   atomic.Int64 // calls of List so far
	listing atomic.Int64 // nanoseconds, List
	mu      sync.Mutex   // guards batches
	batches []int        // changes of each Apply
	stop    func()       // the Publisher
	listed  chan struct{}
}

var errRefused = errors.New("permission denied")

// in runs a test in synthetic time.
func in(t *testing.T, o publish.Options, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{listed: make(chan struct{}, 1)}
		var end func()
		w.Scheduler, end = newScheduler(t)
		defer end()
		w.publish(t, o)
		defer w.stop()
		test(t, w)
	})
}

func (w *world) publish(t *testing.T, o publish.Options) {
	o.Name, o.Store, o.Root, o.TTL, o.Listed, o.Log = "memory", w, root, 5*time.Second, w.listed, w.log()
	w.stop = running(t, publish.New(w.Scheduler, o).Run)
	synctest.Wait()
}

// Session implements kvdbsync.Publisher.
func (w *world) Session(ctx context.Context, ttl time.Duration) (kvdbsync.Session, error) {
	s, err := w.Memory.Session(ctx, ttl)
	return session{s, w}, err
}

type session struct {
	kvdbsync.Session
	w *world
}

func (s session) List(ctx context.Context, prefix string) ([]kvdbsync.Pair, error) {
	if s.w.hangs.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s.w.lists.Add(1)
	if err := takes(ctx, time.Duration(s.w.listing.Load())); err != nil {
		return nil, err
	}
	return s.Session.List(ctx, prefix)
}

func (s session) Get(ctx context.Context, key string) ([]byte, error) {
	if s.w.hangs.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Session.Get(ctx, key)
}

func (s session) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	if s.w.panics.CompareAndSwap(true, false) {
		panic("an answer without a header")
	}
	if s.w.ends.CompareAndSwap(true, false) {
		return fmt.Errorf("lease not found: %w", kvdbsync.ErrSessionOver)
	}
	if s.w.hangs.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	elapse(time.Duration(s.w.takes.Load()))
	s.w.note(len(changes))
	for _, c := range changes {
		if bad, _ := s.w.refuse.Load().(string); bad != "" && strings.HasPrefix(c.Key, bad) {
			return errRefused
		}
	}
	return s.Session.Apply(ctx, changes)
}

func (w *world) expect(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	if got := shown(w.List(t.Context(), root)); got != want {
		t.Errorf("the store has %q\nwant %q", got, want)
	}
}

// written is how many changes each Apply had so far.
func (w *world) written() []int {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.batches)
}

func (w *world) note(changes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.batches = append(w.batches, changes)
}

func (w *world) expectLog(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := w.messages(); got != strings.Join(want, ", ") {
		t.Errorf("logged %q\nwant %q", got, want)
	}
}

const (
	up   = "INFO status is published"
	down = "WARN cannot publish status"

	refused = "WARN the store refuses the status of a key; it is retried every minute"
	taken   = "INFO the store takes the status of all keys"
)

func TestStates(t *testing.T) {
	in(t, publish.Options{}, func(t *testing.T, w *world) {
		commit(t, w.Scheduler, "a=ok", "b=waits", "c=invalid", "d=fails", "e=half")
		elapse(2 * time.Second) // what is derived may be told later
		w.expect(t, "a=CONFIGURED b=PENDING[other-exists] c=INVALID(invalid value: value: invalid: expected anything else) "+
			"d=FAILED(no room) e=CONFIGURED[config/text/config/text/e is PENDING: other-exists]")
		commit(t, w.Scheduler, "other=ok", "c=ok", "a-")
		elapse(500 * time.Millisecond)
		synctest.Wait()
		if got := shown(w.List(t.Context(), of+"a")); got != "a=REMOVED" {
			t.Errorf("what is removed is %s", got)
		}
		elapse(3 * time.Second)
		w.expect(t, "b=CONFIGURED c=CONFIGURED d=FAILED(no room) e=CONFIGURED other=CONFIGURED")
		w.stop()
		w.expect(t, "")
		w.expectLog(t, up)
	})
}

func TestNewsAreWrittenAtOnce(t *testing.T) {
	in(t, publish.Options{}, func(t *testing.T, w *world) {
		commit(t, w.Scheduler, "a=ok")
		w.expect(t, "a=CONFIGURED")
		elapse(100 * time.Millisecond) // a rests still
		commit(t, w.Scheduler, "b=ok")
		w.expect(t, "a=CONFIGURED b=CONFIGURED")
	})
}

func TestTheRateIsBounded(t *testing.T) {
	in(t, publish.Options{BatchInterval: 100 * time.Millisecond}, func(t *testing.T, w *world) {
		var words []string
		for i := range 1000 {
			words = append(words, fmt.Sprintf("%04d=ok", i))
		}
		commit(t, w.Scheduler, words...)
		synctest.Wait()
		for range 10 {
			commit(t, w.Scheduler, "0000-")
			commit(t, w.Scheduler, "0000=ok")
			elapse(100 * time.Millisecond)
		}
		if got := w.written(); len(got) > 12 || len(got) < 10 {
			t.Errorf("%d batches in a second: %v", len(got), got)
		}
		elapse(time.Second)
		for _, n := range w.written() {
			if n > kvdbsync.MaxApply {
				t.Errorf("a batch of %d", n)
			}
		}
		if pairs, err := w.List(t.Context(), root); len(pairs) != 1000 || err != nil {
			t.Errorf("%d of 1000 keys, %v", len(pairs), err)
		}
	})
}

func TestASlowStoreIsWrittenToLess(t *testing.T) {
	in(t, publish.Options{}, func(t *testing.T, w *world) {
		w.takes.Store(int64(time.Second))
		for i := range 30 {
			commit(t, w.Scheduler, fmt.Sprintf("%d=ok", i))
			elapse(time.Second)
		}
		if n := len(w.written()); n > 7 || n < 5 {
			t.Errorf("%d batches of a second each in 30 s", n)
		}
	})
}

func TestTheStoreIsDown(t *testing.T) {
	in(t, publish.Options{}, func(t *testing.T, w *world) {
		commit(t, w.Scheduler, "a=ok")
		w.expect(t, "a=CONFIGURED")
		restore := w.Sever()
		commit(t, w.Scheduler, "b=ok")
		elapse(time.Second)
		commit(t, w.Scheduler, "a=fails")
		elapse(10 * time.Minute)
		w.expect(t, "") // the session is over
		w.expectLog(t, up, down)
		restore()
		elapse(30 * time.Second)
		w.expect(t, "a=FAILED(no room) b=CONFIGURED")
		w.expectLog(t, up, down, up)
	})
}

// A store that was restored from an older copy still knows the session. What it has lost is written again, and
// nothing else.
func TestTheStoreWentBack(t *testing.T) {
	in(t, publish.Options{}, func(t *testing.T, w *world) {
		commit(t, w.Scheduler, "a=ok", "b=waits", "c=ok")
		elapse(2 * time.Second)
		before, err := w.List(t.Context(), of)
		if err != nil {
			t.Fatal(err)
		}
		commit(t, w.Scheduler, "a=waits", "b-", "d=ok")
		elapse(5 * time.Second)
		w.expect(t, "a=PENDING[other-exists] c=CONFIGURED d=CONFIGURED")
		writes := len(w.written())
		older := []kvdbsync.Event{{Key: of + "d"}}
		for _, p := range before {
			older = append(older, kvdbsync.Event{Key: p.Key, Value: p.Value})
		}
		w.Txn(older...)
		w.expect(t, "a=CONFIGURED b=PENDING[other-exists] c=CONFIGURED")
		w.listed <- struct{}{}
		elapse(20 * time.Second)
		w.expect(t, "a=PENDING[other-exists] c=CONFIGURED d=CONFIGURED")
		if got := w.written()[writes:]; !slices.Equal(got, []int{2, 1}) {
			t.Errorf("batches of %v, want the two keys that differ, and the one that is too many", got)
		}
		w.expectLog(t, up)
	})
}

func TestTheStoreIsAwayForAMoment(t *testing.T) {
	in(t, publish.Options{MaxBackoff: 500 * time.Millisecond}, func(t *testing.T, w *world) {
		commit(t, w.Scheduler, "a=ok")
		w.expect(t, "a=CONFIGURED")
		restore := w.Sever()
		commit(t, w.Scheduler, "b=ok")
		elapse(time.Second)
		restore()
		elapse(3 * time.Second)
		w.expect(t, "a=CONFIGURED b=CONFIGURED")
		if got := w.written(); len(got) < 2 || slices.Max(got) > 1 {
			t.Errorf("batches of %v: what was written is written again", got)
		}
	})
}

// An answer that the session cannot stand ends the session, and not the process.
func TestASessionPanics(t *testing.T) {
	in(t, publish.Options{}, func(t *testing.T, w *world) {
		w.panics.Store(true)
		commit(t, w.Scheduler, "a=ok")
		elapse(time.Minute)
		w.expect(t, "a=CONFIGURED")
	})
}

func TestASessionIsLost(t *testing.T) {
	in(t, publish.Options{}, func(t *testing.T, w *world) {
		commit(t, w.Scheduler, "a=ok", "b=waits", "c=ok")
		elapse(2 * time.Second)
		w.Revoke()
		commit(t, w.Scheduler, "c-")
		elapse(100 * time.Millisecond)
		w.expect(t, "a=CONFIGURED b=PENDING[other-exists]")
		w.expectLog(t, up, down, up)
	})
}

// The write of a session that the store has ended is no refusal of its key.
func TestAWriteFindsThatTheSessionIsLost(t *testing.T) {
	in(t, publish.Options{}, func(t *testing.T, w *world) {
		commit(t, w.Scheduler, "a=ok", "b=ok")
		elapse(2 * time.Second)
		w.ends.Store(true)
		commit(t, w.Scheduler, "a=fails")
		elapse(2 * time.Second)
		w.expect(t, "a=FAILED(no room) b=CONFIGURED")
		w.expectLog(t, up, down, up)
	})
}

func TestAStoreThatHangs(t *testing.T) {
	in(t, publish.Options{}, func(t *testing.T, w *world) {
		w.hangs.Store(true)
		commit(t, w.Scheduler, "a=ok")
		elapse(time.Minute)
		w.hangs.Store(false)
		elapse(40 * time.Second)
		w.expect(t, "a=CONFIGURED")
		w.expectLog(t, up, down, up)
		w.hangs.Store(true)
		commit(t, w.Scheduler, "b=ok")
		before := time.Now()
		w.stop()
		if took := time.Since(before); took > 2*time.Second {
			t.Errorf("it took %v to stop", took)
		}
	})
}

// A listing may take longer than other requests: Redis reads all keys of its database. But it ends
// with its session.
func TestAListingTakesLong(t *testing.T) {
	in(t, publish.Options{}, func(t *testing.T, w *world) {
		w.listing.Store(int64(15 * time.Second))
		w.Revoke()
		commit(t, w.Scheduler, "a=ok")
		elapse(16 * time.Second)
		w.expect(t, "a=CONFIGURED")
		w.listing.Store(int64(time.Hour))
		w.Revoke()
		elapse(5 * time.Second)
		w.expect(t, "")
		w.listing.Store(0)
		w.Revoke()
		elapse(time.Second)
		w.expect(t, "a=CONFIGURED")
	})
}

func TestOneKeyIsRefused(t *testing.T) {
	in(t, publish.Options{}, func(t *testing.T, w *world) {
		w.refuse.Store(of + "b")
		commit(t, w.Scheduler, "a=ok", "b=ok", "c=ok")
		elapse(10 * time.Minute)
		w.expect(t, "a=CONFIGURED c=CONFIGURED")
		w.expectLog(t, up, refused)
		if !strings.Contains(w.String(), "permission denied") {
			t.Errorf("no reason: %s", &w.Buffer)
		}
		commit(t, w.Scheduler, "d=ok", "b-")
		elapse(time.Minute)
		w.expect(t, "a=CONFIGURED c=CONFIGURED d=CONFIGURED")
		w.refuse.Store("")
		elapse(2 * time.Minute)
		w.expectLog(t, up, refused, taken)
	})
}

// Many keys that the store refuses, and that come first, do not keep others from being written.
func TestManyKeysAreRefused(t *testing.T) {
	in(t, publish.Options{}, func(t *testing.T, w *world) {
		w.refuse.Store(of + "bad")
		var words, want []string
		for i := range 200 {
			words = append(words, fmt.Sprintf("bad%03d=invalid", i))
		}
		for i := range 20 {
			words = append(words, fmt.Sprintf("good%02d=ok", i))
			want = append(want, fmt.Sprintf("good%02d=CONFIGURED", i))
		}
		commit(t, w.Scheduler, words...)
		elapse(30 * time.Second)
		w.expect(t, strings.Join(want, " "))
		w.expectLog(t, up, refused)
		if lists := w.lists.Load(); lists != 1 {
			t.Errorf("the store was listed %d times, want once, at the start: a refusal must cost it little", lists)
		}
	})
}

func TestWhatAnEarlierRunHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		for _, name := range []string{"gone", "stays"} {
			if err := w.Put(t.Context(), of+name, []byte(`{"key":"old","state":"CONFIGURED"}`)); err != nil {
				t.Fatal(err)
			}
		}
		var end func()
		w.Scheduler, end = newScheduler(t)
		defer end()
		commit(t, w.Scheduler, "stays=waits")
		w.publish(t, publish.Options{})
		defer w.stop()
		w.expect(t, "gone=CONFIGURED stays=PENDING[other-exists]")
		elapse(11 * time.Second)
		w.expect(t, "stays=PENDING[other-exists]")
	})
}

func TestNothingHappensWhenNothingDoes(t *testing.T) {
	in(t, publish.Options{}, func(t *testing.T, w *world) {
		commit(t, w.Scheduler, "a=ok", "b=invalid")
		elapse(time.Minute)
		n := len(w.written())
		commit(t, w.Scheduler, "a=ok", "b=invalid")
		elapse(time.Hour)
		if more := len(w.written()) - n; more > 0 {
			t.Errorf("%d more batches", more)
		}
	})
}

// A reader that removes a status waits for the one about its new value, whose text may be the
// same as before.
func TestAnotherValueIsReportedAgain(t *testing.T) {
	in(t, publish.Options{}, func(t *testing.T, w *world) {
		commit(t, w.Scheduler, "a=first")
		elapse(time.Minute)
		commit(t, w.Scheduler, "a=second")
		elapse(time.Minute)
		for _, value := range []string{"third", "fourth"} { // each ends as CONFIGURED by UPDATE
			if _, err := w.Delete(t.Context(), of+"a"); err != nil {
				t.Fatal(err)
			}
			elapse(time.Minute)
			w.expect(t, "")
			commit(t, w.Scheduler, "a="+value)
			elapse(time.Minute)
			w.expect(t, "a=CONFIGURED")
		}
	})
}
