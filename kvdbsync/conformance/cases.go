package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/kvdbsync"
)

// emptyStore expects Synced without events. A connector that waits for a first key would
// keep the agent from starting.
func emptyStore(t *testing.T, h Harness) {
	w := startWatch(t, h)
	w.sync()
	w.expectExactly(nil)
}

// firstListing expects the content at the time of the watch, without a deleted key.
func firstListing(t *testing.T, h Harness) {
	want := map[string][]byte{}
	for i := range 20 {
		key := fmt.Sprintf("%sconfig/item/%d", h.Prefix, i)
		want[key] = value(key)
		h.Put(key, want[key])
	}
	// A deleted key must not be listed, not even as a deletion.
	gone := h.Prefix + "config/item/3"
	h.Delete(gone)
	delete(want, gone)
	w := startWatch(t, h)
	w.sync()
	w.expectExactly(want)
}

// inOrder waits after each change, so each one is seen by itself and none is merged.
func inOrder(t *testing.T, h Harness) {
	key := h.Prefix + "config/item/a"
	w := startWatch(t, h)
	w.sync()
	for _, text := range []string{"one", "two", "three"} {
		h.Put(key, value(text))
		w.await(func() bool { return w.holds(key, value(text)) })
	}
	h.Delete(key)
	w.await(func() bool { return w.holds(key, nil) })
	// The same key again: the deletion must not hide it.
	h.Put(key, value("again"))
	w.await(func() bool { return w.holds(key, value("again")) })
	w.expectExactly(map[string][]byte{key: value("again")})
}

// losesNone writes many different keys after the listing. It waits for each of the first
// ones, so each is in a batch of its own; the rest is written as fast as the store allows.
// A key is written once, so a lost batch is never made up for by a later one.
func losesNone(t *testing.T, h Harness) {
	const oneByOne, together = 30, 200
	w := startWatch(t, h)
	w.sync()
	want := map[string][]byte{}
	for i := range oneByOne + together {
		key := fmt.Sprintf("%sconfig/item/%03d", h.Prefix, i)
		want[key] = value(key)
		h.Put(key, want[key])
		if i < oneByOne {
			w.await(func() bool { return w.holds(key, want[key]) })
		}
	}
	w.await(func() bool { return len(w.has) == len(want) })
	w.expectExactly(want)
}

// neverBack writes faster than it reads. A connector may skip values, but must keep the
// store's order.
func neverBack(t *testing.T, h Harness) {
	const last = 200
	key := h.Prefix + "config/item/counter"
	w := startWatch(t, h)
	w.sync()
	for i := 1; i <= last; i++ {
		h.Put(key, fmt.Appendf(nil, `{"n":%d}`, i))
	}
	var seen int
	for seen < last {
		w.read()
		var now struct{ N int }
		if err := json.Unmarshal([]byte(w.has[key]), &now); err != nil {
			t.Fatalf("%q: %v", w.has[key], err)
		}
		if now.N < seen {
			t.Fatalf("%d after %d", now.N, seen)
		}
		seen = now.N
	}
}

// atomicGroups makes several changes at once, after the listing is complete.
func atomicGroups(t *testing.T, h Harness) {
	old, other := h.Prefix+"config/item/old", h.Prefix+"config/other/x"
	h.Put(old, value("old"))
	w := startWatch(t, h)
	w.sync()
	group := []kvdbsync.Event{{Key: old}, {Key: other, Value: value("x")}}
	for i := range 30 {
		group = append(group, kvdbsync.Event{Key: fmt.Sprintf("%sconfig/item/new%d", h.Prefix, i), Value: value("new")})
	}
	h.Txn(group)
	// One batch, so exactly one read.
	b := w.read()
	if len(b.Events) != len(group) {
		t.Fatalf("a batch of %d events, want the %d that changed at once", len(b.Events), len(group))
	}
	want := map[string][]byte{}
	for _, e := range group[1:] {
		want[e.Key] = e.Value
	}
	w.expectExactly(want)
}

// exactPrefix writes keys that share a text with the prefix, but not its path: another
// folder with the same beginning, another label, and another case.
func exactPrefix(t *testing.T, h Harness) {
	h.Prefix += "config/sp/"
	beside := strings.TrimSuffix(h.Prefix, "/")
	label := strings.TrimSuffix(h.Prefix, "/config/sp/")
	foreign := []string{beside + "d/1", label + "0/config/sp/1", strings.ToUpper(h.Prefix) + "1"}
	for _, key := range foreign {
		h.Put(key, value("foreign"))
	}
	h.Put(h.Prefix+"mine", value("mine"))
	w := startWatch(t, h)
	w.sync()
	for _, key := range foreign {
		h.Put(key, value("foreign again"))
	}
	h.Put(h.Prefix+"last", value("last"))
	w.await(func() bool { return w.holds(h.Prefix+"last", value("last")) })
	w.expectExactly(map[string][]byte{h.Prefix + "mine": value("mine"), h.Prefix + "last": value("last")})
}

// browser returns the part of the harness that names keys beside the watched ones, or nil.
func (h Harness) browser() kvdbsync.Browser {
	if b, ok := h.Connector.(kvdbsync.Browser); ok {
		return b
	}
	b, _ := h.Writer.(kvdbsync.Browser)
	return b
}

