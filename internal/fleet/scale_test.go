package fleet_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/fleet"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

// The size of the fleet. The defaults are those of make test; make fleet has the full ones.
var (
	agentsFlag = flag.Int("fleet.agents", 4, "number of agents")
	keysFlag   = flag.Int("fleet.keys", 10, "number of keys of each agent")
	restFlag   = flag.Duration("fleet.rest", time.Second, "for how long the servers are measured at rest")
	confFlag   = flag.String("fleet.conf", "", "a line that is added to the agents' configuration of the store")
	full       = flag.Bool("fleet.full", false, "fail if a bar of docs/scale.md is missed")
)

// The bars of docs/scale.md.
const (
	barConverged = 60 * time.Second // after any event
	barListings  = 2                // of one agent, for one event
)

const (
	// perProcess is the number of agents of a process. It leaves them 40 descriptors each, of the
	// 20,000 that many systems allow to a process.
	perProcess = 500
	// mostClients is the number of connections that a server of Consul or Redis accepts. An agent
	// has up to five to it.
	mostClients = 19_000
)

// A server is a process of a cluster.
type server interface {
	Usage() testkit.Usage
	Kill()
	Start()
}

// A cluster is what the agents share.
type cluster struct {
	store, conf string
	servers     []server
	client      interface {
		kvdbsync.Writer
		Close() error
	}
	leader  func(context.Context) server // of the present; a cluster without one: any server
	restart func()                       // starts all servers, which were killed
}

// clusters are the clusters that are measured.
func clusters() map[string]func(*testing.T) cluster {
	return map[string]func(*testing.T) cluster{
		"etcd":                     func(t *testing.T) cluster { return etcdCluster(t, 0) },
		"etcd, two grpc-proxies":   func(t *testing.T) cluster { return etcdCluster(t, 2) },
		"Consul, 3 servers":        consulCluster,
		"Redis Cluster, 3 masters": redisCluster,
	}
}

func etcdCluster(t *testing.T, proxies int) cluster {
	members := testkit.StartEtcdCluster(t, 3, testkit.EtcdOptions{Args: []string{"--heartbeat-interval=100", "--election-timeout=1000"}})
	var direct []string
	c := cluster{store: "etcd", restart: func() { testkit.StartAll(t, members) }}
	for _, m := range members {
		direct = append(direct, m.Addr)
		c.servers = append(c.servers, m)
	}
	client, err := etcd.Dial(t.Context(), etcd.Config{Endpoints: direct})
	c.client = client
	if err != nil {
		t.Fatal(err)
	}
	bare, err := clientv3.New(clientv3.Config{Endpoints: direct})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { bare.Close() })
	c.leader = func(ctx context.Context) server {
		for _, m := range members {
			st, err := bare.Status(ctx, m.Endpoint)
			if err == nil && st.Leader == st.Header.MemberId {
				return m
			}
		}
		return members[0]
	}
	through := direct
	if proxies > 0 {
		through = nil
	}
	for range proxies {
		p := testkit.StartEtcdProxy(t, members)
		c.servers = append(c.servers, p)
		through = append(through, p.Addr)
	}
	c.conf = "endpoints: [" + strings.Join(through, ", ") + "]\n"
	return c
}

func consulCluster(t *testing.T) cluster {
	c := cluster{store: "consul"}
	servers := testkit.StartConsulCluster(t, 3, testkit.ConsulOptions{Config: map[string]any{
		"limits": map[string]any{"http_max_conns_per_client": mostClients},
	}})
	for _, s := range servers {
		c.servers = append(c.servers, s)
	}
	client, err := consul.Dial(consul.Config{Address: servers[0].Addr})
	c.client = client
	if err != nil {
		t.Fatal(err)
	}
	c.conf = "address: " + servers[0].Addr + "\n"
	// The agents use one server, which stays.
	c.leader = func(context.Context) server { return servers[2] }
	c.restart = func() {
		var all sync.WaitGroup
		for _, s := range servers {
			all.Go(s.Start)
		}
		all.Wait()
	}
	return c
}

