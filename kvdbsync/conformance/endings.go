package conformance

import (
	"context"
	"fmt"
	"testing"
)

// contextEnds ends the context after the listing. The watch must end without an error,
// because the source itself wanted its end, and leave no goroutine.
func contextEnds(t *testing.T, h Harness) {
	h.Put(h.Prefix+"config/item/a", value("a"))
	leavesNone(t, h, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, h.Patience)
		defer cancel()
		for b, err := range h.Connector.Watch(ctx, h.Prefix) {
			if err != nil {
				t.Fatalf("the end of the context came out as an error: %v", err)
			}
			if b.Synced {
				cancel()
			}
		}
		// A deadline would mean that the watch has not ended by the cancel.
		if ctx.Err() != context.Canceled {
			t.Fatalf("the watch ended before the listing did, or hung: %v", ctx.Err())
		}
	})
}

// readerStops leaves the loop after the first batch, while the context lives on. A
// connector that only looks at the context would leak.
func readerStops(t *testing.T, h Harness) {
	h.Put(h.Prefix+"config/item/a", value("a"))
	leavesNone(t, h, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, h.Patience)
		defer cancel()
		for _, err := range h.Connector.Watch(ctx, h.Prefix) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	})
}

// gap changes the store in each way while nobody watches.
func gap(t *testing.T, h Harness) {
	key := func(name string) string { return h.Prefix + "config/item/" + name }
	for _, name := range []string{"kept", "changed", "deleted", "deleted and put"} {
		h.Put(key(name), value(name))
	}
	f := follow(t, h)
	f.await(func() bool { return len(f.has) == 4 })
	h.Cut(func() {
		h.Put(key("changed"), value("changed in the gap"))
		h.Put(key("new"), value("new"))
		h.Delete(key("deleted"))
		h.Delete(key("deleted and put"))
		h.Put(key("deleted and put"), value("deleted and put"))
	})
	// The first resync is that of the start.
	f.await(func() bool { return f.resyncs > 1 })
	want := map[string][]byte{
		key("kept"): value("kept"), key("changed"): value("changed in the gap"),
		key("new"): value("new"), key("deleted and put"): value("deleted and put"),
	}
	f.await(func() bool { return len(f.has) == len(want) })
	expectExactly(t, h, f.has, want)
	delete(f.deleted, key("deleted"))
	delete(f.deleted, key("deleted and put")) // a watch that came back in between has seen it go
	if len(f.deleted) > 0 {
		t.Errorf("deleted though the store held them: %v", f.deleted)
	}
	h.Put(key("after"), value("after"))
	f.await(func() bool { return f.has[key("after")] != "" })
}

// gapDeletesAll is the gap that looks like a store without any data. The follower must
// lose all keys: it is the orchestrator that doubts such a listing, not the connector.
func gapDeletesAll(t *testing.T, h Harness) {
	for i := range 10 {
		h.Put(fmt.Sprintf("%sconfig/item/%d", h.Prefix, i), value("x"))
	}
	f := follow(t, h)
	f.await(func() bool { return len(f.has) == 10 })
	h.Cut(func() {
		for i := range 10 {
			h.Delete(fmt.Sprintf("%sconfig/item/%d", h.Prefix, i))
		}
	})
	f.await(func() bool { return len(f.has) == 0 })
}

// flood keeps a consumer from taking while one key changes often.
func flood(t *testing.T, h Harness) {
	counter, marker := h.Prefix+"config/item/counter", h.Prefix+"config/item/marker"
	f := follow(t, h)
	f.await(func() bool { return f.resyncs > 0 })
	// Nobody takes meanwhile, so the source must merge these.
	for i := range 500 {
		h.Put(counter, fmt.Appendf(nil, `{"n":%d}`, i))
	}
	h.Put(marker, value("done"))
	// The source has both keys now, and nobody has taken one yet.
	for f.source.Health().Keys < 2 {
		select {
		case <-f.source.Ready():
		case <-f.late:
			t.Fatal("the marker did not come in time")
		}
	}
	if c := f.take(); len(c.Events) != 2 {
		t.Fatalf("%d events, want the newest of each of two keys", len(c.Events))
	}
	expectExactly(t, h, f.has, map[string][]byte{counter: []byte(`{"n":499}`), marker: value("done")})
}
