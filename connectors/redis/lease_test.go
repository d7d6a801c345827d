package redis

import (
	"log/slog"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/testkit"
)

// A session that waits for a server that hangs has the turn meanwhile. It must not keep a
// lease of the same Connector from claiming a key and from being renewed.
func TestALeaseOutlivesASessionThatHangs(t *testing.T) {
	t.Parallel()
	c := New(Config{Endpoint: testkit.StartRedis(t, testkit.RedisOptions{}).Addr}, slog.New(slog.DiscardHandler))
	l, err := c.Lease(t.Context(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(t.Context())
	if _, err := l.Claim(t.Context(), "owner", nil, []byte("a")); err != nil {
		t.Fatal(err)
	}
	if err := c.held.take(t.Context()); err != nil { // as Apply does
		t.Fatal(err)
	}
	defer c.held.leave() // before the lease is closed
	select {
	case <-l.Lost():
		t.Fatal("the lease is lost")
	case <-time.After(3 * time.Second):
	}
	claimed := make(chan error, 1)
	go func() {
		_, err := l.Claim(t.Context(), "owner", []byte("a"), []byte("b"))
		claimed <- err
	}()
	select {
	case err := <-claimed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(testkit.Patience):
		t.Error("the claim waits for the session")
	}
}
