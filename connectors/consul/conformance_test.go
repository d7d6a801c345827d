package consul_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conforms(t, testkit.StartConsul(t, testkit.ConsulOptions{Config: map[string]any{"session_ttl_min": "100ms"}}), false)
}

// A server that is not the leader answers what waits for changes.
func TestConformanceStale(t *testing.T) {
	t.Parallel()
	// No server fails here. With the default of the tests, a busy machine makes the cluster elect another leader.
	slow := map[string]any{"session_ttl_min": "100ms", "performance": map[string]any{"raft_multiplier": 10}}
	servers := testkit.StartConsulCluster(t, 3, testkit.ConsulOptions{Config: slow})
	conforms(t, servers[(leaderOf(t, servers)+1)%len(servers)], true)
}

// conforms runs the suite against a server.
func conforms(t *testing.T, c *testkit.Consul, stale bool) {
	t.Helper()
	var number atomic.Int64
	conformance.Run(t, func(t *testing.T) conformance.Harness {
		s := join(t, c)
		s.stale = stale
		return conformance.Harness{
			Connector:  s.connector(),
			Prefix:     fmt.Sprintf("/vnf-agent/case%03d-/", number.Add(1)),
			Put:        func(key string, value []byte) { s.put(key, string(value)) },
			Delete:     s.delete,
			Txn:        s.txn,
			Cut:        s.cut,
			Writer:     s.dial(),
			Refused:    kvdbsync.Pair{Key: "/vnf-agent/large", Value: make([]byte, 600<<10)},
			Publisher:  s.connector(),
			Get:        s.get,
			Sever:      func() func() { s.line.Set(testkit.Drop); return func() { s.line.Set(testkit.Pass) } },
			Revoke:     s.endSessions,
			LargeValue: 512 << 10,
			ManyKeys:   3000, // a transaction takes 64
		}
	})
}

// cut breaks the connections. Changes go by a client that it does not cut.
func (s *server) cut(during func()) {
	s.line.Set(testkit.Reset)
	during()
	s.line.Set(testkit.Pass)
}

// A server is a Consul with a line to it that can be cut, and a client of its own
// that goes around the line.
type server struct {
	t      *testing.T
	consul *testkit.Consul
	line   *testkit.Proxy
	client *api.Client
	stale  bool // watches have AllowStale
}

func start(t *testing.T) *server {
	t.Helper()
	return join(t, testkit.StartConsul(t, testkit.ConsulOptions{}))
}

func join(t *testing.T, c *testkit.Consul) *server {
	t.Helper()
	return &server{t: t, consul: c, line: testkit.StartProxy(t, c.Addr), client: bareClient(t, c.Addr)}
}

// bareClient may do everything.
func bareClient(t testing.TB, addr string) *api.Client {
	t.Helper()
	cfg := api.DefaultNonPooledConfig()
	cfg.Address, cfg.Token = addr, testkit.ConsulToken
	client, err := api.NewClient(cfg)
	if err != nil {
		t.Fatalf("a client of the test server: %v", err)
	}
	return client
}

func (s *server) config() consul.Config {
	return consul.Config{Address: s.line.Addr, AllowStale: s.stale, OperationTimeout: testkit.Patience}
}

func (s *server) connector() *consul.Connector { return connect(s.config()) }

func connect(cfg consul.Config) *consul.Connector {
	return consul.New(cfg, slog.New(slog.DiscardHandler))
}

func (s *server) dial() *consul.Client {
	s.t.Helper()
	client, err := consul.Dial(s.config())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { client.Close() })
	return client
}

// ctx bounds what a test does to the server.
func (s *server) ctx() context.Context {
	ctx, cancel := context.WithTimeout(s.t.Context(), testkit.Patience)
	s.t.Cleanup(cancel)
	return ctx
}

// must ends the test where the server did not do what the test needs done.
func must[T any](t testing.TB, value T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func (s *server) put(key, value string) {
	s.t.Helper()
	must(s.t, key, putOnce(s, key, value))
}

func (s *server) get(key string) []byte {
	s.t.Helper()
	pair, _, err := s.client.KV().Get(key, nil)
	must(s.t, key, err)
	if pair == nil {
		return nil
	}
	return append([]byte{}, pair.Value...)
}

func (s *server) delete(key string) {
	s.t.Helper()
	_, err := s.client.KV().Delete(key, nil)
	must(s.t, key, err)
}

// txn makes changes in as many transactions as Consul needs.
func (s *server) txn(events []kvdbsync.Event) {
	s.t.Helper()
	for len(events) > 0 {
		n := min(len(events), kvdbsync.MaxApply)
		var ops api.KVTxnOps
		for _, e := range events[:n] {
			op := &api.KVTxnOp{Verb: api.KVSet, Key: strings.TrimPrefix(e.Key, "/"), Value: e.Value}
			if e.Value == nil {
				op.Verb = api.KVDelete
			}
			ops = append(ops, op)
		}
		ok, answer, _, err := s.client.KV().Txn(ops, nil)
		if must(s.t, ok, err); !ok {
			s.t.Fatalf("a transaction of %d: %+v", n, answer.Errors)
		}
		events = events[n:]
	}
}

func (s *server) endSessions() {
	s.t.Helper()
	all, _, err := s.client.Session().List(nil)
	for _, one := range must(s.t, all, err) {
		_, err := s.client.Session().Destroy(one.ID, nil)
		must(s.t, one, err)
	}
}

var errNothing = errors.New("the watch ended without an error")
