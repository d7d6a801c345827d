package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	cuts := map[string]func(*server) func(func()){
		"connection reset": func(s *server) func(func()) {
			return func(during func()) { s.line.Set(testkit.Reset); during(); s.line.Set(testkit.Pass) }
		},
		"server killed": func(s *server) func(func()) {
			return func(during func()) {
				s.line.Set(testkit.Drop)
				during() // by a client that the line does not cut
				s.etcd.Kill()
				s.etcd.Start()
				s.line.Set(testkit.Pass)
			}
		},
		"compacted meanwhile": func(s *server) func(func()) {
			return func(during func()) { s.line.Set(testkit.Drop); during(); s.compact(); s.line.Set(testkit.Pass) }
		},
	}
	var number atomic.Int64
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := testkit.StartEtcd(t, testkit.EtcdOptions{})
			conformance.Run(t, func(t *testing.T) conformance.Harness {
				s := join(t, e)
				h := conformance.Harness{
					Connector:  s.connector(),
					Prefix:     fmt.Sprintf("/vnf-agent/case%03d-/", number.Add(1)),
					Put:        func(key string, value []byte) { s.put(key, string(value)) },
					Delete:     s.delete,
					Txn:        s.txn,
					Cut:        cut(s),
					LargeValue: 1500 << 10, // what etcd takes, less its own overhead
				}
				if name == "connection reset" { // what is written does not ask how watches are cut
					s.writes(&h)
				}
				return h
			})
		})
	}
}

// writes adds the means to test writing and sessions.
func (s *server) writes(h *conformance.Harness) {
	h.Writer = s.dial(etcd.Config{OperationTimeout: testkit.Patience, Endpoints: []string{s.etcd.Addr}})
	h.Refused = kvdbsync.Pair{Key: h.Prefix + "config/large", Value: make([]byte, 1600<<10)}
	h.Publisher = s.connector()
	h.Get = s.get
	h.Sever = func() func() {
		s.line.Set(testkit.Drop)
		return func() { s.line.Set(testkit.Pass) }
	}
	h.Revoke = s.revokeAll
}

func (s *server) dial(cfg etcd.Config) *etcd.Client {
	s.t.Helper()
	client, err := etcd.Dial(s.t.Context(), cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := client.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return client
}

func (s *server) get(key string) []byte {
	s.t.Helper()
	answer, err := s.client.Get(s.ctx(), key)
	if err != nil {
		s.t.Fatalf("getting %s: %v", key, err)
	}
	if len(answer.Kvs) == 0 {
		return nil
	}
	return append([]byte{}, answer.Kvs[0].Value...)
}

// revokeAll ends all leases there are.
func (s *server) revokeAll() {
	s.t.Helper()
	leases, err := s.client.Leases(s.ctx())
	if err != nil {
		s.t.Fatalf("listing leases: %v", err)
	}
	for _, lease := range leases.Leases {
		if _, err := s.client.Revoke(s.ctx(), lease.ID); err != nil {
			s.t.Fatalf("revoking a lease: %v", err)
		}
	}
}

// A server is an etcd with a line to it that can be cut, and a client of its own
// that goes around the line.
type server struct {
	t      *testing.T
	etcd   *testkit.Etcd
	line   *testkit.Proxy
	client *clientv3.Client
}

func start(t *testing.T, args ...string) *server {
	t.Helper()
	return join(t, testkit.StartEtcd(t, testkit.EtcdOptions{Args: args}))
}

func join(t *testing.T, e *testkit.Etcd) *server {
	t.Helper()
	return &server{t: t, etcd: e, line: testkit.StartProxy(t, e.Addr), client: bareClient(t, clientv3.Config{Endpoints: []string{e.Endpoint}})}
}

func bareClient(t testing.TB, cfg clientv3.Config) *clientv3.Client {
	t.Helper()
	cfg.Logger = zap.NewNop()
	client, err := clientv3.New(cfg)
	if err != nil {
		t.Fatalf("a client of the test server: %v", err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func (s *server) connector() *etcd.Connector {
	return etcd.New(etcd.Config{OperationTimeout: testkit.Patience, Endpoints: []string{s.line.Addr}}, slog.New(slog.DiscardHandler))
}

// ctx bounds what a test does to the server.
func (s *server) ctx() context.Context {
	ctx, cancel := context.WithTimeout(s.t.Context(), testkit.Patience)
	s.t.Cleanup(cancel)
	return ctx
}

// accepted returns the error of a request, but for that of a server that needs more than its 7 s on a busy machine:
// it has accepted the request, and a server without others executes it.
func accepted(err error) error {
	if errors.Is(err, rpctypes.ErrTimeout) {
		return nil
	}
	return err
}

func (s *server) put(key, value string) {
	s.t.Helper()
	if _, err := s.client.Put(s.ctx(), key, value); accepted(err) != nil {
		s.t.Fatalf("putting %s: %v", key, err)
	}
}

func (s *server) delete(key string) {
	s.t.Helper()
	if _, err := s.client.Delete(s.ctx(), key); accepted(err) != nil {
		s.t.Fatalf("deleting %s: %v", key, err)
	}
}

func (s *server) txn(events []kvdbsync.Event) {
	s.t.Helper()
	var ops []clientv3.Op
	for _, e := range events {
		if e.Value == nil {
			ops = append(ops, clientv3.OpDelete(e.Key))
		} else {
			ops = append(ops, clientv3.OpPut(e.Key, string(e.Value)))
		}
	}
	if _, err := s.client.Txn(s.ctx()).Then(ops...).Commit(); accepted(err) != nil {
		s.t.Fatalf("a transaction of %d: %v", len(ops), err)
	}
}

// revision is where the server is now.
func (s *server) revision() int64 {
	s.t.Helper()
	answer, err := s.client.Get(s.ctx(), "x", clientv3.WithCountOnly())
	if err != nil {
		s.t.Fatalf("asking for the revision: %v", err)
	}
	return answer.Header.Revision
}

// compact takes all history away.
func (s *server) compact() {
	s.t.Helper()
	if _, err := s.client.Compact(s.ctx(), s.revision(), clientv3.WithCompactPhysical()); err != nil {
		s.t.Fatalf("compacting: %v", err)
	}
}
