package conformance

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// sessionCases lists the cases about sessions and leases. A case that ends a session by a
// failure needs the harness's means for it.
func sessionCases() []testCase {
	publishes := needs{"Publisher"}
	needsHolder := needs{"Publisher", "Sever"}
	revokes := needs{"Publisher", "Revoke"}
	leases := needs{"Publisher with leases"}
	leaseEnds := needs{"Publisher with leases", "Sever"}
	return []testCase{
		{"a session writes, lists and deletes", publishes, sessionWrites},
		{"the keys of a closed session vanish", publishes, sessionCloses},
		{"a session may have the store's own time", publishes, sessionDefault},
		{"a key belongs to the session that wrote it last", publishes, sessionTakesOver},
		{"a session lives as long as it is held", publishes, sessionIsHeld},
		{"the keys of a dead holder vanish", needsHolder, holderDies},
		{"a short loss of the store does a session no harm", needsHolder, shortLoss},
		{"a session that the store ends is lost", revokes, sessionIsRevoked},
		{"a session leaves nothing running", publishes, sessionLeavesNothing},
		{"a key is claimed by one holder", leases, claimOnce},
		{"a lease tells how long a key is kept", leases, claimLasts},
		{"one of many concurrent claims gets the key", leases, claimRace},
		{"a claimed key is free after its holder", leases, claimFree},
		{"a claimed key is free after its holder has lost the store", leaseEnds, claimExpires},
		{"a claimed key that another has taken is left to it", leaseEnds, claimTakenOver},
	}
}

// unhurried is the TTL of sessions in cases that do not test expiry. Even a busy machine
// renews them in time.
const unhurried = patience

// A publication is a session under test, with its harness.
type publication struct {
	kvdbsync.Session
	t *testing.T
	h Harness
}

// publish begins a session that ends with the test, at the latest. The context of the call
// ends at once: it bounds the beginning of the session, not its life.
func publish(t *testing.T, h Harness) publication {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel() // must not end the session
	s, err := h.Publisher.Session(ctx, h.TTL)
	write(t, err)
	p := publication{s, t, h}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), h.Patience)
		defer cancel()
		_ = s.Close(ctx) // once more, in most cases
	})
	return p
}

// statusKey returns a key of the kind that agents publish.
func (h Harness) statusKey(name string) string { return h.Prefix + "config-status/" + name }

// put writes keys by name, each with its name as value.
func (p publication) put(names ...string) {
	p.t.Helper()
	if !p.writes(names...) {
		p.t.Fatal("the session is over")
	}
}

// published begins a session and writes keys by name. A busy machine may let a short session expire
// before they are written, so that is followed by one with a longer TTL.
func published(t *testing.T, h Harness, names ...string) publication {
	t.Helper()
	for range attempts {
		p := publish(t, h)
		if p.writes(names...) {
			return p
		}
		t.Logf("a session of %v is lost", h.TTL)
		h.TTL *= longer
	}
	t.Fatal("no session could write")
	return publication{}
}

// The TTLs of sessions that must live on a busy machine.
const (
	attempts = 4
	longer   = 3 // from one TTL to the next
)

// writes is put for a session that may be lost already, which it reports.
func (p publication) writes(names ...string) (written bool) {
	p.t.Helper()
	var changes []kvdbsync.Pair
	for _, name := range names {
		changes = append(changes, kvdbsync.Pair{Key: p.h.statusKey(name), Value: value(name)})
	}
	err := p.Apply(p.t.Context(), changes)
	if errors.Is(err, kvdbsync.ErrSessionOver) {
		return false
	}
	write(p.t, err)
	for _, name := range names {
		if got := p.h.Get(p.h.statusKey(name)); !p.h.Same(got, value(name)) {
			if got == nil && p.h.TTL < unhurried {
				return false // it expired, which the session may not know yet
			}
			p.t.Fatalf("%s was written, and the store has %q", name, got)
		}
	}
	return true
}

