package redis

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A session that waits for a server that hangs has the turn meanwhile. It must not keep a
// lease of the same Connector from claiming a key and from being renewed.
func TestALeaseOutlivesASessionThatHangs(t *testing.T) {
	t.Parallel()
	c := New(Config{Endpoint: testkit.StartRedis(t, testkit.RedisOptions{}).Addr, ReadTimeout: testkit.Patience}, slog.New(slog.DiscardHandler))
	// A busy machine may renew a short lease too late. One that the session blocks is lost at any TTL.
	for _, ttl := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second} {
		if outlives(t, c, ttl) {
			return
		}
		t.Logf("the lease of %v is lost", ttl)
	}
	t.Error("all leases are lost")
}

// outlives reports whether a lease lives for three times its TTL while a session has the turn.
func outlives(t *testing.T, c *Connector, ttl time.Duration) bool {
	t.Helper()
	l, err := c.Lease(t.Context(), ttl)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(t.Context())
	if _, err := l.Claim(t.Context(), "owner", nil, []byte("a")); errors.Is(err, kvdbsync.ErrSessionOver) {
		return false
	} else if err != nil {
		t.Fatal(err)
	}
	if err := c.held.take(t.Context()); err != nil { // as Apply does
		t.Fatal(err)
	}
	defer c.held.leave() // before the lease is closed
	select {
	case <-l.Lost():
		return false
	case <-time.After(3 * ttl):
	}
	claimed := make(chan error, 1)
	go func() {
		_, err := l.Claim(t.Context(), "owner", []byte("a"), []byte("b"))
		claimed <- err
	}()
	select {
	case err := <-claimed:
		if err != nil && !errors.Is(err, kvdbsync.ErrSessionOver) {
			t.Error(err)
		}
		return err == nil
	case <-time.After(testkit.Patience):
		t.Fatal("the claim waits for the session")
		return false
	}
}

// A lost session is forgotten with its keys when it is closed, although it may not delete them.
func TestLostSessionsAreForgotten(t *testing.T) {
	t.Parallel()
	server := testkit.StartRedis(t, testkit.RedisOptions{})
	c := New(Config{Endpoint: server.Addr}, slog.New(slog.DiscardHandler))
	l, err := c.Lease(t.Context(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Claim(t.Context(), "owner", nil, []byte("a")); err != nil && !errors.Is(err, kvdbsync.ErrSessionOver) {
		t.Fatal(err)
	}
	server.Stop()
	<-l.Lost()
	_ = l.Close(t.Context()) // the server is away
	if len(c.leases.of) > 0 {
		t.Errorf("a closed session is remembered: %v", c.leases.of)
	}
}
