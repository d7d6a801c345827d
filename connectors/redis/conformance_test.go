package redis_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

func TestMain(m *testing.M) {
	testkit.RunManyAtOnce()
	redis.LogTo(discard())
	os.Exit(m.Run())
}

func TestConformance(t *testing.T) {
	t.Parallel()
	r := testkit.StartRedis(t, testkit.RedisOptions{Args: []string{"--proto-max-bulk-len", "5mb"}})
	conformance.Run(t, func(t *testing.T) conformance.Harness {
		s := join(t, r)
		h := s.harness(s.connector(), func(during func()) { s.line.Set(testkit.Reset); during(); s.line.Set(testkit.Pass) })
		return s.writing(h, dial(t, redis.Config{ReadTimeout: testkit.Patience, Endpoint: r.Addr}))
	})
}

func TestConformanceOfWatchWhenServerIsKilled(t *testing.T) {
	t.Parallel()
	r := testkit.StartRedis(t, testkit.RedisOptions{})
	conformance.RunWatch(t, func(t *testing.T) conformance.Harness {
		s := join(t, r)
		return s.harness(s.connector(), func(during func()) {
			s.line.Set(testkit.Drop)
			during() // by a client that the line does not cut
			s.redis.Kill()
			s.redis.Start()
			s.line.Set(testkit.Pass)
		})
	})
}

func TestConformanceOfWatchWithoutTracking(t *testing.T) {
	t.Parallel()
	r := testkit.StartRedis(t, testkit.RedisOptions{Args: []string{"--notify-keyspace-events", "KA"}})
	s := join(t, r)
	s.do("ACL", "SETUSER", "old", "on", ">secret", "~*", "&*", "+@all", "-client|tracking")
	conformance.RunWatch(t, func(t *testing.T) conformance.Harness {
		s := join(t, r)
		cfg := redis.Config{ReadTimeout: testkit.Patience, Endpoint: s.line.Addr, Username: "old", Password: "secret"}
		return s.harness(redis.New(cfg, discard()), func(during func()) {
			s.line.Set(testkit.Reset)
			during()
			s.line.Set(testkit.Pass)
		})
	})
}

// prefixOf is where the case that t runs may work, with servers that it shares.
func prefixOf(t testing.TB) string {
	sum := fnv.New32a()
	sum.Write([]byte(t.Name()))
	return fmt.Sprintf("/vnf-agent/case%08x-/", sum.Sum32())
}

func (s *server) harness(c *redis.Connector, cut func(func())) conformance.Harness {
	return conformance.Harness{
		Connector:  c,
		Prefix:     prefixOf(s.t),
		Put:        func(key string, value []byte) { s.put(key, string(value)) },
		Delete:     s.delete,
		Txn:        s.txn,
		Cut:        cut,
		LargeValue: 4 << 20,
	}
}

// writing adds to a harness what writes, and what takes sessions their store.
func (s *server) writing(h conformance.Harness, w kvdbsync.Writer) conformance.Harness {
	h.Writer = w
	h.Refused = kvdbsync.Pair{Key: h.Prefix + "config/item/refused", Value: make([]byte, 6<<20)}
	h.Publisher = h.Connector.(kvdbsync.Publisher)
	h.Get = func(key string) []byte { return bareGet(s.t, s.client, key) }
	h.Sever = func() func() { s.line.Set(testkit.Reset); return func() { s.line.Set(testkit.Pass) } }
	h.Revoke = func() { s.delete(h.Prefix + "config-status/b"); s.delete(h.Prefix + "config-status/a") }
	return h
}

func bareGet(t testing.TB, client goredis.Cmdable, key string) []byte {
	t.Helper()
	value, err := client.Get(t.Context(), key).Result()
	if errors.Is(err, goredis.Nil) {
		return nil
	}
	if err != nil {
		t.Fatalf("reading %s: %v", key, err)
	}
	return []byte(value)
}

// A server is a Redis with a line to it that can be cut, and a client of its own
// that goes around the line.
type server struct {
	t      testing.TB
	redis  *testkit.Redis
	line   *testkit.Proxy
	client *goredis.Client
}

func start(t testing.TB, args ...string) *server {
	t.Helper()
	return join(t, testkit.StartRedis(t, testkit.RedisOptions{Args: args}))
}

func join(t testing.TB, r *testkit.Redis) *server {
	t.Helper()
	return &server{t: t, redis: r, line: testkit.StartProxy(t, r.Addr), client: bareClient(t, r.Addr)}
}

func bareClient(t testing.TB, addr string) *goredis.Client {
	t.Helper()
	client := goredis.NewClient(&goredis.Options{Addr: addr, MaxRetries: 10, DialTimeout: testkit.Patience, ReadTimeout: testkit.Patience})
	t.Cleanup(func() { client.Close() })
	return client
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (s *server) connector() *redis.Connector {
	return redis.New(redis.Config{ReadTimeout: testkit.Patience, Endpoint: s.line.Addr}, discard())
}

// ctx bounds what a test does to the server.
func (s *server) ctx() context.Context {
	ctx, cancel := context.WithTimeout(s.t.Context(), testkit.Patience)
	s.t.Cleanup(cancel)
	return ctx
}

// do runs a command as redis-cli would.
func (s *server) do(args ...any) any {
	s.t.Helper()
	answer, err := s.client.Do(s.ctx(), args...).Result()
	if err != nil {
		s.t.Fatalf("%v: %v", args, err)
	}
	return answer
}

func (s *server) put(key, value string) { s.t.Helper(); s.do("SET", key, value) }

func (s *server) delete(key string) { s.t.Helper(); s.do("DEL", key) }

func (s *server) txn(events []kvdbsync.Event) {
	s.t.Helper()
	_, err := s.client.TxPipelined(s.ctx(), func(pipe goredis.Pipeliner) error {
		for _, e := range events {
			if e.Value == nil {
				pipe.Del(s.ctx(), e.Key)
			} else {
				pipe.Set(s.ctx(), e.Key, e.Value, 0)
			}
		}
		return nil
	})
	if err != nil {
		s.t.Fatalf("a transaction of %d: %v", len(events), err)
	}
}
