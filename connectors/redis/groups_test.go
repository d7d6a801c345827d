package redis_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// sentinelConfig has a limit that is long for a busy machine, and short for a master that hangs.
func sentinelConfig(g *testkit.RedisGroup) redis.Config {
	cfg := redis.Config{MasterName: testkit.SentinelMaster, ReadTimeout: 10 * time.Second, DialTimeout: 10 * time.Second}
	for _, s := range g.Sentinels {
		cfg.Endpoints = append(cfg.Endpoints, s.Addr)
	}
	return cfg
}

// The watch moves to the new master, whether the old one died or only lost touch,
// and whatever happened meanwhile is made up.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testkit.Redis){
		"master dies":  (*testkit.Redis).Kill,
		"master hangs": (*testkit.Redis).Pause,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := testkit.StartRedisGroup(t, testkit.RedisOptions{})
			old := bareClient(t, g.Master.Addr)
			m := follow(t, redis.New(sentinelConfig(g), discard()))
			for _, key := range []string{"a", "b"} {
				if err := old.Set(t.Context(), root+key, "1", 0).Err(); err != nil {
					t.Fatal(err)
				}
			}
			m.Await("a", "1", "b", "1")
			if n := old.Do(t.Context(), "WAIT", 1, 10_000).Val(); n != int64(1) {
				t.Fatalf("%v replicas have it", n)
			}
			g.Sentinels[0].Kill() // two are enough
			lose(g.Master)
			client := dial(t, sentinelConfig(g))
			retry(t, func() error { return client.Put(t.Context(), root+"a", []byte("2")) })
			if existed, err := client.Delete(t.Context(), root+"b"); !existed || err != nil {
				t.Fatalf("%v, %v", existed, err)
			}
			m.Await("a", "2")
			if err := client.Put(t.Context(), root+"c", []byte("1")); err != nil {
				t.Fatal(err)
			}
			m.Await("a", "2", "c", "1")
		})
	}
}

// A failover by command kills nothing: only the Sentinels say so.
func TestSentinelFailoverByCommand(t *testing.T) {
	t.Parallel()
	g := testkit.StartRedisGroup(t, testkit.RedisOptions{})
	expectUnknownMaster(t, sentinelConfig(g))
	old := bareClient(t, g.Master.Addr)
	replica := goredis.NewClient(&goredis.Options{Addr: g.Replica.Addr, MaxRetries: -1}) // it says at once that it is a replica
	t.Cleanup(func() { replica.Close() })
	m := follow(t, redis.New(sentinelConfig(g), discard()))
	if err := old.Set(t.Context(), root+"a", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	m.Await("a", "1")
	retry(t, func() error {
		err := replica.Set(t.Context(), root+"a", "2", 0).Err()
		if err != nil { // also where the Sentinels would not, or have thought better of it
			g.Sentinels[0].RedisCLI("SENTINEL", "FAILOVER", testkit.SentinelMaster)
		}
		return err
	})
	m.Await("a", "2")
}

// A replica that becomes a master has the data that its master had.
func TestAPromotedReplicaIsTheSameStore(t *testing.T) {
	t.Parallel()
	g := testkit.StartRedisGroup(t, testkit.RedisOptions{})
	c := redis.New(redis.Config{ReadTimeout: testkit.Patience, Endpoint: g.Replica.Addr}, discard())
	before := conformance.ListingOf(t, c, root)
	if before.Identity == "" {
		t.Error("a replica does not say whose data it has")
	}
	if err := bareClient(t, g.Replica.Addr).ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	after := conformance.ListingOf(t, c, root)
	if err := after.Succeeds(before); err != nil || after.Identity == before.Identity {
		t.Errorf("%+v after %+v: %v; want another replication ID that names the one before", after, before, err)
	}
	g.Replica.Kill()
	g.Replica.Wipe()
	g.Replica.Start()
	if err := conformance.ListingOf(t, c, root).Succeeds(after); !errors.Is(err, kvdbsync.ErrOtherStore) {
		t.Errorf("after it lost its data: %v", err)
	}
}

func expectUnknownMaster(t *testing.T, cfg redis.Config) {
	t.Helper()
	cfg.MasterName = "nobody"
	for b, err := range redis.New(cfg, discard()).Watch(t.Context(), root) {
		if err == nil || !strings.Contains(err.Error(), "who is master nobody") || !strings.Contains(err.Error(), "No such master") {
			t.Errorf("%+v, %v", b, err)
		}
	}
}

// retry does again and again what fails while servers change their parts.
func retry(t *testing.T, do func() error) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(testkit.Patience)
	for err := do(); err != nil; err = do() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("still after %v: %v", testkit.Patience, err)
		}
	}
}

