// Package redis connects the agent to Redis: one server, a master that Sentinels manage,
// or a Cluster.
//
//	watched := redis.New(cfg, log)         // a kvdbsync.Connector
//	client, err := redis.Dial(ctx, cfg)    // a kvdbsync.Writer, for agentctl and programs
//	session, err := watched.Session(ctx, 0) // a kvdbsync.Session, for status
//
// Redis keeps no history, so a watch first subscribes and then lists. Each master sends it
// the invalidations of CLIENT TRACKING in broadcast mode, which name the changed keys
// under the prefix. If a server does not support tracking, keyspace notifications replace
// it. The messages only name a key; the watch always reads the key's value again. A watch
// never resumes. It ends when a connection is lost, the data was flushed, or another
// server has become the master. The next watch lists again.
//
// Order: the server names the keys of one transaction together and the watch reads them at
// once. So they come in one Batch, unless keys change faster than they can be read.
// Several changes of a key may come as one.
//
// A watch has two connections to each master, one for messages and one for reading. It
// never opens one again: a watch that loses a connection ends. In a Cluster another client reads
// the values, from any master; it follows keys that move, and connects again. One goroutine for each
// master records the named keys as fast as the server sends them. The caller's goroutine does the rest, so the memory of a
// watch is bounded by the number of keys. A watch never reads replicas: they may lag
// behind the messages.
//
// Tests run against the real server, Sentinels and a Cluster. They disconnect, kill,
// freeze, flush, fail over and reshard them.
package redis

import (
	"context"
	"errors"
	"iter"
	"log/slog"

	"github.com/keyplane/keyplane/connectors/redis/internal/paging"
	"github.com/keyplane/keyplane/kvdbsync"
)

var (
	// ErrFlushed says that a server has dropped its data: by FLUSHALL or FLUSHDB, or
	// because a replica loads its master's data.
	ErrFlushed = errors.New("redis was flushed")
	// ErrLost says that a connection of the watch is lost.
	ErrLost = errors.New("connection to redis lost")
	// ErrSilent says that a server keeps its connection open but does not answer.
	ErrSilent = errors.New("redis does not answer")
	// ErrMoved says that other servers have become the masters.
	ErrMoved = errors.New("other redis servers are the masters")
	// ErrUncovered says that no master serves some slots of a Cluster, so the list of keys
	// would be incomplete.
	ErrUncovered = errors.New("redis cluster does not serve all slots")
	// ErrNotString says that a key holds another type than a string.
	ErrNotString = errors.New("not a string: expected a value written with SET")
	// ErrEventsOff says that the server does not send notifications of changes.
	ErrEventsOff = errors.New("redis does not announce changes")
)

// A Connector watches one Redis and creates sessions. Any number of watches and sessions
// may run at the same time.
type Connector struct {
	cfg    Config
	log    *slog.Logger
	held   *holdings   // keys held by the sessions, other than leases
	leases *holdings   // keys held by leases
	memory *memory     // of the servers
	size   paging.Size // of requests for values
}

// New returns a Connector. It does not connect. It warns of settings without effect.
func New(cfg Config, log *slog.Logger) *Connector {
	for _, key := range cfg.unused() {
		log.Warn("redis.conf has a setting without effect", "setting", key)
	}
	return &Connector{cfg: cfg.withDefaults(), log: log, held: newHoldings(), leases: newHoldings(), memory: newMemory()}
}

// Watch implements kvdbsync.Connector. Keys are whole keys, the same as in Redis.
func (c *Connector) Watch(ctx context.Context, prefix string) iter.Seq2[kvdbsync.Batch, error] {
	return kvdbsync.Stream(ctx, func(emit func(kvdbsync.Batch) error) error { return c.watch(ctx, prefix, emit) })
}

// watch is one life of Watch: it connects, lists, and follows until the first error.
func (c *Connector) watch(ctx context.Context, prefix string, emit func(kvdbsync.Batch) error) error {
	w, err := begin(ctx, c, prefix, emit)
	if err != nil {
		return err
	}
	defer w.close()
	return w.untilLost(ctx, func(ctx context.Context) error {
		if err := w.list(ctx); err != nil {
			return err
		}
		return w.follow(ctx)
	})
}
