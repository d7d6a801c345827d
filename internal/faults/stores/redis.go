package stores

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

const (
	redisCan         = Servers | Emptied | Copies | CutDrop | CutReset | CutSilent | Users | Certificates | Garbage | Many | Children | OneSilent | SlowLine | Evicting
	redisSentinelCan = Many | CutDrop | Leaders | LeaderLoss | Rolling | Garbage | Children | OneSilent | SlowLine | Evicting
	redisClusterCan  = Many | Servers | CutDrop | Resharding | Garbage | Children | OneSilent | SlowLine | Evicting
)

// connectRedis makes a connector from the JSON of a redis.Config.
func connectRedis(config json.RawMessage) (kvdbsync.Connector, error) {
	var cfg redis.Config
	err := json.Unmarshal(config, &cfg)
	return redis.New(cfg, slog.New(slog.DiscardHandler)), err
}

// A redisStore is one server, a group with Sentinels, or a Cluster.
type redisStore struct {
	testing.TB
	nodes    []*testkit.Redis // the nodes with data
	line     *testkit.Proxy   // to a single server
	lines    []*testkit.Proxy // to a single server for all clients, or to one of several masters
	group    *testkit.RedisGroup
	certs    *testkit.Certificates
	client   goredis.UniversalClient
	replicas int // number of replicas that must confirm a write
	copy     string
}

// openRedis starts one server. The agent reaches it by a line that can be cut; the test's
// client has a connection of its own.
func openRedis(t testing.TB, extra Ability) *Store {
	s := &redisStore{TB: t}
	if extra&Certificates != 0 {
		s.certs = testkit.MakeCertificates(t)
	}
	node := testkit.StartRedis(t, testkit.RedisOptions{TLS: s.certs})
	s.nodes = []*testkit.Redis{node}
	s.line = s.lineTo(node.Addr)
	cfg := redis.Config{Endpoint: s.line.Addr}
	if s.certs != nil {
		cfg.TLS = redis.TLS{Enabled: true, CAFile: s.certs.CA, CertFile: s.certs.Client.Cert, KeyFile: s.certs.Client.Key}
	}
	s.reconnect()
	if extra&Users != 0 {
		cfg.Username, cfg.Password = "agent", "secret"
		s.grant()
	}
	out := s.store(cfg)
	out.Cut = func(how string) {
		s.line.Set(map[string]testkit.Mode{"drop": testkit.Drop, "reset": testkit.Reset, "silent": testkit.BlackHole}[how])
	}
	out.Heal = func() { s.line.Set(testkit.Pass) }
	return out
}

// openRedisSentinel starts a master with a replica, and the Sentinels that watch them.
func openRedisSentinel(t testing.TB, extra Ability) *Store {
	s := &redisStore{TB: t, replicas: 1}
	var o testkit.RedisOptions
	if extra&(OneSilent|SlowLine) != 0 {
		o.Told = func(addr string) string { return s.lineTo(addr).Addr }
	}
	g := testkit.StartRedisGroup(t, o)
	s.group, s.nodes = g, []*testkit.Redis{g.Master, g.Replica}
	cfg := redis.Config{MasterName: testkit.SentinelMaster, Username: "agent", Password: "secret", ReadTimeout: time.Second, DialTimeout: time.Second}
	for _, one := range g.Sentinels {
		cfg.Endpoints = append(cfg.Endpoints, one.Addr)
	}
	s.client = goredis.NewFailoverClient(&goredis.FailoverOptions{MasterName: testkit.SentinelMaster, SentinelAddrs: cfg.Endpoints})
	t.Cleanup(func() { s.client.Close() })
	s.grant()
	return s.store(cfg)
}

// openRedisCluster starts three masters. A write of several keys is atomic only within one
// slot, so names have homes, and a home is a hash tag: see Run.home.
func openRedisCluster(t testing.TB, extra Ability) *Store {
	s := &redisStore{TB: t, nodes: testkit.StartRedisCluster(t, 3, testkit.RedisOptions{})}
	cfg := redis.Config{Username: "agent", Password: "secret", ReadTimeout: time.Second, DialTimeout: time.Second}
	for _, n := range s.nodes {
		told := n.Addr
		if extra&(OneSilent|SlowLine) != 0 {
			told = s.lineTo(n.Addr).Addr
			n.Announce(s.nodes, told)
		}
		cfg.Endpoints = append(cfg.Endpoints, told)
	}
	s.client = goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: cfg.Endpoints})
	t.Cleanup(func() { s.client.Close() })
	s.grant()
	out := s.store(cfg)
	out.Homes = 8
	out.Reshard = s.reshard
	return out
}

