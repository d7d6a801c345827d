package stores

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

// etcdCan are the abilities of etcd with any number of members.
const etcdCan = Servers | Emptied | CutDrop | CutReset | CutSilent | Groups | Garbage | Children | OneSilent | SlowLine

// connectEtcd makes a connector from the JSON of an etcd.Config.
func connectEtcd(config json.RawMessage) (kvdbsync.Connector, error) {
	var cfg etcd.Config
	err := json.Unmarshal(config, &cfg)
	return etcd.New(cfg, slog.New(slog.DiscardHandler)), err
}

// An etcdStore is a cluster. The agent has a line to each member, and the test's client
// has direct connections.
type etcdStore struct {
	testing.TB
	members []*testkit.Etcd
	lines   []*testkit.Proxy
	calls   []*testkit.GRPCProxy // used instead of lines for the silence of one call
	client  *clientv3.Client
	certs   *testkit.Certificates // nil: no TLS
	copies  []string              // of the members' data folders
}

// openEtcd returns the function that opens a cluster of that many members. The extra
// abilities decide about users, TLS and the kind of line between agent and members.
func openEtcd(members int) func(testing.TB, Ability) *Store {
	return func(t testing.TB, extra Ability) *Store {
		s := &etcdStore{TB: t}
		var o testkit.EtcdOptions
		if extra&(Users|Tokens) != 0 {
			// One second, so a login expires within the fault. A member reads it at its
			// start.
			o.Args = []string{"--auth-token-ttl=1"}
		}
		if extra&Certificates != 0 {
			s.certs = testkit.MakeCertificates(t)
			o.TLS = true
			o.Args = []string{"--cert-file=" + s.certs.Server.Cert, "--key-file=" + s.certs.Server.Key, "--trusted-ca-file=" + s.certs.CA, "--client-cert-auth"}
		}
		s.members = testkit.StartEtcdCluster(t, members, o)
		var cfg etcd.Config
		for _, m := range s.members {
			if extra&OneSilent != 0 {
				// A line below gRPC cannot tell the watch from other calls of the same
				// connection.
				s.calls = append(s.calls, testkit.StartGRPCProxy(t, m.Addr))
				cfg.Endpoints = append(cfg.Endpoints, s.calls[len(s.calls)-1].Addr)
				continue
			}
			line := testkit.StartProxy(t, m.Addr)
			s.lines = append(s.lines, line)
			cfg.Endpoints = append(cfg.Endpoints, line.Addr)
		}
		if s.certs != nil {
			cfg.CAFile, cfg.CertFile, cfg.KeyFile = s.certs.CA, s.certs.Client.Cert, s.certs.Client.Key
		}
		s.client = s.connect(clientv3.Config{})
		if extra&(Users|Tokens) != 0 {
			cfg.Username, cfg.Password = "agent", "secret"
			s.makeUsers()
		}
		return s.store(cfg)
	}
}

// store returns the Store. 128 is etcd's default of operations in a transaction, and a
// request has at most 1.5 MiB; a value must be somewhat smaller than that.
func (s *etcdStore) store(cfg etcd.Config) *Store {
	return &Store{
		Config: cfg, Connector: etcd.New(cfg, slog.New(slog.DiscardHandler)),
		Write: s.write, List: s.list,
		AtOnce: 128, MaxValue: 3<<19 - 1<<10, MaxName: 3 << 10,
		Kill: s.kill, Start: s.start, Wipe: s.wipe,
		Pause:    func() { s.each((*testkit.Etcd).Pause) },
		Continue: func() { s.each((*testkit.Etcd).Continue) },
		Cut:      s.cut, Heal: func() { s.set(testkit.Pass) },
		Compact: s.compact, Save: s.save, Restore: s.restore,
		Revoke: s.revoke, Grant: s.grant, Rotate: s.rotate,
		MoveLeader: s.moveLeader, LoseLeader: s.loseLeader,
		Silence: s.silence, Slow: s.slow, Members: s.rolling(),
	}
}

// silence silences the watch and no other call. One connection of gRPC carries all calls,
// so a load balancer that answers pings itself can cause this.
func (s *etcdStore) silence() (silenced int) {
	for _, line := range s.calls {
		silenced += line.Silence("/etcdserverpb.Watch/Watch")
	}
	return silenced
}

// slow limits each line. The bytes of several members do not add up to one limit.
func (s *etcdStore) slow(bytesPerSecond int) {
	for _, line := range s.lines {
		line.Slow(bytesPerSecond)
	}
}

// rolling stops members in the order in which they were started.
func (s *etcdStore) rolling() (out []Member) {
	for _, m := range s.members {
		out = append(out, Member{Stop: m.Stop, Start: m.Start})
	}
	return out
}

// connect makes a client with direct connections to the members.
func (s *etcdStore) connect(cfg clientv3.Config) *clientv3.Client {
	s.Helper()
	for _, m := range s.members {
		cfg.Endpoints = append(cfg.Endpoints, m.Endpoint)
	}
	if s.certs != nil {
		cfg.TLS = clientTLS(s.TB, s.certs)
	}
	cfg.Logger = zap.NewNop()
	client, err := clientv3.New(cfg)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { client.Close() })
	return client
}

// write makes one transaction of the changes, which readers see as one revision.
func (s *etcdStore) write(ctx context.Context, changes ...history.Change) error {
	var ops []clientv3.Op
	for _, c := range changes {
		if c.Text == "" {
			ops = append(ops, clientv3.OpDelete(KeyOf(c.Key)))
		} else {
			ops = append(ops, clientv3.OpPut(KeyOf(c.Key), string(ValueOf(c.Key, c.Text))))
		}
	}
	_, err := s.client.Txn(ctx).Then(ops...).Commit()
	return err
}