// A cluster is three masters and a client that goes to all of them.
type cluster struct {
	life   *testing.T // of the nodes
	t      *testing.T // what fails
	nodes  []*testkit.Redis
	client *goredis.ClusterClient
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{life: t, t: t, nodes: testkit.StartRedisCluster(t, 3, testkit.RedisOptions{})}
	c.client = goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{c.nodes[0].Addr}, MaxRedirects: 3})
	t.Cleanup(func() { c.client.Close() })
	return c
}

// config has a limit that is long for a busy machine: no node hangs in these tests.
func (c *cluster) config() redis.Config {
	return redis.Config{Endpoints: []string{"127.0.0.1:1", c.nodes[1].Addr}, ReadTimeout: 10 * time.Second, DialTimeout: 10 * time.Second}
}

func (c *cluster) put(key, value string) {
	c.t.Helper()
	if err := c.client.Set(c.t.Context(), key, value, 0).Err(); err != nil {
		c.t.Fatalf("putting %s: %v", key, err)
	}
}

func (c *cluster) delete(key string) {
	c.t.Helper()
	if err := c.client.Del(c.t.Context(), key).Err(); err != nil {
		c.t.Fatalf("deleting %s: %v", key, err)
	}
}

// A replica that has lost its master would say that a lease is gone.
func leasesAskMasters(t *testing.T, c *cluster) {
	cfg := c.config()
	cfg.ReadReplicas, cfg.RouteByLatency = true, true
	s, err := redis.New(cfg, slog.New(slog.DiscardHandler)).Session(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	if redis.AsksReplicas(s) {
		t.Error("a session may ask replicas")
	}
}

// Each cluster goes through several tests one after the other, because it takes seconds to
// start. The nodes of the first cluster keep their slots; those of the second change them.
func TestCluster(t *testing.T) {
	t.Parallel()
	type test struct {
		name string
		run  func(*testing.T, *cluster)
	}
	for name, tests := range map[string][]test{
		"same slots": {
			{"conformance", clusterConformance},
			{"store", clusterStore},
			{"leases ask masters", leasesAskMasters},
			{"keys that have moved", movedKeys},
			{"one node of several", oneNode},
		},
		"other slots": {
			{"first slot of a master", firstSlot},
			{"reshard", reshard},
			{"fail over", failOver},
			{"slot that nobody serves", uncover},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startCluster(t)
			for _, test := range tests {
				t.Run(test.name, func(t *testing.T) { c.t = t; test.run(t, c) })
			}
		})
	}
}

// rights are those that the README asks for.
var rights = strings.Fields("+ping +hello +client|tracking +scan +mget +get +info +set +setnx +del +pexpire +pttl +multi +exec +watch +unwatch " +
	"+cluster|myid +cluster|nodes +cluster|slots +asking")

func clusterConformance(t *testing.T, c *cluster) {
	c.everywhere(append([]string{"ACL", "SETUSER", "agent", "on", ">secret", "~*", "resetchannels"}, rights...)...)
	cfg := c.config()
	cfg.Username, cfg.Password = "agent", "secret"
	spread := func(t *testing.T) conformance.Harness {
		connector := redis.New(cfg, discard())
		return conformance.Harness{
			Connector: connector,
			Prefix:    prefixOf(t),
			Put:       func(key string, value []byte) { c.put(key, string(value)) },
			Delete:    c.delete,
			ManyKeys:  1000,
			Cut:       func(during func()) { restore := c.shutOut(); during(); restore() },

			Publisher: connector,
			Get:       func(key string) []byte { return bareGet(t, c.client, key) },
			Sever:     c.shutOut,
			Revoke:    func() { c.delete(prefixOf(t) + "config-status/b"); c.delete(prefixOf(t) + "config-status/a") },
		}
	}
	t.Run("watch", func(t *testing.T) { conformance.RunWatch(t, spread) })
	t.Run("session", func(t *testing.T) { conformance.RunSession(t, spread) })
	t.Run("writer", func(t *testing.T) {
		client := dial(t, cfg)
		conformance.RunWriter(t, func(t *testing.T) conformance.Harness {
			h := spread(t)
			h.Prefix = "/{one slot}" + h.Prefix
			h.Writer = client
			return h
		})
	})
}

