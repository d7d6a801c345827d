package stores

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"github.com/hashicorp/consul/api"
	goredis "github.com/redis/go-redis/v9"
	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/connectors/filedb"
	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/faults/history"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A Bench is a store for a benchmark. An agent and a bare client use it in the same way,
// and no line that could be cut is in between.
type Bench struct {
	Connect func() kvdbsync.Connector // makes a connector without any state
	Write   func(ctx context.Context, changes ...history.Change) error
	Pairs   func(context.Context) ([]kvdbsync.Pair, error) // lists all pairs, as a bare client does
	// Watch begins a bare client's watch, which lasts until ctx ends. It calls changed for
	// each change after it has the new value. It is nil for a store without watches.
	Watch   func(ctx context.Context, b *testing.B, changed func())
	AtOnce  int // changes of one write when a benchmark makes many
	Writers int // the fastest number of writers with one change each; 0: one writer with AtOnce each
}

// EachBench runs bench on each kind of store, with one server or without.
func EachBench(b *testing.B, bench func(*testing.B, Bench)) {
	for _, s := range []struct {
		name string
		open func(*testing.B) Bench
	}{{"etcd", benchEtcd}, {"Redis", benchRedis}, {"Consul", benchConsul}, {"Bolt", benchBolt}, {"files", benchFiles}} {
		b.Run(s.name, func(b *testing.B) { bench(b, s.open(b)) })
	}
}

// benchEtcd starts one member. The agent connects to it directly: a proxy in between would
// cost more than the agent itself.
func benchEtcd(b *testing.B) Bench {
	s := &etcdStore{TB: b, members: testkit.StartEtcdCluster(b, 1, testkit.EtcdOptions{})}
	s.client = s.connect(clientv3.Config{})
	return Bench{
		Connect: func() kvdbsync.Connector {
			return etcd.New(etcd.Config{Endpoints: []string{s.members[0].Addr}}, slog.New(slog.DiscardHandler))
		},
		Write: s.write, Pairs: s.pairs, Watch: s.watch, AtOnce: 100, Writers: 16,
	}
}

