package conformance

import (
	"bytes"
	"errors"
	"testing"

	"github.com/keyplane/keyplane/kvdbsync"
)

// write ends the test where writing failed.
func write(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// expectGot checks Get. A value that exists is never nil, even if it is empty.
func expectGot(t *testing.T, h Harness, key string, want []byte) {
	t.Helper()
	got, err := h.Writer.Get(t.Context(), key)
	if err != nil || got == nil || !bytes.Equal(got, want) {
		t.Errorf("%s: got %q (nil: %v), %v; want %q", key, got, got == nil, err, want)
	}
}

// expectNotFound checks that Get tells a missing key from an empty value.
func expectNotFound(t *testing.T, h Harness, key string) {
	t.Helper()
	if got, err := h.Writer.Get(t.Context(), key); !errors.Is(err, kvdbsync.ErrNotFound) {
		t.Errorf("%s: got %q, %v; want ErrNotFound", key, got, err)
	}
}

// expectDeleted deletes a key, and checks whether Delete says that it existed.
func expectDeleted(t *testing.T, h Harness, key string, want bool) {
	t.Helper()
	if existed, err := h.Writer.Delete(t.Context(), key); existed != want || err != nil {
		t.Errorf("deleting %s: it was there: %v, %v; want %v", key, existed, err, want)
	}
}

// expectStored calls PutIfAbsent, and checks whether it stored the value.
func expectStored(t *testing.T, h Harness, key string, value []byte, want bool) {
	t.Helper()
	if stored, err := h.Writer.PutIfAbsent(t.Context(), key, value); stored != want || err != nil {
		t.Errorf("putting %s if absent: stored: %v, %v; want %v", key, stored, err, want)
	}
}

// listed is everything that the writer lists.
func listed(t *testing.T, h Harness) map[string][]byte {
	t.Helper()
	pairs, err := h.Writer.List(t.Context(), h.Prefix)
	write(t, err)
	all := map[string][]byte{}
	for _, p := range pairs {
		all[p.Key] = p.Value
	}
	return all
}

// expectListed compares the whole content below the prefix with want.
func expectListed(t *testing.T, h Harness, want map[string][]byte) {
	t.Helper()
	got := map[string]string{}
	for key, value := range listed(t, h) {
		got[key] = string(value)
	}
	expectExactly(t, h, got, want)
}

// expectReplaced replaces a value, and checks whether it was stored.
func expectReplaced(t *testing.T, h Harness, key string, old, value []byte, want bool) {
	t.Helper()
	if stored, err := h.Writer.PutIfSame(t.Context(), key, old, value); stored != want || err != nil {
		t.Errorf("replacing %q by %q under %s: stored: %v, %v; want %v", old, value, key, stored, err, want)
	}
}
