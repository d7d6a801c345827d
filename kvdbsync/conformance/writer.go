package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/keyplane/keyplane/kvdbsync"
)

// writerCases lists the cases about writing.
func writerCases() []testCase {
	writes := needs{"Writer"}
	refuses := needs{"Writer", "Refused"}
	return []testCase{
		{"written values are read back", writes, writtenIsRead},
		{"listing is by prefix and in order", writes, listsInOrder},
		{"values are written byte by byte", writes, writesExactly},
		{"any character may be in a key", writes, oddKeys},
		{"written values arrive at a watch", writes, writtenArrives},
		{"one of many concurrent puts if absent stores", writes, oneStores},
		{"a value is replaced only if it is the expected one", writes, replacesExpected},
		{"one of many concurrent replacements stores", writes, oneReplaces},
		{"changes are made at once", writes, appliesAll},
		{"changes are made all or none", refuses, appliesNone},
		{"too many changes at once change nothing", writes, appliesMany},
		{"a call with an ended context writes nothing", writes, noTime},
	}
}

// writtenIsRead puts, updates, deletes, and puts if absent, and reads after each step.
func writtenIsRead(t *testing.T, h Harness) {
	ctx, key := t.Context(), h.Prefix+"config/item/a"
	expectNotFound(t, h, key)
	expectDeleted(t, h, key, false)
	for _, text := range []string{"one", "two"} {
		write(t, h.Writer.Put(ctx, key, value(text)))
		expectGot(t, h, key, value(text))
	}
	expectStored(t, h, key, value("three"), false)
	expectGot(t, h, key, value("two"))
	expectDeleted(t, h, key, true)
	expectNotFound(t, h, key)
	expectStored(t, h, key, value("three"), true)
	expectGot(t, h, key, value("three"))
}

// listsInOrder expects the order of bytes, not of a language. The prefix ends with a
// slash, so a key beside the folder does not belong to it.
func listsInOrder(t *testing.T, h Harness) {
	below := h.Prefix + "config/item/"
	// Letters of both cases, a slash, a space and numbers: orders differ in these.
	names := []string{"b", "a", "a/b", "B", "a b", "10", "9"}
	for _, name := range names {
		write(t, h.Writer.Put(t.Context(), below+name, value(name)))
	}
	write(t, h.Writer.Put(t.Context(), h.Prefix+"config/items", value("beside")))
	pairs, err := h.Writer.List(t.Context(), below)
	write(t, err)
	slices.Sort(names)
	if len(pairs) != len(names) {
		t.Fatalf("%d pairs, want %d: %v", len(pairs), len(names), pairs)
	}
	for i, name := range names {
		if pairs[i].Key != below+name || string(pairs[i].Value) != string(value(name)) {
			t.Errorf("%d: %s = %s, want %s", i, pairs[i].Key, pairs[i].Value, name)
		}
	}
	if pairs, err := h.Writer.List(t.Context(), h.Prefix+"config/none/"); len(pairs) > 0 || err != nil {
		t.Errorf("of nothing: %v, %v", pairs, err)
	}
}

// writesExactly writes by each method of a Writer.
func writesExactly(t *testing.T, h Harness) {
	values := [][]byte{nil, {}, []byte(" \n"), []byte("\x00\xff\xfe\r\n"), value("ü 日本 𝄞")}
	for i, v := range values {
		key := func(name string) string { return fmt.Sprintf("%sconfig/%s/%d", h.Prefix, name, i) }
		write(t, h.Writer.Put(t.Context(), key("put"), v))
		expectGot(t, h, key("put"), v)
		expectStored(t, h, key("absent"), v, true)
		expectGot(t, h, key("absent"), v)
		expectStored(t, h, key("absent"), value("another"), false)
		if v != nil { // deletes
			write(t, h.Writer.Apply(t.Context(), []kvdbsync.Pair{{Key: key("apply"), Value: v}}))
			expectGot(t, h, key("apply"), v)
		}
		expectDeleted(t, h, key("put"), true)
	}
}