// watch waits until the server has confirmed the watch (the created event), so that no put
// of the benchmark comes before it.
func (s *etcdStore) watch(ctx context.Context, b *testing.B, changed func()) {
	events := s.connect(clientv3.Config{}).Watch(ctx, Root, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-events
	go func() {
		for answer := range events {
			for range answer.Events {
				changed()
			}
		}
	}()
}

// benchRedis starts one server without a replica, so a write waits for no other server.
func benchRedis(b *testing.B) Bench {
	s := &redisStore{TB: b, nodes: []*testkit.Redis{testkit.StartRedis(b, testkit.RedisOptions{})}}
	s.reconnect()
	return Bench{
		Connect: func() kvdbsync.Connector {
			return redis.New(redis.Config{Endpoint: s.nodes[0].Addr}, slog.New(slog.DiscardHandler))
		},
		Write: s.write, Pairs: s.pairs, Watch: s.watch, AtOnce: 100, Writers: 16,
	}
}

// pairs reads page by page.
func (s *redisStore) pairs(ctx context.Context) (pairs []kvdbsync.Pair, err error) {
	for cursor := uint64(0); ; {
		keys, next, err := s.client.Scan(ctx, cursor, Root+"*", 1000).Result()
		if err != nil {
			return nil, err
		}
		if len(keys) > 0 {
			values, err := s.client.MGet(ctx, keys...).Result()
			if err != nil {
				return nil, err
			}
			for i, v := range values {
				pairs = append(pairs, kvdbsync.Pair{Key: keys[i], Value: []byte(v.(string))})
			}
		}
		cursor = next
		if cursor == 0 {
			return pairs, nil
		}
	}
}

// watch reads the value of each key that a notification names.
func (s *redisStore) watch(ctx context.Context, b *testing.B, changed func()) {
	// Keyspace events (K) of all classes (A). A server sends none by default.
	s.everywhere("CONFIG", "SET", "notify-keyspace-events", "KA")
	client := goredis.NewClient(&goredis.Options{Addr: s.nodes[0].Addr})
	b.Cleanup(func() { client.Close() })
	const channel = "__keyspace@0__:"
	sub := client.PSubscribe(ctx, channel+Root+"*")
	b.Cleanup(func() { sub.Close() })
	// The first answer is the confirmation; earlier puts would not be announced.
	if _, err := sub.Receive(ctx); err != nil {
		b.Fatal(err)
	}
	go func() {
		for told := range sub.Channel() {
			if client.Get(ctx, told.Channel[len(channel):]).Err() == nil {
				changed()
			}
		}
	}()
}

// benchConsul starts one server. A bare client asks it without the line of the matrix.
func benchConsul(b *testing.B) Bench {
	s := &consulStore{TB: b, servers: testkit.StartConsulCluster(b, 1, testkit.ConsulOptions{})}
	s.serveBy(s.servers[0])
	return Bench{
		Connect: func() kvdbsync.Connector {
			return consul.New(consul.Config{Address: s.servers[0].Addr}, slog.New(slog.DiscardHandler))
		},
		Write: s.write, Pairs: s.pairs, Watch: s.watch, AtOnce: 64, Writers: 16,
	}
}

// watch sends blocking queries and compares the indexes of pairs.
func (s *consulStore) watch(ctx context.Context, b *testing.B, changed func()) {
	ask := &api.QueryOptions{}
	next := func() (api.KVPairs, error) {
		pairs, meta, err := s.client.KV().List(place("")[:len(Root)-1], ask.WithContext(ctx))
		if err == nil {
			// Index 0 would mean "do not wait", and the loop would spin.
			ask.WaitIndex = max(1, meta.LastIndex)
		}
		return pairs, err
	}
	if _, err := next(); err != nil {
		b.Fatal(err)
	}
	go func() {
		for had := ask.WaitIndex; ; had = ask.WaitIndex {
			pairs, err := next()
			if err != nil {
				return
			}
			for _, p := range pairs {
				if p.ModifyIndex > had {
					changed()
				}
			}
		}
	}()
}

// benchBolt has its file in memory if the machine has /dev/shm. The time of a disk would
// hide all other costs.
func benchBolt(b *testing.B) Bench {
	dir, err := os.MkdirTemp("/dev/shm", "keyplane-bolt-") //nolint:usetesting // b.TempDir is on a disk
	if err != nil {
		dir = b.TempDir()
	}
	b.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			b.Error(err)
		}
	})
	s := newBoltStore(b, dir)
	return Bench{
		Connect: func() kvdbsync.Connector { return s.db },
		Write:   s.write, Pairs: s.pairs, AtOnce: 1000, Writers: 1,
	}
}

// pairs reads as another program does that has the file to itself.
func (s *boltStore) pairs(context.Context) (pairs []kvdbsync.Pair, err error) {
	s.take()
	defer s.give()
	err = s.raw.View(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("root")).ForEach(func(k, v []byte) error {
			pairs = append(pairs, kvdbsync.Pair{Key: string(k), Value: append([]byte{}, v...)})
			return nil
		})
	})
	return pairs, err
}

// benchFiles saves each write by a rename, as most programs do. It has no bare watch.
func benchFiles(b *testing.B) Bench {
	s := &fileStore{TB: b, dir: b.TempDir(), has: map[string]map[string]string{}, save: SaveByRename, form: jsonForm()}
	return Bench{
		Connect: func() kvdbsync.Connector {
			db, err := filedb.New(filedb.Config{Paths: []string{s.dir}}, Root, slog.New(slog.DiscardHandler))
			if err != nil {
				b.Fatal(err)
			}
			return db
		},
		Write: s.write, Pairs: s.pairs, AtOnce: 100,
	}
}