// list reads linearizably, so it has every acknowledged write.
func (s *etcdStore) list(ctx context.Context) (map[string]string, error) {
	pairs, err := s.pairs(ctx)
	return textsOf(pairs), err
}

// pairs returns keys and values as the server has them, in one revision.
func (s *etcdStore) pairs(ctx context.Context) ([]kvdbsync.Pair, error) {
	answer, err := s.client.Get(ctx, Root, clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	pairs := make([]kvdbsync.Pair, len(answer.Kvs))
	for i, kv := range answer.Kvs {
		pairs[i] = kvdbsync.Pair{Key: string(kv.Key), Value: kv.Value}
	}
	return pairs, nil
}

// each calls do for one member after the other.
func (s *etcdStore) each(do func(*testkit.Etcd)) {
	for _, m := range s.members {
		do(m)
	}
}

// set changes the mode of all lines, so the agent cannot go to another member.
func (s *etcdStore) set(m testkit.Mode) {
	for _, line := range s.lines {
		line.Set(m)
	}
}

// cut separates the agent from all members at once. The name is that of an Ability.
func (s *etcdStore) cut(how string) {
	s.set(map[string]testkit.Mode{"drop": testkit.Drop, "reset": testkit.Reset, "silent": testkit.BlackHole}[how])
}

// kill ends all members by SIGKILL.
func (s *etcdStore) kill() { s.each((*testkit.Etcd).Kill) }

// wipe removes the data folders of stopped members.
func (s *etcdStore) wipe() { s.each((*testkit.Etcd).Wipe) }

// start starts the members together: a member alone would wait for a quorum.
func (s *etcdStore) start() {
	s.Helper()
	testkit.StartAll(s.TB, s.members)
}

// rotate restarts the members with other certificates, and connects the test's client with
// its new one.
func (s *etcdStore) rotate() {
	s.Helper()
	s.kill()
	rotateCertificates(s.TB, s.certs)
	s.start()
	s.client = s.connect(clientv3.Config{})
}

// compact discards all revisions before the present one, so a watch that continues from an
// older one fails.
func (s *etcdStore) compact() {
	s.Helper()
	now, err := s.client.Get(s.Context(), Root, clientv3.WithCountOnly(), clientv3.WithPrefix())
	if err == nil {
		_, err = s.client.Compact(s.Context(), now.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err != nil {
		s.Fatal(err)
	}
}

// save copies the data folders of stopped members: a copy of an open database is torn.
func (s *etcdStore) save() {
	s.Helper()
	s.each((*testkit.Etcd).Stop)
	s.copies = nil
	for _, m := range s.members {
		to := s.TempDir()
		copyTree(s.TB, to, m.Data)
		s.copies = append(s.copies, to)
	}
	s.start()
}

// restore brings back the copies with their older revisions, as an operator does who
// replaces the folder. The revision of the cluster goes back by that.
func (s *etcdStore) restore() {
	s.Helper()
	s.kill()
	s.wipe()
	for i, m := range s.members {
		copyTree(s.TB, m.Data, s.copies[i])
	}
	s.start()
}

// must fails the test if the last of several results is an error.
func (s *etcdStore) must(_ any, err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// makeUsers lets "agent" read below Root, and makes the test's client the administrator.
func (s *etcdStore) makeUsers() {
	ctx := s.Context()
	s.must(s.client.UserAdd(ctx, "root", "admin"))
	s.must(s.client.UserGrantRole(ctx, "root", "root"))
	s.must(s.client.RoleAdd(ctx, "reader"))
	s.must(s.client.RoleGrantPermission(ctx, "reader", Root, clientv3.GetPrefixRangeEnd(Root), clientv3.PermissionType(clientv3.PermRead)))
	s.grant()
	s.must(s.client.AuthEnable(ctx))
	s.client = s.connect(clientv3.Config{Username: "root", Password: "admin", DialTimeout: testkit.Patience})
}

// grant makes the user with the right to read; writing is the administrator's.
func (s *etcdStore) grant() {
	s.must(s.client.UserAdd(s.Context(), "agent", "secret"))
	s.must(s.client.UserGrantRole(s.Context(), "agent", "reader"))
}

// revoke deletes the user. A watch that was allowed before goes on: see fault_access.go.
func (s *etcdStore) revoke() { s.must(s.client.UserDelete(s.Context(), "agent")) }

// leader returns the index of the leader.
func (s *etcdStore) leader() int {
	s.Helper()
	for {
		for i, m := range s.members {
			ctx, cancel := context.WithTimeout(s.Context(), 10*time.Second)
			status, err := s.client.Status(ctx, m.Endpoint)
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				return i
			}
		}
		if err := s.Context().Err(); err != nil {
			s.Fatal(err)
		}
	}
}

// moveLeader repeats the request until a leader has accepted it. Only the leader can hand
// over the lead, and it may have changed since the question.
func (s *etcdStore) moveLeader() {
	s.Helper()
	for {
		from := s.leader()
		to, err := s.client.Status(s.Context(), s.members[(from+1)%len(s.members)].Endpoint)
		if err != nil {
			s.Fatal(err)
		}
		// The client must talk to the leader itself: other members refuse the request.
		direct := s.connect(clientv3.Config{})
		direct.SetEndpoints(s.members[from].Endpoint)
		_, err = direct.MoveLeader(s.Context(), to.Header.MemberId)
		if err == nil {
			return
		}
		s.Log("moving the leader: ", err) // the member may have lost the lead in between
	}
}

// loseLeader kills the leader. The other two members elect one of them.
func (s *etcdStore) loseLeader() (back func()) {
	s.Helper()
	leader := s.members[s.leader()]
	leader.Kill()
	return leader.Start
}