// store returns the Store. Cut and Heal of a single server are replaced by openRedis,
// where a line can be cut.
func (s *redisStore) store(cfg redis.Config) *Store {
	return &Store{
		Config: cfg, Connector: redis.New(cfg, slog.New(slog.DiscardHandler)),
		Write: s.write, List: s.list, AtOnce: 100, MaxValue: 4 << 20, MaxName: 3 << 10,
		Kill: func() { s.each((*testkit.Redis).Kill) }, Start: s.start, Wipe: func() { s.each((*testkit.Redis).Wipe) },
		Pause:    func() { s.each((*testkit.Redis).Pause) },
		Continue: func() { s.each((*testkit.Redis).Continue) },
		Cut:      func(string) { s.shutOut() }, Heal: s.grant,
		Save: s.save, Restore: s.restore, Revoke: s.revoke, Grant: s.grant, Rotate: s.rotate,
		MoveLeader: s.moveLeader, LoseLeader: s.loseLeader,
		Silence: s.silence, Slow: s.slow, Evict: s.evict, Members: s.rolling(),
	}
}

// lineTo makes a line to a server.
func (s *redisStore) lineTo(addr string) *testkit.Proxy {
	s.Helper()
	line := testkit.StartProxy(s.TB, addr)
	s.lines = append(s.lines, line)
	return line
}

// silence silences the connection by which one master sends notifications.
func (s *redisStore) silence() int {
	for _, line := range s.lines {
		if n := line.Silence("tracking") + line.Silence("TRACKING"); n > 0 {
			return n
		}
	}
	return 0
}

// slow limits each line, in bytes per second.
func (s *redisStore) slow(bytesPerSecond int) {
	for _, line := range s.lines {
		line.Slow(bytesPerSecond)
	}
}

