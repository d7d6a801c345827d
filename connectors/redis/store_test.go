package redis_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

var (
	_ kvdbsync.Connector = (*redis.Connector)(nil)
	_ kvdbsync.Publisher = (*redis.Connector)(nil)
	_ kvdbsync.Writer    = (*redis.Client)(nil)
)

func TestStore(t *testing.T) {
	t.Parallel()
	s := start(t)
	client := dial(t, redis.Config{ReadTimeout: testkit.Patience, Endpoint: s.redis.Addr})
	testStore(t, client)
	s.do("LPUSH", root+"list", "x")
	if _, err := client.Get(t.Context(), root+"list"); !errors.Is(err, redis.ErrNotString) {
		t.Errorf("Get of a list: %v", err)
	}
	if pairs, err := client.List(t.Context(), root); len(pairs) != 0 || err != nil {
		t.Errorf("List: %v, %v", pairs, err)
	}
}

func dial(t *testing.T, cfg redis.Config) *redis.Client {
	t.Helper()
	client, err := redis.Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// testStore is for any client; it leaves nothing behind.
func testStore(t *testing.T, client *redis.Client) {
	t.Helper()
	key := root + "a"
	if _, err := client.Get(t.Context(), key); !errors.Is(err, kvdbsync.ErrNotFound) || !strings.Contains(err.Error(), key) {
		t.Errorf("Get of nothing: %v", err)
	}
	if existed, err := client.Delete(t.Context(), key); existed || err != nil {
		t.Errorf("Delete of nothing: %v, %v", existed, err)
	}
	for _, value := range []string{"1", "", "\x00\xff"} {
		if err := client.Put(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
		if got, err := client.Get(t.Context(), key); string(got) != value || got == nil || err != nil {
			t.Errorf("Get: %q, %v; want %q", got, err, value)
		}
	}
	const keys = 1500
	for i := range keys {
		if err := client.Put(t.Context(), fmt.Sprintf("%slist/%04d", root, keys-1-i), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	pairs, err := client.List(t.Context(), root+"list/")
	if err != nil || len(pairs) != keys || pairs[0].Key != root+"list/0000" || pairs[keys-1].Key != fmt.Sprintf("%slist/%04d", root, keys-1) {
		t.Errorf("List: %d pairs, %v", len(pairs), err)
	}
	for _, p := range append(pairs, kvdbsync.Pair{Key: key}) {
		if existed, err := client.Delete(t.Context(), p.Key); !existed || err != nil {
			t.Fatalf("Delete: %v, %v", existed, err)
		}
	}
}

func TestStoreThatCannotBeReached(t *testing.T) {
	t.Parallel()
	client := dial(t, redis.Config{Endpoint: "127.0.0.1:1"})
	key := root + "a"
	_, getErr := client.Get(t.Context(), key)
	_, listErr := client.List(t.Context(), root)
	_, deleteErr := client.Delete(t.Context(), key)
	for name, err := range map[string]error{"Get": getErr, "List": listErr, "Put": client.Put(t.Context(), key, nil), "Delete": deleteErr} {
		if err == nil || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), root) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
