package stores

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

const (
	consulCan        = Servers | Emptied | Copies | CutDrop | CutReset | CutSilent | Users | Certificates | Groups | Garbage | Children | OneSilent | SlowLine
	consulClusterCan = CutDrop | LeaderLoss | Rolling | Groups | Garbage | Children | OneSilent | SlowLine
)

// connectConsul makes a connector from the JSON of a consul.Config.
func connectConsul(config json.RawMessage) (kvdbsync.Connector, error) {
	var cfg consul.Config
	err := json.Unmarshal(config, &cfg)
	return consul.New(cfg, slog.New(slog.DiscardHandler)), err
}

// A consulStore is one server or several. The agent has a line to one of them, as through
// a load balancer.
type consulStore struct {
	testing.TB
	servers []*testkit.Consul
	line    *testkit.Proxy
	certs   *testkit.Certificates
	client  *api.Client
	copy    []byte
}

// agentToken is the agent's ACL token.
const agentToken = "11111111-2222-3333-4444-555555555555"

// openConsul returns the function that opens a cluster of that many servers. The agent
// reaches one server by a line; the test's client has no line, so it can write during a
// cut.
func openConsul(servers int) func(testing.TB, Ability) *Store {
	return func(t testing.TB, extra Ability) *Store {
		s := &consulStore{TB: t}
		o := testkit.ConsulOptions{ACL: extra&Users != 0}
		if extra&Certificates != 0 {
			s.certs = testkit.MakeCertificates(t)
			o.TLS = s.certs
		}
		s.servers = testkit.StartConsulCluster(t, servers, o)
		s.serveBy(s.servers[0])
		var cfg consul.Config
		if s.certs == nil {
			s.line = testkit.StartProxy(t, s.servers[0].Addr)
			cfg.Address = s.line.Addr
		} else {
			s.line = testkit.StartProxy(t, s.servers[0].AddrTLS)
			cfg = consul.Config{Address: "https://" + s.line.Addr, CAFile: s.certs.CA, CertFile: s.certs.Client.Cert, KeyFile: s.certs.Client.Key}
		}
		if o.ACL {
			cfg.Token = agentToken
			s.grant()
		}
		if extra&OneSilent != 0 {
			cfg.ProbeInterval = 2 * time.Second // the fault tests this interval; all others stay at their defaults
		}
		return s.store(cfg)
	}
}

// store returns the Store. The largest value is Consul's default limit of 512 KiB, and a
// transaction has at most 64 operations: both are limits of the server.
func (s *consulStore) store(cfg consul.Config) *Store {
	modes := map[string]testkit.Mode{"drop": testkit.Drop, "reset": testkit.Reset, "silent": testkit.BlackHole}
	first := s.servers[0]
	return &Store{
		Config: cfg, Connector: consul.New(cfg, slog.New(slog.DiscardHandler)),
		Write: s.write, List: s.list, AtOnce: 64, MaxValue: 512 << 10, MaxName: 1 << 10,
		Kill: first.Kill, Start: first.Start, Wipe: first.Wipe, Pause: first.Pause, Continue: first.Continue,
		Cut:  func(how string) { s.line.Set(modes[how]) },
		Heal: func() { s.line.Set(testkit.Pass) }, Slow: s.line.Slow,
		Silence: func() int { return s.line.Silence("index=") },
		Save:    s.save, Restore: s.restore, Revoke: s.revoke, Grant: s.grant, Rotate: s.rotate, LoseLeader: s.loseLeader,
		Members: s.rolling(),
	}
}

// rolling moves the clients of a stopping server to the next one.
func (s *consulStore) rolling() (out []Member) {
	for i, server := range s.servers {
		next := s.servers[(i+1)%len(s.servers)]
		stop := func() {
			s.serveBy(next)
			s.line.Retarget(next.Addr)
			server.Stop()
		}
		out = append(out, Member{Stop: stop, Start: server.Start})
	}
	return out
}

// serveBy connects the test's client to a server.
func (s *consulStore) serveBy(server *testkit.Consul) {
	s.Helper()
	client, err := api.NewClient(&api.Config{Address: server.Addr, Token: testkit.ConsulToken})
	if err != nil {
		s.Fatal(err)
	}
	s.client = client
}

// place returns the key of a name in Consul's form, without a leading slash.
func place(name string) string { return strings.TrimPrefix(KeyOf(name), "/") }

