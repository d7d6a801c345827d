package kvdbsync_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// TestTheConsumerEndsAsTheStore plays random histories: transactions, lost
// changes, cut lines, stores that lose their data or are replaced, slow consumers. Each
// transaction writes its number under both keys of a pair, so a torn one shows. A
// model of what the source has seen says which removals the consumer may take for
// deletes, and which changes it must distrust.
func TestTheConsumerEndsAsTheStore(t *testing.T) {
	draw.Check(t, func(rt *rapid.T) {
		var failed any // a panic of rt that left the bubble would end the test program, and lose the history
		synctest.Test(t, func(t *testing.T) {
			defer func() { failed = recover() }()
			playHistory(t, rt)
		})
		if failed != nil {
			panic(failed)
		}
	})
}

func playHistory(t *testing.T, rt *rapid.T) {
	var m conformance.Memory
	s := kvdbsync.NewSource(kvdbsync.Options{Name: "mem", Connector: &m})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()

	store, has := map[string]string{}, map[string]string{}
	seen := &observer{s: s, has: map[string]bool{}, deleted: map[string]bool{}}
	take := func() {
		c, ok := s.Take()
		if want := seen.replaced && ok; (c.Distrust != nil) != want && !(seen.unsure && ok) {
			rt.Fatalf("distrust is %v; another store or an older revision was listed: %v", c.Distrust, want)
		}
		seen.replaced, seen.unsure = seen.replaced && !ok, seen.unsure && !ok
		if c.Resynced && (c.Listing.Keys > 6 || c.Listing.Began.IsZero() || c.Listing.Identity == "") {
			rt.Fatalf("listing is %+v", c.Listing)
		}
		for _, e := range c.Events {
			before, had := has[e.Key]
			if e.Value == nil && !had || had && before == string(e.Value) && e.Value != nil {
				rt.Fatalf("%s: %q is no news to the consumer", e.Key, e.Value)
			}
			if e.Value == nil {
				delete(has, e.Key)
				if e.Absent == seen.deleted[e.Key] {
					rt.Fatalf("%s is absent: %v; its delete was seen: %v", e.Key, e.Absent, seen.deleted[e.Key])
				}
			} else {
				has[e.Key] = string(e.Value)
			}
		}
		if ok && !c.Synced {
			rt.Fatal("a change before the first sync")
		}
		for pair := range 3 {
			if one, two := has[fmt.Sprint(pair, "/one")], has[fmt.Sprint(pair, "/two")]; one != two {
				rt.Fatalf("transaction torn: %q and %q", one, two)
			}
		}
	}
	change := func(how func(...kvdbsync.Event), number int) {
		pair := rapid.IntRange(0, 2).Draw(rt, "pair")
		value := []byte(fmt.Sprint(number % 4)) // so that values come back
		if rapid.IntRange(0, 3).Draw(rt, "delete") == 0 {
			value = nil
		}
		var events []kvdbsync.Event
		for _, name := range []string{"/one", "/two"} {
			key := fmt.Sprint(pair, name)
			events = append(events, kvdbsync.Event{Key: key, Value: value})
			store[key] = string(value)
			if value == nil {
				delete(store, key)
			}
		}
		how(events...)
	}
	txn := func(events ...kvdbsync.Event) {
		seen.tell(events)
		m.Txn(events...)
	}
	for i := range rapid.IntRange(1, 60).Draw(rt, "steps") {
		synctest.Wait()
		seen.look(store)
		switch rapid.IntRange(0, 11).Draw(rt, "what") {
		default:
			change(txn, i)
		case 10, 11:
			same := rapid.Bool().Draw(rt, "same")
			seen.wipe(same)
			clear(store)
			m.Replace(same, errDown)
		case 4:
			seen.revision++
			change(m.Lose, i)
		case 5:
			m.Fail(errDown)
		case 6:
			m.Fail(nil)
		case 7:
			elapse(time.Duration(rapid.IntRange(1, 2000).Draw(rt, "seconds")) * time.Second)
		case 8, 9:
			synctest.Wait()
			take()
		}
	}
	m.Fail(nil)
	elapse(15 * time.Minute)
	synctest.Wait()
	seen.look(store)
	take()
	if !maps.Equal(has, store) {
		rt.Fatalf("the consumer has %v, the store %v", has, store)
	}
}

// An observer is what a source has seen of its store.
type observer struct {
	s       *kvdbsync.Source
	since   time.Time       // when the source was last found to have synced
	has     map[string]bool // keys
	deleted map[string]bool // keys, of those that went: it saw the delete

	identity, revision int  // of the store, counted by whoever changes it
	known, reached     int  // of the store as it was last seen
	replaced           bool // it has seen another store or an older revision since the last look

	// A check beside the watch lists the store, too. If it finds no difference, then the revision
	// that it has listed is reached, although the watch has not named it. The observer knows the
	// listing, but not its result.
	listings uint64 // complete ones, at the last look
	checked  int    // newest revision that such a check has listed
	unsure   bool   // the store is older than what was checked, and not older than what was reached
}

// look notes whether the source has listed the store since the last look. The store has
// not changed meanwhile.
func (w *observer) look(store map[string]string) {
	h := w.s.Health()
	if h.State != kvdbsync.Synced {
		return
	}
	listed := h.Listings != w.listings
	w.listings = h.Listings
	if h.Since.Equal(w.since) {
		if listed {
			w.checked = w.revision
		}
		return
	}
	first := w.since.IsZero()
	w.since = h.Since
	w.replaced = w.replaced || !first && (w.known != w.identity || w.revision < w.reached)
	w.unsure = w.unsure || w.revision < w.checked
	w.known, w.reached, w.checked = w.identity, w.revision, 0
	for key := range w.has {
		if store[key] == "" {
			delete(w.has, key)
			w.deleted[key] = false
		}
	}
	for key := range store {
		w.has[key] = true
	}
}

// tell notes a transaction, which the source sees if it is synced.
func (w *observer) tell(events []kvdbsync.Event) {
	w.revision++
	if w.s.Health().State != kvdbsync.Synced {
		return
	}
	w.reached = w.revision
	for _, e := range events {
		if e.Value == nil {
			delete(w.has, e.Key)
			w.deleted[e.Key] = true
		} else {
			w.has[e.Key] = true
		}
	}
}

// wipe notes that the store loses all, or another one comes in its place.
func (w *observer) wipe(same bool) {
	w.revision = 1
	if !same {
		w.identity++
	}
}
