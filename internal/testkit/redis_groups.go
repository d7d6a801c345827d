package testkit

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// RedisGroup is a master, a replica, and the Sentinels that monitor them.
type RedisGroup struct {
	Master, Replica *Redis // their initial roles
	Sentinels       []*Redis
}

// SentinelMaster is the name of the master of a RedisGroup in its Sentinels.
const SentinelMaster = "network"

// StartRedisGroup starts a master, its replica and three Sentinels. They fail over when
// the master is silent for half a second, or for 30 seconds if they reach it through a
// proxy.
func StartRedisGroup(t testing.TB, o RedisOptions) *RedisGroup {
	t.Helper()
	g := &RedisGroup{Master: StartRedis(t, o)}
	told := g.Master.Addr
	if o.Told != nil {
		told = o.Told(told)
	}
	host, port, _ := net.SplitHostPort(told)
	g.Replica = StartRedis(t, RedisOptions{TLS: o.TLS, Args: append([]string{
		"--replicaof", host, port, "--repl-diskless-sync-delay", "0",
	}, o.Args...)})
	g.Replica.awaitSaid("master_link_status:up", "INFO", "replication")
	for range 3 {
		g.Sentinels = append(g.Sentinels, startSentinel(t, host, port, o))
	}
	for _, s := range g.Sentinels {
		s.awaitSaid("num-other-sentinels\n2\n", "SENTINEL", "MASTER", SentinelMaster)
		s.awaitSaid("num-slaves\n1\n", "SENTINEL", "MASTER", SentinelMaster)
	}
	g.publishEvery(publishPeriod)
	return g
}

// publishPeriod is how often, in ms, a Sentinel tells the others what it knows. A replica that
// takes over must be known to all Sentinels within four times this period, or is put back.
const publishPeriod = "2000"

// findPeriod is the same while nothing can be put back.
const findPeriod = "100"

// FailOver has the Sentinels make the other node the master, without loss. It returns when the
// node that was the master, which must run, follows the new one. It is for groups without lines.
func (g *RedisGroup) FailOver() {
	first := g.Sentinels[0]
	first.t.Helper()
	was, other := g.Master, g.Replica
	if said := strings.ReplaceAll(first.RedisCLI(askMaster...), "\r", ""); !strings.Contains(said, lineOfPort(was)) {
		was, other = other, was
	}
	for range failoverTries {
		first.awaitSaid("OK\n", "SENTINEL", "FAILOVER", SentinelMaster) // not while it knows too little of the replica
		if _, moved := first.saysWithin(2*failoverTimeout, lineOfPort(other), askMaster...); moved {
			break
		}
	}
	for _, s := range g.Sentinels {
		s.awaitSaid(lineOfPort(other), askMaster...)
	}
	g.publishEvery(findPeriod) // else the Sentinels leave the old master alone for four long periods
	was.awaitSaid("master_link_status:up", "INFO", "replication")
	g.publishEvery(publishPeriod)
}

// A Sentinel gives a failover up after failoverTimeout, as on a busy machine, and does not repeat
// one that it was asked for.
const (
	failoverTimeout = 3 * time.Second
	failoverTries   = 10
)

// askMaster is the question to a Sentinel; the answer is an address and a port.
var askMaster = []string{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", SentinelMaster}

// lineOfPort is the line of the answer to askMaster that names the port of r.
func lineOfPort(r *Redis) string {
	_, port, _ := net.SplitHostPort(r.Addr)
	return "\n" + port + "\n"
}

// publishEvery sets how often, in ms, the Sentinels tell each other what they know.
func (g *RedisGroup) publishEvery(ms string) {
	for _, s := range g.Sentinels {
		s.publishEvery(ms)
	}
}

// startSentinel starts a Redis server as a Sentinel, which keeps what it knows in
// its configuration file.
func startSentinel(t testing.TB, host, port string, o RedisOptions) *Redis {
	t.Helper()
	certs, patience, infoPeriod := o.TLS, "500", "100"
	if o.Told != nil { // the line may be slow
		patience, infoPeriod = "30000", "1000"
	}
	own := strconv.Itoa(freePorts(t, 1)[0])
	s := &Redis{Addr: net.JoinHostPort("127.0.0.1", own), Data: t.TempDir(), certs: certs}
	file := filepath.Join(s.Data, "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor %s %s %s 2\nsentinel down-after-milliseconds %[1]s %[4]s\nsentinel failover-timeout %[1]s %[5]d\n",
		SentinelMaster, host, port, patience, failoverTimeout.Milliseconds())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatalf("configuration of a Sentinel: %v", err)
	}
	args := append([]string{file, "--sentinel", "--dir", s.Data}, redisListens(own, certs)...)
	s.process = &process{t: t, path: redisProgram(t, "redis-server"), args: args, ready: s.answers}
	t.Cleanup(s.Kill)
	s.Start()
	s.publishEvery(findPeriod) // by which they find each other
	s.RedisCLI("SENTINEL", "DEBUG", "INFO-PERIOD", infoPeriod)
	return s
}