// write puts a single value without a transaction, because it may be larger than one.
func (s *consulStore) write(ctx context.Context, changes ...history.Change) error {
	if first := changes[0]; len(changes) == 1 && first.Text != "" {
		_, err := s.client.KV().Put(&api.KVPair{Key: place(first.Key), Value: ValueOf(first.Key, first.Text)}, (&api.WriteOptions{}).WithContext(ctx))
		return err
	}
	// A transaction is atomic for readers, but its operations count against its size
	// limit.
	var ops api.KVTxnOps
	for _, c := range changes {
		op := &api.KVTxnOp{Verb: api.KVDelete, Key: place(c.Key)}
		if c.Text != "" {
			op.Verb, op.Value = api.KVSet, ValueOf(c.Key, c.Text)
		}
		ops = append(ops, op)
	}
	ok, answer, _, err := s.client.KV().Txn(ops, (&api.QueryOptions{}).WithContext(ctx))
	if err == nil && !ok {
		err = fmt.Errorf("refused: %+v", answer.Errors[0])
	}
	return err
}

// list uses the test's client, and so works during a cut of the agent's line.
func (s *consulStore) list(ctx context.Context) (map[string]string, error) {
	pairs, err := s.pairs(ctx)
	return textsOf(pairs), err
}

// pairs reads with the mode "consistent": the leader confirms its lead first, so the
// answer has all acknowledged writes, also right after an election.
func (s *consulStore) pairs(ctx context.Context) ([]kvdbsync.Pair, error) {
	has, _, err := s.client.KV().List(strings.TrimPrefix(Root, "/"), (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx))
	pairs := make([]kvdbsync.Pair, len(has))
	for i, p := range has {
		pairs[i] = kvdbsync.Pair{Key: p.Key, Value: p.Value}
	}
	return pairs, err
}

// must fails the test if the last of several results is an error.
func (s *consulStore) must(_ any, _ *api.WriteMeta, err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// grant makes the agent's token, and once the policy that it refers to. The token has a
// fixed SecretID, so the agent's configuration stays valid across revoke and grant.
func (s *consulStore) grant() {
	s.Helper()
	acl := s.client.ACL()
	if policy, _, err := acl.PolicyReadByName("agent", nil); err != nil || policy == nil {
		s.must(acl.PolicyCreate(&api.ACLPolicy{Name: "agent", Rules: `key_prefix "" { policy = "read" }`}, nil))
	}
	s.must(acl.TokenCreate(&api.ACLToken{SecretID: agentToken, Policies: []*api.ACLTokenPolicyLink{{Name: "agent"}}}, nil))
}

// revoke deletes the token. Consul addresses it by its accessor, which differs from the
// secret that the agent has.
func (s *consulStore) revoke() {
	s.Helper()
	token, _, err := s.client.ACL().TokenReadSelf(&api.QueryOptions{Token: agentToken})
	if err == nil {
		_, err = s.client.ACL().TokenDelete(token.AccessorID, nil)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// save takes a snapshot through the server's API, as an operator does.
func (s *consulStore) save() {
	s.Helper()
	from, _, err := s.client.Snapshot().Save(nil)
	if err == nil {
		defer from.Close()
		s.copy, err = io.ReadAll(from)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// restore replaces all data of the running server, including its ACLs and indexes.
func (s *consulStore) restore() {
	s.Helper()
	if err := s.client.Snapshot().Restore(nil, bytes.NewReader(s.copy)); err != nil {
		s.Fatal(err)
	}
}

// rotate restarts the server, so that it reads the new files.
func (s *consulStore) rotate() {
	s.servers[0].Kill()
	rotateCertificates(s.TB, s.certs)
	s.servers[0].Start()
}

// leader returns the index of the leader, by the servers' own statements.
func (s *consulStore) leader() int {
	s.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(testkit.Patience); time.Now().Before(late); <-tick.C {
		for i, server := range s.servers {
			client, err := api.NewClient(&api.Config{Address: server.Addr})
			if err != nil {
				s.Fatal(err)
			}
			self, err := client.Agent().Self()
			if err == nil && fmt.Sprint(self["Stats"]["consul"].(map[string]any)["leader"]) == "true" {
				return i
			}
		}
	}
	s.Fatal("nobody leads")
	return -1
}

// loseLeader kills the leader, and moves its clients to another server.
func (s *consulStore) loseLeader() (back func()) {
	s.Helper()
	i := s.leader()
	next := s.servers[(i+1)%len(s.servers)]
	s.serveBy(next)
	s.line.Retarget(next.Addr)
	s.servers[i].Kill()
	return s.servers[i].Start
}
