package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// lease begins a lease that ends with the test, at the latest.
func lease(t *testing.T, h Harness) kvdbsync.Lease {
	t.Helper()
	l, err := h.Publisher.(kvdbsync.Leaser).Lease(t.Context(), h.TTL)
	write(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), h.Patience)
		defer cancel()
		_ = l.Close(ctx) // a second time in most cases
	})
	return l
}

// leased begins a lease and claims the key with the value "a", as published writes keys.
func leased(t *testing.T, h Harness) kvdbsync.Lease {
	t.Helper()
	for range attempts {
		l := lease(t, h)
		_, err := l.Claim(t.Context(), h.ownerKey(), nil, value("a"))
		if err == nil && bytes.Equal(h.Get(h.ownerKey()), value("a")) {
			return l
		}
		t.Logf("a lease of %v is lost: %v", h.TTL, err)
		h.await(t, "the key is free", func() bool { return h.Get(h.ownerKey()) == nil })
		h.TTL *= longer
	}
	t.Fatal("no lease could claim the key")
	return nil
}

// claims checks what a claim returns, and that the store agrees.
func claims(t *testing.T, h Harness, l kvdbsync.Lease, old, value, want []byte) {
	t.Helper()
	holds, err := l.Claim(t.Context(), h.ownerKey(), old, value)
	write(t, err)
	if !bytes.Equal(holds, want) || !bytes.Equal(h.Get(h.ownerKey()), want) {
		t.Fatalf("the claim returned %q, the store has %q, want %q", holds, h.Get(h.ownerKey()), want)
	}
}

// reads checks what a lease reads under the key; nil: the key is absent.
func reads(t *testing.T, h Harness, l kvdbsync.Lease, want []byte) {
	t.Helper()
	got, err := l.Get(t.Context(), h.ownerKey())
	if want == nil && errors.Is(err, kvdbsync.ErrNotFound) {
		return
	}
	if err != nil || want == nil || !bytes.Equal(got, want) {
		t.Errorf("the lease reads %q, %v; want %q", got, err, want)
	}
}

// ownerKey returns the key that the holders claim.
func (h Harness) ownerKey() string { return h.Prefix + "owner" }

// claimOnce lets two holders claim a key in turn: a claim succeeds only with the present
// value as the old one. The end of a former holder must not free the key.
func claimOnce(t *testing.T, h Harness) {
	h.TTL = unhurried
	first, second := lease(t, h), lease(t, h)
	a, b := value("a"), value("b")
	if first.TTL() < h.TTL/2 {
		t.Errorf("ttl is %v, asked for %v", first.TTL(), h.TTL)
	}
	// The key is free, but the claim expects another holder: it changes nothing.
	if holds, err := first.Claim(t.Context(), h.ownerKey(), b, a); holds != nil || err != nil {
		t.Fatalf("a claim of what is not there any more returned %q, %v", holds, err)
	}
	reads(t, h, first, nil)
	claims(t, h, first, nil, a, a)
	reads(t, h, second, a)
	claims(t, h, second, nil, b, a)
	claims(t, h, second, b, b, a)
	claims(t, h, first, a, a, a)
	claims(t, h, second, a, b, b)
	write(t, first.Close(t.Context()))
	if got := h.Get(h.ownerKey()); !bytes.Equal(got, b) {
		t.Errorf("the end of the first holder left %q of what the second has", got)
	}
	claims(t, h, second, b, a, a)
}

// claimLasts asks for how long the store keeps a key: one that is absent, that anybody has written, and that a
// lease has.
func claimLasts(t *testing.T, h Harness) {
	h.TTL = unhurried
	first, second := lease(t, h), lease(t, h)
	left := func(what string, least, most time.Duration) {
		t.Helper()
		got, err := second.Left(t.Context(), h.ownerKey())
		write(t, err)
		if got < least || got > most {
			t.Errorf("%s is kept for %v, want %v to %v", what, got, least, most)
		}
	}
	left("an absent key", 0, 0)
	h.Put(h.ownerKey(), value("x"))
	left("a key that a client has put", kvdbsync.Forever, kvdbsync.Forever)
	h.Delete(h.ownerKey())
	claims(t, h, first, nil, value("a"), value("a"))
	left("a claimed key", 1, first.TTL())
	if err := first.Over(); err != nil {
		t.Errorf("a lease that is held: %v", err)
	}
	write(t, first.Close(t.Context()))
	if err := first.Over(); !errors.Is(err, kvdbsync.ErrSessionOver) {
		t.Errorf("a closed lease: %v", err)
	}
}