// evict makes each master drop all keys. A server checks its memory at each command.
func (s *redisStore) evict() {
	s.Helper()
	s.everywhere("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
	s.everywhere("CONFIG", "SET", "maxmemory", "1")
	s.until("no key is left", func() bool {
		left, err := s.list(s.Context())
		return err == nil && len(left) == 0
	})
	s.everywhere("CONFIG", "SET", "maxmemory", "0")
}

// rolling makes another node the master before the master stops.
func (s *redisStore) rolling() (out []Member) {
	if s.group == nil {
		return nil
	}
	for _, n := range s.nodes {
		stop := func() {
			if s.leader() == n {
				s.moveLeader()
			}
			s.replicas = 0
			n.Kill() // the node follows another one now and has no data of its own
		}
		start := func() {
			n.Start()
			s.grant()
			n.RedisCLI(append([]string{"REPLICAOF"}, strings.Split(s.leader().Addr, ":")...)...) // as in its own configuration
			s.until("it follows", func() bool { return strings.Contains(n.RedisCLI("INFO", "replication"), "master_link_status:up") })
			s.replicas = 1
		}
		out = append(out, Member{Stop: stop, Start: start})
	}
	return out
}

// each calls do for one node after the other.
func (s *redisStore) each(do func(*testkit.Redis)) {
	for _, n := range s.nodes {
		do(n)
	}
}

// everywhere runs a command on each node.
func (s *redisStore) everywhere(command ...string) {
	s.each(func(n *testkit.Redis) { n.RedisCLI(command...) })
}

// reconnect makes a client of a single server.
func (s *redisStore) reconnect() {
	s.Helper()
	o := goredis.Options{Addr: s.nodes[0].Addr, ReadTimeout: 10 * time.Second}
	if s.certs != nil {
		o.TLSConfig = clientTLS(s.TB, s.certs)
	}
	client := goredis.NewClient(&o)
	s.Cleanup(func() { client.Close() })
	s.client = client
}

// write makes one MULTI transaction. With replicas it waits (WAIT) until one has the
// write: Redis acknowledges before it replicates, and a failover would lose an
// acknowledged write.
func (s *redisStore) write(ctx context.Context, changes ...history.Change) error {
	_, err := s.client.TxPipelined(ctx, func(pipe goredis.Pipeliner) error {
		for _, c := range changes {
			if c.Text == "" {
				pipe.Del(ctx, KeyOf(c.Key))
			} else {
				pipe.Set(ctx, KeyOf(c.Key), ValueOf(c.Key, c.Text), 0)
			}
		}
		return nil
	})
	if err != nil || s.replicas == 0 {
		return err
	}
	have, err := s.client.Do(ctx, "WAIT", s.replicas, 1000).Int()
	if err == nil && have < s.replicas {
		err = errNotReplicated
	}
	return err
}

// errNotReplicated is the error of a write that a failover could lose.
var errNotReplicated = errors.New("no replica has it yet")

// list asks each node of a Cluster by itself; a redirect would only name one of them.
func (s *redisStore) list(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	cluster, ok := s.client.(*goredis.ClusterClient)
	if !ok {
		return out, scan(ctx, s.client, out)
	}
	for _, n := range s.nodes {
		if err := scan(ctx, goredis.NewClient(&goredis.Options{Addr: n.Addr}), out); err != nil {
			return nil, err
		}
	}
	return out, cluster.Ping(ctx).Err()
}

// scan adds the keys of one server.
func scan(ctx context.Context, c goredis.UniversalClient, out map[string]string) error {
	for cursor := uint64(0); ; {
		keys, next, err := c.Scan(ctx, cursor, Root+"*", 1000).Result()
		if err != nil {
			return err
		}
		values, err := c.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
			for _, key := range keys {
				pipe.Get(ctx, key)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for i, v := range values {
			out[NameOf(keys[i])] = TextOf([]byte(v.(*goredis.StringCmd).Val()))
		}
		cursor = next
		if cursor == 0 {
			return nil
		}
	}
}

// start starts all nodes and makes the users again, which a restart loses.
func (s *redisStore) start() {
	s.each((*testkit.Redis).Start)
	if len(s.nodes) > 1 {
		s.grant()
	}
}

// save copies the data of the stopped server: a copy of a file that is being appended to
// could end within a command.
func (s *redisStore) save() {
	s.nodes[0].Stop()
	s.copy = s.TempDir()
	copyTree(s.TB, s.copy, s.nodes[0].Data)
	s.nodes[0].Start()
}

// restore kills the server, so that it does not write its present data over the copy.
func (s *redisStore) restore() {
	s.nodes[0].Kill()
	s.nodes[0].Wipe()
	copyTree(s.TB, s.nodes[0].Data, s.copy)
	s.nodes[0].Start()
}

// rotate restarts the server with other certificates, and the test's client with them.
func (s *redisStore) rotate() {
	s.nodes[0].Kill()
	rotateCertificates(s.TB, s.certs)
	s.nodes[0].Start()
	s.reconnect()
}

// grant makes the user, or enables it again. It runs again after each restart: users that
// are set by a command are not saved.
func (s *redisStore) grant() {
	s.everywhere("ACL", "SETUSER", "agent", "on", ">secret", "~*", "&*", "+@all")
}

// revoke deletes the user. Redis also closes its connections then.
func (s *redisStore) revoke() { s.everywhere("ACL", "DELUSER", "agent") }

// shutOut separates the agent from all nodes. The agent learns their addresses from the
// nodes, so lines cannot do that.
func (s *redisStore) shutOut() {
	s.everywhere("ACL", "SETUSER", "agent", "off")
	s.everywhere("CLIENT", "KILL", "USER", "agent")
}

// leader returns the master, by the first Sentinel that answers.
func (s *redisStore) leader() *testkit.Redis {
	s.Helper()
	said := strings.Fields(s.group.Sentinels[0].RedisCLI("SENTINEL", "GET-MASTER-ADDR-BY-NAME", testkit.SentinelMaster))
	for _, n := range s.nodes {
		if n.Addr == strings.Join(said, ":") {
			return n
		}
	}
	s.Fatalf("the master is at %v", said)
	return nil
}

// moveLeader asks a Sentinel for a failover while the master still works.
func (s *redisStore) moveLeader() { s.group.FailOver() }

// loseLeader kills the master and waits for the election. Writes then wait for no replica,
// because the only other node is the new master.
func (s *redisStore) loseLeader() (back func()) {
	s.Helper()
	was := s.leader()
	was.Kill()
	s.replicas = 0
	s.until("another master", func() bool { return s.leader() != was })
	return func() {
		was.Start()
		s.grant() // a restart loses the agent's user, and the node may become the master again
	}
}

// until polls ok for at most a minute.
func (s *redisStore) until(what string, ok func() bool) {
	s.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(testkit.Patience); !ok(); <-tick.C {
		if time.Now().After(late) {
			s.Fatalf("waiting for %s", what)
		}
	}
}

// reshard moves slots of each master to a new one.
func (s *redisStore) reshard() {
	s.Helper()
	node := testkit.StartRedisNode(s.TB, testkit.RedisOptions{})
	node.JoinCluster(s.nodes[0], "")
	node.RedisCLI("ACL", "SETUSER", "agent", "on", ">secret", "~*", "&*", "+@all")
	for _, from := range s.nodes {
		s.nodes[0].RedisCLI("--cluster", "reshard", s.nodes[0].Addr, "--cluster-from", from.ClusterID(),
			"--cluster-to", node.ClusterID(), "--cluster-slots", "2000", "--cluster-yes")
	}
	s.nodes = append(s.nodes, node)
}
