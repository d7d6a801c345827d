package faults

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

// A benchStore is one that an agent and a bare client use alike, with no line
// between that could be cut.
type benchStore struct {
	connect func() kvdbsync.Connector // one that knows nothing yet
	write   func(ctx context.Context, changes ...history.Change) error
	pairs   func(context.Context) ([]kvdbsync.Pair, error) // all there are, as a bare client lists them
	// watch begins a bare client's watch, which calls changed for each change that
	// it has the value of, until ctx ends. nil: the store has none.
	watch   func(ctx context.Context, b *testing.B, changed func())
	atOnce  int // changes of one write where many are to be made
	writers int // that make it quickest with one change each; 0: one, of atOnce each
}

// eachStore runs bench on each, with one server, or none.
func eachStore(b *testing.B, bench func(*testing.B, benchStore)) {
	for _, s := range []struct {
		name string
		open func(*testing.B) benchStore
	}{{"etcd", benchEtcd}, {"Redis", benchRedis}, {"Consul", benchConsul}, {"Bolt", benchBolt}, {"files", benchFiles}} {
		b.Run(s.name, func(b *testing.B) { bench(b, s.open(b)) })
	}
}

func benchEtcd(b *testing.B) benchStore {
	s := &etcdStore{TB: b, members: testkit.StartEtcdCluster(b, 1, testkit.EtcdOptions{})}
	s.client = s.connect(clientv3.Config{})
	return benchStore{
		connect: func() kvdbsync.Connector {
			return etcd.New(etcd.Config{Endpoints: []string{s.members[0].Addr}}, slog.New(slog.DiscardHandler))
		},
		write: s.write, pairs: s.pairs, watch: s.watch, atOnce: 100, writers: 16,
	}
}

func (s *etcdStore) watch(ctx context.Context, b *testing.B, changed func()) {
	events := s.connect(clientv3.Config{}).Watch(ctx, root, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-events
	go func() {
		for answer := range events {
			for range answer.Events {
				changed()
			}
		}
	}()
}

func benchRedis(b *testing.B) benchStore {
	s := &redisStore{TB: b, nodes: []*testkit.Redis{testkit.StartRedis(b, testkit.RedisOptions{})}}
	s.reconnect()
	return benchStore{
		connect: func() kvdbsync.Connector {
			return redis.New(redis.Config{Endpoint: s.nodes[0].Addr}, slog.New(slog.DiscardHandler))
		},
		write: s.write, pairs: s.pairs, watch: s.watch, atOnce: 100, writers: 16,
	}
}

// pairs are read page by page.
func (s *redisStore) pairs(ctx context.Context) (pairs []kvdbsync.Pair, err error) {
	for cursor := uint64(0); ; {
		keys, next, err := s.client.Scan(ctx, cursor, root+"*", 1000).Result()
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
		if cursor = next; cursor == 0 {
			return pairs, nil
		}
	}
}

// watch reads each key that the server notifies of.
func (s *redisStore) watch(ctx context.Context, b *testing.B, changed func()) {
	s.everywhere("CONFIG", "SET", "notify-keyspace-events", "KA")
	client := goredis.NewClient(&goredis.Options{Addr: s.nodes[0].Addr})
	b.Cleanup(func() { client.Close() })
	const channel = "__keyspace@0__:"
	sub := client.PSubscribe(ctx, channel+root+"*")
	b.Cleanup(func() { sub.Close() })
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

func benchConsul(b *testing.B) benchStore {
	s := &consulStore{TB: b, servers: testkit.StartConsulCluster(b, 1, testkit.ConsulOptions{})}
	s.serveBy(s.servers[0])
	return benchStore{
		connect: func() kvdbsync.Connector {
			return consul.New(consul.Config{Address: s.servers[0].Addr}, slog.New(slog.DiscardHandler))
		},
		write: s.write, pairs: s.pairs, watch: s.watch, atOnce: 64, writers: 16,
	}
}

// watch asks, waits, and compares indexes.
func (s *consulStore) watch(ctx context.Context, b *testing.B, changed func()) {
	ask := &api.QueryOptions{}
	next := func() (api.KVPairs, error) {
		pairs, meta, err := s.client.KV().List(place("")[:len(root)-1], ask.WithContext(ctx))
		if err == nil {
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

// benchBolt has its file in memory where there is such a place: a disk would hide
// all the rest.
func benchBolt(b *testing.B) benchStore {
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
	return benchStore{
		connect: func() kvdbsync.Connector { return s.db },
		write:   s.write, pairs: s.pairs, atOnce: 1000, writers: 1,
	}
}

// pairs are read as another program does, which has the file to itself.
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

func benchFiles(b *testing.B) benchStore {
	s := &fileStore{TB: b, dir: b.TempDir(), has: map[string]map[string]string{}, save: saveByRename}
	return benchStore{
		connect: func() kvdbsync.Connector {
			db, err := filedb.New(filedb.Config{Paths: []string{s.dir}}, root, slog.New(slog.DiscardHandler))
			if err != nil {
				b.Fatal(err)
			}
			return db
		},
		write: s.write, pairs: s.pairs, atOnce: 100,
	}
}
