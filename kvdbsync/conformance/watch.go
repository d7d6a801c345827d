package conformance

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A watch reads one Watch of the connector, batch by batch.
type watch struct {
	t    *testing.T
	h    Harness
	next func() (kvdbsync.Batch, error, bool)
	end  func()
	has  map[string]string // key, with its value as text, as of the batches read
}

// startWatch begins a watch that ends with the test or after the harness's patience.
func startWatch(t *testing.T, h Harness) *watch {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), h.Patience)
	next, stop := iter.Pull2(h.Connector.Watch(ctx, h.Prefix))
	w := &watch{t: t, h: h, next: next, has: map[string]string{}}
	w.end = func() { cancel(); stop() }
	t.Cleanup(w.end)
	return w
}

// read returns the next batch.
func (w *watch) read() kvdbsync.Batch {
	w.t.Helper()
	b, err, ok := w.next()
	if err != nil || !ok {
		w.t.Fatalf("the watch ended while a batch was to come: %v", err)
	}
	for _, e := range b.Events {
		switch {
		case e.Err != nil:
			w.t.Fatalf("%s: %v", e.Key, e.Err)
		case e.Value == nil:
			delete(w.has, e.Key)
		default:
			w.has[e.Key] = string(e.Value)
		}
	}
	return b
}

// sync reads until the listing is complete.
func (w *watch) sync() {
	w.t.Helper()
	for !w.read().Synced {
	}
}

// await reads until ok.
func (w *watch) await(ok func() bool) {
	w.t.Helper()
	for !ok() {
		w.read()
	}
}

// holds tells whether the store has been seen to hold value; nil: to hold nothing.
func (w *watch) holds(key string, value []byte) bool {
	got, ok := w.has[key]
	return ok == (value != nil) && (!ok || w.h.Same([]byte(got), value))
}

// holdsAll tells whether the store has been seen to hold exactly want.
func (w *watch) holdsAll(want map[string][]byte) bool {
	for key, value := range want {
		if !w.holds(key, value) {
			return false
		}
	}
	return len(w.has) == len(want)
}

// expectExactly compares the whole content that was seen.
func (w *watch) expectExactly(want map[string][]byte) {
	w.t.Helper()
	expectExactly(w.t, w.h, w.has, want)
}

// expectExactly compares contents by Harness.Same, and shows the first differences.
func expectExactly(t *testing.T, h Harness, got map[string]string, want map[string][]byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d keys, want %d", len(got), len(want))
	}
	wrong := 0
	for key, value := range want {
		if have, ok := got[key]; !ok || !h.Same([]byte(have), value) {
			wrong++
			t.Errorf("%s: %.100q (there: %v), want %.100q", key, have, ok, value)
		}
		if wrong > 5 {
			t.Fatal("and more")
		}
	}
}

// value returns a small JSON value that contains text.
func value(text string) []byte { return fmt.Appendf(nil, `{"name":%q}`, text) }
