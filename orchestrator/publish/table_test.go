package publish_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
	"github.com/keyplane/keyplane/orchestrator/publish"
)

const below = "state/"

// A table is what is published, and the store that it is published into.
type table struct {
	*testing.T
	conformance.Memory
	news   chan struct{}
	listed chan struct{}
	stop   func()

	listing atomic.Int64 // nanoseconds, List
	ends    atomic.Bool  // the session, at the next Apply; Get still works

	mu     sync.Mutex // guards what follows
	rows   map[string][]byte
	fails  error
	reads  int
	served []string // requests of sessions, without those that change the store: "session", "over", "get"
}

func inTable(t *testing.T, test func(w *table)) {
	synctest.Test(t, func(t *testing.T) {
		w := &table{T: t, news: make(chan struct{}, 1), listed: make(chan struct{}, 1), rows: map[string][]byte{}}
		if err := w.Put(t.Context(), root+below+"left", []byte("1")); err != nil {
			t.Fatal(err)
		}
		w.stop = running(t, publish.Table{Options: publish.Options{Name: "memory", Store: w, Root: root, Listed: w.listed}, Below: below, Read: w.read, Changed: w.news}.Run)
		defer w.stop()
		test(w)
	})
}

func (w *table) read(context.Context) (map[string][]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	return maps.Clone(w.rows), w.fails
}

// set changes rows, "a=1 b-", and tells of it.
func (w *table) set(words string, fails error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fails = fails
	for word := range strings.FieldsSeq(words) {
		if key, value, ok := strings.Cut(word, "="); ok {
			w.rows[key] = []byte(value)
		} else {
			delete(w.rows, strings.TrimSuffix(word, "-"))
		}
	}
	select {
	case w.news <- struct{}{}:
	default:
	}
}

func (w *table) expect(want string) {
	w.Helper()
	synctest.Wait()
	pairs, err := w.List(w.Context(), root)
	if err != nil {
		w.Fatal(err)
	}
	var words []string
	for _, p := range pairs {
		words = append(words, strings.TrimPrefix(p.Key, root+below)+"="+string(p.Value))
	}
	if got := strings.Join(words, " "); got != want {
		w.Errorf("the store has %q, want %q", got, want)
	}
}

func TestTable(t *testing.T) {
	inTable(t, func(w *table) {
		w.expect("")
		w.set("a=1 b=1", nil)
		elapse(2 * time.Second)
		w.expect("a=1 b=1")
		w.set("a=2 b- c=1", nil)
		elapse(2 * time.Second)
		w.expect("a=2 c=1")
		w.set("a-", errors.New("busy"))
		elapse(time.Minute)
		w.expect("a=2 c=1")
		w.set("", nil)
		elapse(2 * time.Second)
		w.expect("c=1")
		w.stop()
		w.expect("")
	})
}

// picky is a session with a store that refuses keys that begin like "bad".
type picky struct {
	kvdbsync.Session
	w    *table
	over bool
}

func (p *picky) List(ctx context.Context, prefix string) ([]kvdbsync.Pair, error) {
	if err := takes(ctx, time.Duration(p.w.listing.Load())); err != nil {
		return nil, err
	}
	return p.Session.List(ctx, prefix)
}

func (p *picky) Get(ctx context.Context, key string) ([]byte, error) {
	p.w.serve("get")
	return p.Session.Get(ctx, key)
}

func (p *picky) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	if p.over = p.over || p.w.ends.CompareAndSwap(true, false); p.over {
		p.w.serve("over")
		return fmt.Errorf("lease not found: %w", kvdbsync.ErrSessionOver)
	}
	for _, c := range changes {
		if strings.HasPrefix(c.Key, root+below+"bad") {
			return errRefused
		}
	}
	return p.Session.Apply(ctx, changes)
}

// Session implements kvdbsync.Publisher.
func (w *table) Session(ctx context.Context, ttl time.Duration) (kvdbsync.Session, error) {
	w.serve("session")
	s, err := w.Memory.Session(ctx, ttl)
	return &picky{Session: s, w: w}, err
}

func (w *table) serve(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.served = append(w.served, what)
}

func TestTableHasKeysThatAreRefused(t *testing.T) {
	inTable(t, func(w *table) {
		w.set("bad1=1 bad2=1 good=1 other=1", nil)
		elapse(2 * time.Second)
		w.expect("good=1 other=1")
		w.set("good-", nil)
		elapse(2 * time.Second)
		w.expect("other=1")
	})
}

func TestTableIsWrittenAgainInANewSession(t *testing.T) {
	inTable(t, func(w *table) {
		w.set("a=1", nil)
		elapse(2 * time.Second)
		w.Revoke()
		elapse(time.Minute)
		w.expect("a=1")
		restore := w.Sever()
		elapse(time.Minute)
		w.set("a=2", nil)
		elapse(time.Minute)
		restore()
		elapse(time.Minute)
		w.expect("a=2")
	})
}

// The store was restored from an older copy, and still knows the session.
func TestTableInAStoreThatWentBack(t *testing.T) {
	inTable(t, func(w *table) {
		w.set("a=2 b=1", nil)
		elapse(2 * time.Second)
		w.expect("a=2 b=1")
		w.Txn(kvdbsync.Event{Key: root + below + "a", Value: []byte("1")}, kvdbsync.Event{Key: root + below + "b"},
			kvdbsync.Event{Key: root + below + "c", Value: []byte("1")})
		w.listed <- struct{}{}
		elapse(20 * time.Second)
		w.expect("a=2 b=1")
	})
}

// The write of a session that the store has ended is no refusal of its keys.
func TestATableFindsThatTheSessionIsLost(t *testing.T) {
	inTable(t, func(w *table) {
		w.set("a=1 b=1 c=1 d=1", nil)
		elapse(2 * time.Second)
		w.ends.Store(true)
		w.set("a=2 b=2 c=2 d=2", nil)
		elapse(3 * time.Second)
		w.expect("a=2 b=2 c=2 d=2")
		w.mu.Lock()
		defer w.mu.Unlock()
		if got := strings.Join(w.served, " "); got != "session over session" {
			t.Errorf("the store has seen %q, want another session after the first failure", got)
		}
	})
}

func TestTheListingOfATableTakesLong(t *testing.T) {
	inTable(t, func(w *table) {
		w.set("a=1", nil)
		w.listing.Store(int64(15 * time.Second))
		w.Revoke()
		elapse(20 * time.Second)
		w.expect("a=1")
	})
}

func TestTableIsReadAtABoundedRate(t *testing.T) {
	inTable(t, func(w *table) {
		for range 1000 {
			w.set("", nil)
			elapse(10 * time.Millisecond)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.reads < 5 || w.reads > 12 {
			t.Errorf("it was read %d times in 10 s with news all the time, want about once a second", w.reads)
		}
	})
}