func redisCluster(t *testing.T) cluster {
	c := cluster{store: "redis"}
	nodes := testkit.StartRedisCluster(t, 3, testkit.RedisOptions{Args: []string{
		"--maxclients", strconv.Itoa(mostClients),
		"--cluster-node-timeout", "15000", // the default: a busy node is not a dead one
	}})
	var addrs []string
	for _, n := range nodes {
		c.servers = append(c.servers, n)
		addrs = append(addrs, n.Addr)
	}
	client, err := redis.Dial(t.Context(), redis.Config{Endpoints: addrs})
	c.client = client
	if err != nil {
		t.Fatal(err)
	}
	c.conf = "endpoints: [" + strings.Join(addrs, ", ") + "]\n"
	c.leader = func(context.Context) server { return nodes[2] }
	c.restart = func() {
		for _, n := range nodes {
			n.Start()
		}
	}
	return c
}

// A scene is a cluster with its agents.
type scene struct {
	cluster
	t      *testing.T
	state  string            // folder of the agents' state: an agent knows the lease of its earlier life by it
	homes  []*fleet.Process  // each has an equal share of the agents
	items  map[string]string // that each agent has; nil: no agent has ever run
	listed map[string]uint64 // how often each agent has listed its keys before the present event
}

// home returns the process of an agent.
func (s *scene) home(i int) *fleet.Process { return s.homes[i%len(s.homes)] }

// usage returns the sum over the servers.
func (s *scene) usage() (u testkit.Usage) {
	for _, one := range s.servers {
		its := one.Usage()
		u.CPU += its.CPU
		u.RSS += its.RSS
	}
	return u
}

// label returns the label of an agent. The labels of the test differ from those of others on
// this host: agents of one label exclude each other.
func (s *scene) label(i int) string { return fmt.Sprintf("scale-%s-%04d", s.store, i) }

// name returns the name of an item.
func name(k int) string { return fmt.Sprintf("item%03d", k) }

// each calls do for each agent, at most 16 at a time.
func (s *scene) each(do func(i int) error) {
	s.t.Helper()
	var all sync.WaitGroup
	slots := make(chan struct{}, 16)
	errs := make([]error, *agentsFlag)
	for i := range *agentsFlag {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = do(i)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		s.t.Fatal(err)
	}
}

// declareAll declares all items of all agents.
func (s *scene) declareAll(ctx context.Context) {
	s.t.Helper()
	s.each(func(i int) error {
		for k := range *keysFlag {
			if err := s.client.Put(ctx, fleet.Key(s.label(i), name(k)), fleet.Value(name(k), "0")); err != nil {
				return err
			}
		}
		return nil
	})
}

// startAll starts all agents at once in new processes, and waits until each has all items. Those of
// an earlier life are still there.
func (s *scene) startAll(ctx context.Context) {
	s.t.Helper()
	s.homes, s.listed = nil, nil
	for range max(2, (*agentsFlag+perProcess-1)/perProcess) {
		s.homes = append(s.homes, fleet.StartProcess(s.t))
	}
	o := fleet.Options{Store: s.store, Conf: s.conf + *confFlag, Orchestrator: "state-dir: " + s.state + "\n", Items: s.items}
	s.each(func(i int) error {
		o := o
		o.Label = s.label(i)
		return s.home(i).Start(o)
	})
	if s.items == nil {
		s.items = map[string]string{}
		for k := range *keysFlag {
			s.items[name(k)] = "0"
		}
	}
	s.each(func(i int) error { return s.home(i).Await(ctx, s.label(i), s.items) })
}

// stopAll stops all agents at once.
func (s *scene) stopAll() {
	s.t.Helper()
	var all errgroup.Group
	for _, p := range s.homes {
		all.Go(p.Stop)
	}
	if err := all.Wait(); err != nil {
		s.t.Fatal(err)
	}
}

// changeAll gives one item of each agent another text, and waits until all have it. A store that
// elects a leader refuses for a moment, so a put is repeated.
func (s *scene) changeAll(ctx context.Context, text string) {
	s.t.Helper()
	s.each(func(i int) error {
		for {
			err := s.client.Put(ctx, fleet.Key(s.label(i), name(0)), fleet.Value(name(0), text))
			if err == nil || ctx.Err() != nil {
				return err
			}
		}
	})
	s.each(func(i int) error { return s.home(i).AwaitItem(ctx, s.label(i), name(0), text) })
	s.items[name(0)] = text
}

// listings returns how often each agent has listed its keys.
func (s *scene) listings() map[string]uint64 {
	s.t.Helper()
	out := map[string]uint64{}
	for _, p := range s.homes {
		of, err := p.Listings()
		if err != nil {
			s.t.Fatal(err)
		}
		maps.Copy(out, of)
	}
	return out
}