// namesBeside has keys in known and in unknown folders, more than one page of a store would
// have, and keys with the same beginning as the prefix, or as a known folder.
func namesBeside(t *testing.T, h Harness) {
	var group []kvdbsync.Event
	for i := range 300 {
		for _, folder := range []string{"config/item/", "config-status/item/", "confg/item/"} {
			key := fmt.Sprintf("%s%s%d", h.Prefix, folder, i)
			group = append(group, kvdbsync.Event{Key: key, Value: value(key)})
		}
	}
	label := strings.TrimSuffix(h.Prefix, "/")
	for _, key := range []string{h.Prefix + "vpp/status/a", h.Prefix + "vpp/old/a/b", h.Prefix + "owner", h.Prefix + "single", h.Prefix + "Config/a", label + "0/other/a"} {
		group = append(group, kvdbsync.Event{Key: key, Value: value(key)})
	}
	putAll(h, group)
	names, err := h.browser().Beside(t.Context(), h.Prefix, []string{"config/", "config-status/", "vpp/status/", "owner"})
	write(t, err)
	if want := []string{"Config/", "confg/", "single", "vpp/old/"}; !slices.Equal(names, want) {
		t.Errorf("beside are %q, want %q", names, want)
	}
	empty, err := h.browser().Beside(t.Context(), label+"1/", []string{"config/"})
	if err != nil || len(empty) != 0 {
		t.Errorf("beside nothing are %q, %v", empty, err)
	}
}

// exactValues has values that a text protocol would damage: spaces, line ends, a NUL,
// bytes that are no UTF-8, and numbers that a float64 cannot hold. They are listed and
// changed.
func exactValues(t *testing.T, h Harness) {
	values := [][]byte{
		[]byte(`{"text":"a \"b\" \\ / ü 日本 𝄞 <&>"}`),
		[]byte(`{"number":18446744073709551615,"small":-0.5,"list":[1,[],{}],"none":null,"no":false}`),
	}
	// Stores of JSON refuse these.
	if !h.JSONOnly {
		values = append(values, []byte{}, []byte(" \n"), []byte("\x00\xff\xfe\r\n"), []byte(`{"not": JSON`))
	}
	want := map[string][]byte{}
	put := func(name string) {
		for i, v := range values {
			key := fmt.Sprintf("%sconfig/%s/%d", h.Prefix, name, i)
			want[key] = v
			h.Put(key, v)
		}
	}
	put("listed")
	w := startWatch(t, h)
	w.sync()
	put("changed")
	w.await(func() bool { return len(w.has) == len(want) })
	w.expectExactly(want)
}

// largeValue has one value in the listing and one in a change, since both may come by
// different calls with different limits. 12 bytes are the JSON around the text.
func largeValue(t *testing.T, h Harness) {
	large := func(fill string) []byte {
		return fmt.Appendf(nil, `{"large":"%s"}`, bytes.Repeat([]byte(fill), h.LargeValue-12))
	}
	listed, changed := h.Prefix+"config/large/1", h.Prefix+"config/large/2"
	h.Put(listed, large("a"))
	w := startWatch(t, h)
	w.sync()
	h.Put(changed, large("b"))
	w.await(func() bool { return len(w.has) == 2 })
	w.expectExactly(map[string][]byte{listed: large("a"), changed: large("b")})
}

// manyKeys needs more than one page, packet or scan of every store.
func manyKeys(t *testing.T, h Harness) {
	want := map[string][]byte{}
	var group []kvdbsync.Event
	for i := range h.ManyKeys {
		key := fmt.Sprintf("%sconfig/many/%05d", h.Prefix, i)
		want[key] = value(key)
		group = append(group, kvdbsync.Event{Key: key, Value: want[key]})
	}
	putAll(h, group)
	w := startWatch(t, h)
	w.sync()
	w.expectExactly(want)
}

// putAll is as quick as the store allows.
func putAll(h Harness, events []kvdbsync.Event) {
	const atOnce = 100 // fits what every store takes in one transaction
	for len(events) > 0 {
		n := min(atOnce, len(events))
		if h.Txn != nil {
			h.Txn(events[:n])
		} else {
			for _, e := range events[:n] {
				h.Put(e.Key, e.Value)
			}
		}
		events = events[n:]
	}
}

// startsOver expects that a second watch of a connector lists again, and knows nothing of
// the first one.
func startsOver(t *testing.T, h Harness) {
	a, b := h.Prefix+"config/item/a", h.Prefix+"config/item/b"
	h.Put(a, value("a"))
	first := startWatch(t, h)
	first.sync()
	first.end()
	h.Delete(a)
	h.Put(b, value("b"))
	second := startWatch(t, h)
	second.sync()
	second.expectExactly(map[string][]byte{b: value("b")})
}

// twoWatches ends one of two watches; the other one must go on.
func twoWatches(t *testing.T, h Harness) {
	a, b := h.Prefix+"config/item/a", h.Prefix+"config/item/b"
	h.Put(a, value("a"))
	one, two := startWatch(t, h), startWatch(t, h)
	one.sync()
	two.sync()
	two.end()
	h.Put(b, value("b"))
	one.await(func() bool { return one.holds(b, value("b")) })
	one.expectExactly(map[string][]byte{a: value("a"), b: value("b")})
}