// publishEvery sets the interval, in ms, in which a Sentinel publishes its state to the
// others.
func (r *Redis) publishEvery(ms string) { r.RedisCLI("SENTINEL", "DEBUG", "PUBLISH-PERIOD", ms) }

// StartRedisCluster starts a Cluster of masters that share all slots.
func StartRedisCluster(t testing.TB, masters int, o RedisOptions) []*Redis {
	t.Helper()
	var nodes []*Redis
	for i := range masters {
		n := StartRedisNode(t, o)
		n.RedisCLI("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		n.RedisCLI("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*clusterSlots/masters), strconv.Itoa((i+1)*clusterSlots/masters-1))
		nodes = append(nodes, n)
	}
	for _, n := range nodes[1:] {
		host, port, _ := net.SplitHostPort(n.Addr)
		nodes[0].RedisCLI("CLUSTER", "MEET", host, port, n.bus)
	}
	for _, n := range nodes {
		n.awaitSaid(fmt.Sprintf("cluster_slots_ok:%d\n", clusterSlots), "CLUSTER", "INFO")
		n.awaitSaid("cluster_state:ok", "CLUSTER", "INFO")
	}
	return nodes
}

// Announce makes a node of a Cluster announce addr, a proxy on the same host, to clients
// and to the other nodes.
func (r *Redis) Announce(all []*Redis, addr string) {
	r.t.Helper()
	_, port, _ := net.SplitHostPort(addr)
	r.RedisCLI("CONFIG", "SET", "cluster-announce-port", port)
	for _, n := range all {
		n.awaitSaid(":"+port+"@", "CLUSTER", "NODES")
	}
}

// clusterSlots is the number of slots of a Cluster.
const clusterSlots = 16384

// StartRedisNode starts a server that can join a Cluster.
func StartRedisNode(t testing.TB, o RedisOptions) *Redis {
	t.Helper()
	bus := strconv.Itoa(freePorts(t, 1)[0]) // the usual port + 10000 may not exist
	o.Args = append([]string{
		"--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "1000",
		"--repl-diskless-sync-delay", "0",
	}, o.Args...)
	r := StartRedis(t, o)
	r.bus = bus
	return r
}

// JoinCluster adds a node of StartRedisNode to the Cluster of member: as a master without
// slots, or as a replica of the master with the given ID.
func (r *Redis) JoinCluster(member *Redis, replicaOf string) {
	r.t.Helper()
	args := []string{"--cluster", "add-node", r.Addr, member.Addr}
	if replicaOf != "" {
		args = append(args, "--cluster-slave", "--cluster-master-id", replicaOf)
	}
	member.RedisCLI(args...)
	id := r.ClusterID()
	member.awaitSaid(id, "CLUSTER", "NODES")
	r.awaitSaid("cluster_state:ok", "CLUSTER", "INFO")
	if replicaOf != "" {
		r.awaitSaid("master_link_status:up", "INFO", "replication")
	}
}

// ClusterID returns the ID of a node in its Cluster.
func (r *Redis) ClusterID() string {
	r.t.Helper()
	return strings.TrimSpace(r.RedisCLI("CLUSTER", "MYID"))
}

// awaitSaid polls until redis-cli prints a text.
func (r *Redis) awaitSaid(text string, args ...string) {
	r.t.Helper()
	if said, ok := r.saysWithin(Patience, text, args...); !ok {
		r.t.Fatalf("redis-cli %s on %s does not say %q, but\n%s", strings.Join(args, " "), r.Addr, text, said)
	}
}

// saysWithin polls for a time until redis-cli prints a text, and returns the last output. A call
// that fails is repeated: a server that is given another role resets its connections.
func (r *Redis) saysWithin(limit time.Duration, text string, args ...string) (said string, ok bool) {
	r.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(limit); ; {
		out, err := r.redisCLI(args...)
		said = strings.ReplaceAll(out, "\r", "")
		if err == nil && strings.Contains(said, text) {
			return said, true
		}
		select {
		case <-tick.C:
		case <-late:
			return said, false
		}
	}
}