// oddKeys has the characters of names that people use, such as prefixes and IPv6 zones,
// and those with a meaning for a store: globs of Redis, escapes of URLs, paths of files.
func oddKeys(t *testing.T, h Harness) {
	names := []string{
		"a b", "#?&=%2F+", "é/日本/𝄞", "*[a-z]?", `\"'`, "{x}", "10.0.0.0/8", "a:b,c;d", "fe80::1%eth0", "~!@$^()<>|`", "folder/",
	}
	want := map[string][]byte{}
	w := startWatch(t, h)
	w.sync()
	for _, name := range names {
		key := h.Prefix + "config/odd/" + name
		want[key] = value(name)
		write(t, h.Writer.Put(t.Context(), key, value("first")))
		write(t, h.Writer.Apply(t.Context(), []kvdbsync.Pair{{Key: key, Value: want[key]}}))
		expectGot(t, h, key, want[key])
	}
	w.await(func() bool { return w.holdsAll(want) })
	w.expectExactly(want)
	for key := range want {
		expectDeleted(t, h, key, true)
	}
	w.await(func() bool { return len(w.has) == 0 })
}

// writtenArrives checks that a watch of the same connector sees each kind of write. A
// store with a cache of its own could hide its own writes.
func writtenArrives(t *testing.T, h Harness) {
	ctx := t.Context()
	key := func(name string) string { return h.Prefix + "config/item/" + name }
	write(t, h.Writer.Put(ctx, key("listed"), value("listed")))
	w := startWatch(t, h)
	w.sync()
	w.expectExactly(map[string][]byte{key("listed"): value("listed")})
	write(t, h.Writer.Put(ctx, key("put"), value("put")))
	w.await(func() bool { return w.holds(key("put"), value("put")) })
	expectStored(t, h, key("absent"), value("absent"), true)
	w.await(func() bool { return w.holds(key("absent"), value("absent")) })
	expectDeleted(t, h, key("listed"), true)
	write(t, h.Writer.Apply(ctx, []kvdbsync.Pair{{Key: key("put")}, {Key: key("apply"), Value: value("apply")}}))
	want := map[string][]byte{key("absent"): value("absent"), key("apply"): value("apply")}
	w.await(func() bool { return w.holdsAll(want) })
}