// claimRace lets five holders claim a free key at once. Exactly one gets it, and the
// others are told its value.
func claimRace(t *testing.T, h Harness) {
	h.TTL = unhurried
	const many = 5
	var wg sync.WaitGroup
	won := make(chan []byte, many)
	for i := range many {
		l, me := lease(t, h), value(fmt.Sprint("holder-", i))
		wg.Go(func() {
			holds, err := l.Claim(t.Context(), h.ownerKey(), nil, me)
			switch {
			case err != nil:
				t.Error(err)
			case bytes.Equal(holds, me):
				won <- me
			case holds == nil:
				t.Error("a claim was refused, and nobody has the key")
			}
		})
	}
	wg.Wait()
	// Two holders would be two agents that program one system.
	if len(won) != 1 {
		t.Fatalf("%d holders of one key", len(won))
	}
	if winner := <-won; !bytes.Equal(h.Get(h.ownerKey()), winner) {
		t.Errorf("the store has %q, the winner is %q", h.Get(h.ownerKey()), winner)
	}
}

// claimFree closes the lease of the holder; the next one claims the key as a free one.
func claimFree(t *testing.T, h Harness) {
	h.TTL = unhurried
	first, second := lease(t, h), lease(t, h)
	claims(t, h, first, nil, value("a"), value("a"))
	write(t, first.Close(t.Context()))
	h.await(t, "the key is free", func() bool { return h.Get(h.ownerKey()) == nil })
	claims(t, h, second, nil, value("b"), value("b"))
	if _, err := first.Claim(t.Context(), h.ownerKey(), nil, value("a")); err == nil {
		t.Error("a closed lease claimed a key")
	}
}

// claimExpires cuts the holder off. The key must be free in the store, and the holder must
// know that by itself: two agents would program the same system otherwise.
func claimExpires(t *testing.T, h Harness) {
	first := leased(t, h)
	restore := h.Sever()
	h.await(t, "the key is free", func() bool { return h.Get(h.ownerKey()) == nil })
	select {
	case <-first.Lost():
	case <-time.After(h.Patience):
		t.Fatal("the holder does not know that its lease is lost")
	}
	if err := first.Over(); !errors.Is(err, kvdbsync.ErrSessionOver) {
		t.Errorf("a lost lease: %v", err)
	}
	restore()
	h.TTL = unhurried
	claims(t, h, lease(t, h), nil, value("b"), value("b"))
	if _, err := first.Claim(t.Context(), h.ownerKey(), value("b"), value("a")); err == nil {
		t.Error("a lost lease claimed a key")
	}
}

// claimTakenOver gives the key to another holder behind the back of the first one, as a takeover does
// while the first one's process is paused. When that goes on, it must neither delete the key of the other
// nor change its time to live, by its renewals or by its end, whether or not it knows of its loss.
func claimTakenOver(t *testing.T, h Harness) {
	other := value("of another process")
	taken := func(when string) {
		t.Helper()
		if got := h.Get(h.ownerKey()); !bytes.Equal(got, other) {
			t.Errorf("%s, the other's key has %q", when, got)
		}
	}
	// Others write over the key of a living lease, or after it has expired.
	for _, expires := range []bool{false, true} {
		for _, ends := range []bool{false, true} {
			first := leased(t, h)
			restore := func() {}
			if expires {
				restore = h.Sever()
				h.await(t, "the key is free", func() bool { return h.Get(h.ownerKey()) == nil })
			} else {
				h.Delete(h.ownerKey())
			}
			h.Put(h.ownerKey(), other)
			restore()
			if !ends {
				h.await(t, "the lease could have been renewed", after(first.TTL()))
				taken("after the renewals of the first lease")
			}
			_ = first.Close(t.Context()) // a lost one may say so
			taken("after the end of the first lease")
			h.Delete(h.ownerKey())
		}
	}
}

// after returns a condition that is met after d.
func after(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return !time.Now().Before(end) }
}