// close ends the session, and the test if that fails.
func (p publication) close() {
	p.t.Helper()
	write(p.t, p.Close(p.t.Context()))
}

// isLost reports whether the session says that it is over.
func (p publication) isLost() bool {
	select {
	case <-p.Lost():
		return true
	default:
		return false
	}
}

// awaitLost waits until the session notices its end. A publisher would go on to believe in
// keys that do not exist.
func (p publication) awaitLost() {
	p.t.Helper()
	select {
	case <-p.Lost():
	case <-time.After(p.h.Patience):
		p.t.Fatal("the session does not know that it is lost")
	}
}

// await polls the store until ok.
func (h Harness) await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(h.Patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s: not in time", what)
		}
	}
}

// awaitGone waits until the keys of these names have vanished.
func (h Harness) awaitGone(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		h.await(t, name+" vanishes", func() bool { return h.Get(h.statusKey(name)) == nil })
	}
}

// sessionWrites writes over its own keys, deletes a present and an absent one, and writes
// as many at once as every store must accept.
func sessionWrites(t *testing.T, h Harness) {
	h.TTL = unhurried
	h.Put(h.Prefix+"config/item/a", value("a"))
	p := publish(t, h)
	p.put("b", "a")
	p.put("a", "c")
	write(t, p.Apply(t.Context(), []kvdbsync.Pair{{Key: h.statusKey("b")}, {Key: h.statusKey("absent")}}))
	pairs, err := p.List(t.Context(), h.Prefix+"config-status/")
	write(t, err)
	if len(pairs) != 2 || pairs[0].Key != h.statusKey("a") || pairs[1].Key != h.statusKey("c") ||
		!h.Same(pairs[0].Value, value("a")) {
		t.Errorf("listed %q", pairs)
	}
	got, err := p.Get(t.Context(), h.statusKey("a"))
	write(t, err)
	if !h.Same(got, value("a")) {
		t.Errorf("got %q", got)
	}
	for _, absent := range []string{"b", "absent/-"} {
		if got, err := p.Get(t.Context(), h.statusKey(absent)); !errors.Is(err, kvdbsync.ErrNotFound) {
			t.Errorf("got %q, %v of an absent key", got, err)
		}
	}
	// As many as every store must take in one call.
	many := make([]kvdbsync.Pair, kvdbsync.MaxApply)
	for i := range many {
		many[i] = kvdbsync.Pair{Key: h.statusKey(string(rune('0' + i))), Value: value("many")}
	}
	write(t, p.Apply(t.Context(), many))
	if pairs, err := p.List(t.Context(), h.Prefix+"config-status/"); err != nil || len(pairs) < len(many) {
		t.Errorf("listed %d, %v", len(pairs), err)
	}
}

// sessionCloses expects that the keys of a closed session vanish, that no other key does,
// and that the names can be used again.
func sessionCloses(t *testing.T, h Harness) {
	h.TTL = unhurried
	other := h.Prefix + "config/item/a"
	h.Put(other, value("a"))
	p := publish(t, h)
	p.put("a", "b")
	p.close()
	h.awaitGone(t, "a", "b")
	if err := p.Apply(t.Context(), []kvdbsync.Pair{{Key: h.statusKey("a"), Value: value("a")}}); err == nil {
		t.Error("a closed session wrote")
	}
	w := startWatch(t, h)
	w.sync()
	if !w.holds(other, value("a")) {
		t.Error("a key that the session had not written vanished with it")
	}
	again := publish(t, h)
	again.put("a")
	again.close()
	h.awaitGone(t, "a")
}

// sessionDefault leaves the ttl to the store.
func sessionDefault(t *testing.T, h Harness) {
	h.TTL = 0
	published(t, h, "a").close()
	h.awaitGone(t, "a")
}

// sessionTakesOver lets a newer session write a key of an older one. Its end must not
// remove the key: a restarted agent would lose its status to the session of its former
// life.
func sessionTakesOver(t *testing.T, h Harness) {
	h.TTL = unhurried
	older, newer := publish(t, h), publish(t, h)
	older.put("a", "b")
	newer.put("a")
	older.close()
	h.awaitGone(t, "b")
	if h.Get(h.statusKey("a")) == nil {
		t.Error("what the newer session wrote vanished with the older")
	}
	newer.close()
	h.awaitGone(t, "a")
}