// clusterStore is a store that changes at once only what is in one slot.
func clusterStore(t *testing.T, c *cluster) {
	client := dial(t, c.config())
	testStore(t, client)
	apart := []kvdbsync.Pair{{Key: root + "a", Value: []byte("1")}, {Key: root + "b", Value: []byte("1")}}
	err := client.Apply(t.Context(), apart)
	if !errors.Is(err, kvdbsync.ErrTooLarge) || !strings.Contains(err.Error(), root+"a") || !strings.Contains(err.Error(), "hash tag") {
		t.Errorf("changes in two slots: %v", err)
	}
	if pairs, err := client.List(t.Context(), root); len(pairs) > 0 || err != nil {
		t.Errorf("some were made: %v, %v", pairs, err)
	}
}

// oneNode has only a part of the keys, so it is no single server. A server may refuse to name its mode in HELLO.
func oneNode(t *testing.T, c *cluster) {
	c.everywhere("ACL", "SETUSER", "old", "on", ">secret", "~*", "&*", "+@all", "-hello")
	for _, cfg := range []redis.Config{{}, {Username: "old", Password: "secret"}} {
		cfg.Endpoint = c.nodes[0].Addr
		err := follow(t, redis.New(cfg, discard())).AwaitLost(conformance.Any)
		if want := "is a node of a Cluster: write endpoints: [" + cfg.Endpoint + "]"; !strings.Contains(err.Error(), want) {
			t.Errorf("as %q: %v; want %s", cfg.Username, err, want)
		}
	}
}

// movedKeys asks a master for keys that it has not, among them some that nobody has.
func movedKeys(t *testing.T, c *cluster) {
	var keys []string
	for i := range 20 {
		keys = append(keys, fmt.Sprint(root, i))
		if i%4 > 0 {
			c.put(keys[i], keys[i])
			defer c.delete(keys[i])
		}
	}
	r, err := redis.FromNode(bareClient(t, c.nodes[0].Addr), c.client, kvdbsync.Bounds{}.WithDefaults())(t.Context(), keys)
	events, left := redis.Read(r)
	if err != nil || len(left) > 0 || len(events) != len(keys) {
		t.Fatalf("%d events, %d keys left, %v", len(events), len(left), err)
	}
	slices.SortFunc(events, func(a, b kvdbsync.Event) int { return strings.Compare(a.Key, b.Key) })
	slices.Sort(keys)
	for i, e := range events {
		want := keys[i]
		if n, _ := strconv.Atoi(strings.TrimPrefix(want, root)); n%4 == 0 {
			want = ""
		}
		if e.Key != keys[i] || string(e.Value) != want || (e.Value == nil) != (want == "") {
			t.Errorf("%+v, want %q", e, want)
		}
	}
}

// everywhere runs a command on each master.
func (c *cluster) everywhere(command ...string) {
	for _, n := range c.nodes {
		n.RedisCLI(command...)
	}
}

// shutOut keeps the agent from the cluster.
func (c *cluster) shutOut() (restore func()) {
	c.everywhere("ACL", "SETUSER", "agent", "off")
	c.everywhere("CLIENT", "KILL", "USER", "agent")
	return func() { c.everywhere("ACL", "SETUSER", "agent", "on") }
}

// firstSlot moves a key to a master that owns no slot yet. Until the slot follows, only the former owner
// sends clients there.
func firstSlot(t *testing.T, c *cluster) {
	key := root + "a"
	c.put(key, "before")
	m := follow(t, redis.New(c.config(), discard()))
	m.Await("a", "before")
	extra := testkit.StartRedisNode(c.life, testkit.RedisOptions{})
	extra.JoinCluster(c.nodes[0], "")
	slot := strings.TrimSpace(extra.RedisCLI("CLUSTER", "KEYSLOT", key))
	number, _ := strconv.Atoi(slot)
	owner := c.nodes[number*len(c.nodes)/16384]
	host, port, _ := net.SplitHostPort(extra.Addr)
	extra.RedisCLI("CLUSTER", "SETSLOT", slot, "IMPORTING", owner.ClusterID())
	owner.RedisCLI("CLUSTER", "SETSLOT", slot, "MIGRATING", extra.ClusterID())
	owner.RedisCLI("MIGRATE", host, port, key, "0", "10000")
	c.put(key, "while it moves")
	m.Until(func() bool { return m.Has["a"] == "while it moves" })

	late := follow(t, redis.New(c.config(), discard()))
	late.Until(func() bool { return late.Has["a"] == "while it moves" })
	client := dial(t, c.config())
	if pairs, err := client.List(t.Context(), root); len(pairs) != 1 || err != nil {
		t.Errorf("a list has %v, %v; want one key", pairs, err)
	}
	names, err := redis.New(c.config(), discard()).Beside(t.Context(), "/", nil)
	if len(names) != 1 || err != nil {
		t.Errorf("names: %v, %v", names, err)
	}
	c.delete(key)
	m.Await()
	late.Await()
	for _, node := range []*testkit.Redis{owner, extra} {
		node.RedisCLI("CLUSTER", "SETSLOT", slot, "STABLE")
	}
}