// event does something to the fleet, waits until all agents have converged, and reports it.
func (s *scene) event(what string, do func(context.Context)) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*testkit.Patience)
	defer cancel()
	s.listed = s.listings()
	began := time.Now()
	do(ctx)
	took := time.Since(began)
	most := uint64(0)
	for label, n := range s.listings() {
		most = max(most, n-s.listed[label])
	}
	u := s.usage()
	s.t.Logf("| %s | %.1f s | %d | %d MB |", what, took.Seconds(), most, u.RSS>>20)
	if *full && (took > barConverged || most > barListings) {
		s.t.Errorf("%s: converged after %v, an agent listed %d times; expected at most %v and %d", what, took, most, barConverged, barListings)
	}
}

// latency changes single items of agents, one after the other, and returns the times from the
// put until the agent has applied it.
func (s *scene) latency(ctx context.Context, changes int) (times []time.Duration) {
	s.t.Helper()
	for n := range changes {
		i, text := n%*agentsFlag, fmt.Sprintf("single-%d", n)
		began := time.Now()
		if err := s.client.Put(ctx, fleet.Key(s.label(i), name(0)), fleet.Value(name(0), text)); err != nil {
			s.t.Fatal(err)
		}
		if err := s.home(i).AwaitItem(ctx, s.label(i), name(0), text); err != nil {
			s.t.Fatal(err)
		}
		times = append(times, time.Since(began))
	}
	slices.SortFunc(times, cmp.Compare[time.Duration])
	return times
}

// rest returns the share of a CPU that the servers use while nothing happens.
func (s *scene) rest() float64 {
	before := s.usage()
	<-time.After(*restFlag)
	return float64(s.usage().CPU-before.CPU) / float64(*restFlag)
}

// TestScale plays the life of a fleet on each kind of cluster.
func TestScale(t *testing.T) {
	for kind, open := range clusters() {
		t.Run(kind, func(t *testing.T) {
			s := &scene{cluster: open(t), t: t, state: t.TempDir()}
			t.Cleanup(func() { s.client.Close() })
			ctx, cancel := context.WithTimeout(t.Context(), 30*testkit.Patience)
			defer cancel()
			idle, empty := s.rest(), s.usage()
			t.Logf("%s: %d agents of %d keys; the empty servers have %d MB and use %.1f %% of a CPU", kind, *agentsFlag, *keysFlag, empty.RSS>>20, 100*idle)
			before := s.usage()
			s.declareAll(ctx)
			puts := s.usage()
			t.Logf("| a put | %.0f us of CPU |", float64((puts.CPU-before.CPU).Microseconds())/float64(*agentsFlag**keysFlag))
			s.event("all agents started", s.startAll)
			started := s.usage()
			t.Logf("| the start of an agent, its listing included | %.1f ms of CPU |", float64((started.CPU-puts.CPU).Microseconds())/1000/float64(*agentsFlag))
			thousands := float64(*agentsFlag) / 1000
			t.Logf("| at rest, per 1,000 agents | %.1f %% of a CPU | %.0f MB |", 100*(s.rest()-idle)/thousands, float64((started.RSS-puts.RSS)>>20)/thousands)
			times := s.latency(ctx, max(20, min(200, *agentsFlag)))
			t.Logf("| one key changed until it is applied | p50 %.1f ms | p99 %.1f ms |", ms(times[len(times)/2]), ms(times[len(times)*99/100]))
			before = s.usage()
			s.event("one key of each agent changed", func(ctx context.Context) { s.changeAll(ctx, "changed") })
			t.Logf("| a put with its watch event | %.0f us of CPU |", float64((s.usage().CPU-before.CPU).Microseconds())/float64(*agentsFlag))
			s.event("leader killed", func(ctx context.Context) {
				leader := s.leader(ctx)
				leader.Kill()
				if s.store == "redis" { // a Cluster without replicas lacks its keys meanwhile
					leader.Start()
				}
				s.changeAll(ctx, "leader-killed")
				if s.store != "redis" {
					leader.Start()
				}
			})
			s.event("all servers restarted", func(ctx context.Context) {
				for _, one := range s.servers[:3] {
					one.Kill()
				}
				s.restart()
				s.changeAll(ctx, "restarted")
			})
			s.event("all agents restarted at once", func(ctx context.Context) {
				s.stopAll()
				s.startAll(ctx)
			})
		})
	}
}

// ms returns a duration in milliseconds.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