// oneStores lets eight writers put a key if absent, at once and in five rounds.
func oneStores(t *testing.T, h Harness) {
	const writers, rounds = 8, 5
	for round := range rounds {
		key := fmt.Sprintf("%sconfig/item/%d", h.Prefix, round)
		var stored [writers]bool
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				var err error
				if stored[i], err = h.Writer.PutIfAbsent(t.Context(), key, value(fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		first := slices.Index(stored[:], true)
		if first < 0 || slices.Contains(stored[first+1:], true) {
			t.Fatalf("who stored: %v, want one", stored)
		}
		expectGot(t, h, key, value(fmt.Sprint(first)))
	}
}

// appliesAll makes the number of changes that every store must accept at once.
func appliesAll(t *testing.T, h Harness) {
	write(t, h.Writer.Apply(t.Context(), nil))
	changes, want := manyChanges(t, h, kvdbsync.MaxApply)
	write(t, h.Writer.Apply(t.Context(), changes))
	expectListed(t, h, want)
}

// appliesNone puts a refused change at each position: none of the others may be made.
func appliesNone(t *testing.T, h Harness) {
	changes, _ := manyChanges(t, h, 3)
	before := listed(t, h)
	// At the beginning, in between, and at the end.
	for at := range 4 {
		if err := h.Writer.Apply(t.Context(), slices.Insert(slices.Clone(changes), at, h.Refused)); err == nil {
			t.Fatal("the change that the harness says is refused was made")
		}
		expectListed(t, h, before)
	}
	write(t, h.Writer.Apply(t.Context(), changes))
}

// appliesMany makes more changes than a store has to accept at once.
func appliesMany(t *testing.T, h Harness) {
	// Either all of them or none; which one is up to the store.
	changes, want := manyChanges(t, h, 10*kvdbsync.MaxApply)
	before := listed(t, h)
	switch err := h.Writer.Apply(t.Context(), changes); {
	case err == nil:
		expectListed(t, h, want)
	case errors.Is(err, kvdbsync.ErrTooLarge):
		expectListed(t, h, before)
	default:
		t.Errorf("got %v, want ErrTooLarge", err)
	}
}

// manyChanges puts some keys, and returns changes that put, update and delete, a third of
// each, with the expected content after them.
func manyChanges(t *testing.T, h Harness, n int) (changes []kvdbsync.Pair, want map[string][]byte) {
	t.Helper()
	want = map[string][]byte{}
	var old []kvdbsync.Event
	for i := range n {
		key := fmt.Sprintf("%sconfig/item/%03d", h.Prefix, i)
		if i%3 > 0 {
			old = append(old, kvdbsync.Event{Key: key, Value: value("old")})
		}
		if i%3 == 2 {
			changes = append(changes, kvdbsync.Pair{Key: key})
			continue
		}
		want[key] = value(key)
		changes = append(changes, kvdbsync.Pair{Key: key, Value: want[key]})
	}
	putAll(h, old)
	return changes, want
}

// replacesExpected replaces a value, another one than is there, an empty one, and none.
func replacesExpected(t *testing.T, h Harness) {
	key := h.Prefix + "config/item/a"
	expectReplaced(t, h, key, nil, value("one"), false)
	expectReplaced(t, h, key, value("one"), value("one"), false)
	expectNotFound(t, h, key)
	write(t, h.Writer.Put(t.Context(), key, value("one")))
	expectReplaced(t, h, key, value("other"), value("two"), false)
	expectReplaced(t, h, key, nil, value("two"), false)
	expectGot(t, h, key, value("one"))
	expectReplaced(t, h, key, value("one"), value("two"), true)
	expectGot(t, h, key, value("two"))
	expectReplaced(t, h, key, value("one"), value("three"), false)
	expectReplaced(t, h, key, value("two"), value("two"), true)
	expectGot(t, h, key, value("two"))
}

// oneReplaces lets eight writers replace the same value, at once and in five rounds.
func oneReplaces(t *testing.T, h Harness) {
	const writers, rounds = 8, 5
	key := h.Prefix + "config/item/a"
	for round := range rounds {
		old := value(fmt.Sprint("round ", round))
		write(t, h.Writer.Put(t.Context(), key, old))
		var stored [writers]bool
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				var err error
				if stored[i], err = h.Writer.PutIfSame(t.Context(), key, old, value(fmt.Sprint("writer ", i))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		winner := slices.Index(stored[:], true)
		if winner < 0 || slices.Contains(stored[winner+1:], true) {
			t.Fatalf("round %d: stored: %v, want one", round, stored)
		}
		expectGot(t, h, key, value(fmt.Sprint("writer ", winner)))
	}
}

// noTime calls each method with a context that has ended. Nothing may be written, and the
// error must be that of the context, so that the caller can tell it from a refusal.
func noTime(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	key := h.Prefix + "config/item/a"
	_, absent := h.Writer.PutIfAbsent(ctx, key, value("a"))
	apply := h.Writer.Apply(ctx, []kvdbsync.Pair{{Key: key, Value: value("a")}})
	_, replace := h.Writer.PutIfSame(ctx, key, nil, value("a"))
	for name, err := range map[string]error{"Put": h.Writer.Put(ctx, key, value("a")), "PutIfAbsent": absent, "PutIfSame": replace, "Apply": apply} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want that of the context", name, err)
		}
	}
	expectNotFound(t, h, key)
}