// reshard moves slots, with keys that change, to a master that comes to be.
func reshard(t *testing.T, c *cluster) {
	const keys = 300
	m := follow(t, redis.New(c.config(), discard()))
	for i := range keys {
		c.put(fmt.Sprintf("%s%03d", root, i), "before")
	}
	m.Until(func() bool { return allAre(m, keys, "before") })
	fourth := testkit.StartRedisNode(c.life, testkit.RedisOptions{})
	fourth.JoinCluster(c.nodes[0], "")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.keepPutting(ctx, keys) }()
	for _, from := range c.nodes {
		c.nodes[0].RedisCLI("--cluster", "reshard", c.nodes[0].Addr, "--cluster-from", from.ClusterID(),
			"--cluster-to", fourth.ClusterID(), "--cluster-slots", "300", "--cluster-yes", "--cluster-pipeline", "1")
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	m.Until(func() bool { return allAre(m, keys, "") })
	c.nodes = append(c.nodes, fourth)
	for i := range keys {
		c.put(fmt.Sprintf("%s%03d", root, i), "after")
	}
	m.Until(func() bool { return allAre(m, keys, "after") })
	for i := range keys {
		c.delete(fmt.Sprintf("%s%03d", root, i))
	}
	m.Await()
	if m.Gone != keys {
		t.Errorf("%d deletions seen, want only the %d there were", m.Gone, keys)
	}
}

// keepPutting changes keys over and over, and in the end sets all to "".
func (c *cluster) keepPutting(ctx context.Context, keys int) error {
	for i := 0; ctx.Err() == nil; i++ {
		if err := c.client.Set(c.t.Context(), fmt.Sprintf("%s%03d", root, i%keys), i, 0).Err(); err != nil {
			return err
		}
	}
	for i := range keys {
		if err := c.client.Set(c.t.Context(), fmt.Sprintf("%s%03d", root, i), "", 0).Err(); err != nil {
			return err
		}
	}
	return nil
}

// allAre tells whether the mirror holds so many keys, all with this value.
func allAre(m *conformance.Mirror, keys int, value string) bool {
	for _, has := range m.Has {
		if has != value {
			return false
		}
	}
	return len(m.Has) == keys
}

// failOver kills a master, whose replica takes over.
func failOver(t *testing.T, c *cluster) {
	const keys = 20
	client := dial(t, c.config())
	replica := testkit.StartRedisNode(c.life, testkit.RedisOptions{})
	replica.JoinCluster(c.nodes[0], c.nodes[2].ClusterID())
	m := follow(t, redis.New(c.config(), discard()))
	for i := range keys {
		c.put(fmt.Sprint(root, i), "1")
	}
	m.Until(func() bool { return allAre(m, keys, "1") })
	c.replicated(c.nodes[2], root+"2")
	c.nodes[2].Kill()
	for i := range keys {
		retry(t, func() error { return client.Put(t.Context(), fmt.Sprint(root, i), []byte("2")) })
	}
	m.Until(func() bool { return allAre(m, keys, "2") })
	if m.Gone != 0 {
		t.Errorf("%d deletions seen, but there were none", m.Gone)
	}
	c.nodes[2] = replica
}

// replicated returns when a replica of n has all that n has. Redis waits only for what
// was written on the connection that asks, which is why it writes a key of n once more.
func (c *cluster) replicated(n *testkit.Redis, key string) {
	c.t.Helper()
	conn := bareClient(c.t, n.Addr).Conn()
	defer conn.Close()
	value := conn.Get(c.t.Context(), key).Val()
	if err := conn.Set(c.t.Context(), key, value, 0).Err(); err != nil {
		c.t.Fatal(err)
	}
	if have, err := conn.Do(c.t.Context(), "WAIT", 1, 10_000).Int(); have != 1 || err != nil {
		c.t.Fatalf("%d replicas have it: %v", have, err)
	}
}

// uncover takes a slot away from everybody: no listing is complete then.
func uncover(t *testing.T, c *cluster) {
	for _, n := range c.nodes {
		n.RedisCLI("CONFIG", "SET", "cluster-require-full-coverage", "no")
		n.RedisCLI("CLUSTER", "DELSLOTS", "0")
	}
	for b, err := range redis.New(c.config(), discard()).Watch(t.Context(), root) {
		if !errors.Is(err, redis.ErrUncovered) {
			t.Errorf("%+v, %v", b, err)
		}
		return
	}
}