// sessionIsHeld checks that a session is renewed without any call of its holder.
func sessionIsHeld(t *testing.T, h Harness) {
	h.staysHeld(t, func() {})
}

// staysHeld begins a session, calls disturb, and checks that the session is held for more
// than twice its TTL. A busy machine may renew a short session too late. So a lost session
// is followed by one with a longer TTL, and the last one must be held. A session without
// renewal is lost at any TTL.
func (h Harness) staysHeld(t *testing.T, disturb func()) {
	t.Helper()
	// Short first, because a test of all connectors waits for each of them.
	for range attempts {
		p := publish(t, h)
		if p.isHeldFor(2*h.TTL+h.TTL/4, disturb) {
			return
		}
		t.Logf("a session of %v vanished, or is lost (%v), while it was held", h.TTL, p.isLost())
		h.TTL *= longer
	}
	t.Fatal("no session was held")
}

// isHeldFor writes a key, calls disturb, and reports whether the key and the session exist
// all the time, and whether the session can write then.
func (p publication) isHeldFor(d time.Duration, disturb func()) bool {
	p.t.Helper()
	key := []kvdbsync.Pair{{Key: p.h.statusKey("a"), Value: value("a")}}
	held := p.Apply(p.t.Context(), key) == nil
	disturb()
	end := time.Now().Add(d)
	p.h.await(p.t, "more than twice the time", func() bool {
		held = held && p.h.Get(p.h.statusKey("a")) != nil && !p.isLost()
		return !held || time.Now().After(end)
	})
	return held && p.Apply(p.t.Context(), key) == nil
}

// holderDies keeps the holder from its store for longer than the ttl, as a crash does.
func holderDies(t *testing.T, h Harness) {
	p := published(t, h, "a", "b")
	restore := h.Sever()
	h.awaitGone(t, "a", "b")
	p.awaitLost()
	ctx, cancel := context.WithTimeout(t.Context(), h.Patience)
	defer cancel()
	if err := p.Apply(ctx, []kvdbsync.Pair{{Key: h.statusKey("a"), Value: value("a")}}); err == nil {
		t.Error("a lost session wrote")
	}
	restore()
	rewrites(t, h, p)
}

// shortLoss cuts the holder off for less than the ttl; the session lives on.
func shortLoss(t *testing.T, h Harness) {
	h.staysHeld(t, func() { h.Sever()() })
}

// sessionIsRevoked ends the session from outside, as an administrator can.
func sessionIsRevoked(t *testing.T, h Harness) {
	p := published(t, h, "a", "b")
	h.Revoke()
	h.awaitGone(t, "a", "b")
	p.awaitLost()
	if err := p.Apply(t.Context(), []kvdbsync.Pair{{Key: h.statusKey("a"), Value: value("a")}}); err == nil {
		t.Error("a lost session wrote")
	}
	rewrites(t, h, p)
}

// rewrites writes the keys of a lost session again in a new one. The end of the lost
// session must then remove nothing.
func rewrites(t *testing.T, h Harness, lost publication) {
	t.Helper()
	h.TTL = unhurried
	again := publish(t, h)
	again.put("a", "b")
	_ = lost.Close(t.Context()) // may report that there is nothing to close
	if !bytes.Equal(h.Get(h.statusKey("a")), value("a")) || again.isLost() {
		t.Error("the end of the lost session took what the new one wrote")
	}
}

// sessionLeavesNothing checks that the renewal of a closed session has ended.
func sessionLeavesNothing(t *testing.T, h Harness) {
	h.TTL = unhurried
	h.Get(h.statusKey("a")) // the store's own means may leave something
	leavesNone(t, h, func(context.Context) {
		p := publish(t, h)
		p.put("a")
		p.close()
	})
}
