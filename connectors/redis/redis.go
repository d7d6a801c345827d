// Package redis connects the agent to Redis: one server, a master that Sentinels
// look after, or a Cluster.
//
//	watched := redis.New(cfg, log)         // a kvdbsync.Connector
//	client, err := redis.Dial(ctx, cfg)    // a kvdbsync.Writer, for agentctl and programs
//	session, err := watched.Session(ctx, 0) // a kvdbsync.Session, for status
//
// Redis keeps no history, so a watch first subscribes and then lists. From each
// master it has the invalidations of CLIENT TRACKING in broadcast mode, which
// name the keys under the prefix that changed; where a server knows no tracking,
// keyspace notifications do the same. Whatever they say, the key is read again,
// and what the reading finds is the truth. A watch never resumes: when a
// connection is lost, the data was flushed, or another server is the master now,
// it ends, and the next one lists anew.
//
// Order: the keys that one transaction changed are announced together and read
// at once, so they come in one Batch, unless changes keep coming faster than they
// can be read. Several changes of a key may come as one.
//
// A watch has two connections to each master, and opens neither a second time:
// one to be told, one to read. One goroutine for each master notes which keys
// were named, as fast as the server sends; the caller's does all the rest, so the
// memory of a watch is bounded by the number of keys. Replicas are never read by
// a watch: they may be behind what was announced.
//
// Tests run against the real server, Sentinels and a Cluster, which they cut off,
// kill, freeze, flush, fail over and reshard.
package redis

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"

	"github.com/keyplane/keyplane/kvdbsync"
)

var (
	// ErrFlushed says that a server has dropped its data: FLUSHALL, FLUSHDB, or a
	// replica that loads its master's.
	ErrFlushed = errors.New("redis was flushed")
	// ErrLost says that a connection of the watch is gone.
	ErrLost = errors.New("connection to redis lost")
	// ErrSilent says that a server holds its connection and does not answer.
	ErrSilent = errors.New("redis does not answer")
	// ErrMoved says that other servers are the masters now.
	ErrMoved = errors.New("other redis servers are the masters")
	// ErrUncovered says that there are slots of a Cluster that no master serves, so
	// nobody can tell which keys there are.
	ErrUncovered = errors.New("redis cluster does not serve all slots")
	// ErrNotString says that a key holds another type than a string.
	ErrNotString = errors.New("not a string: expected a value written with SET")
	// ErrEventsOff says that the server announces no changes.
	ErrEventsOff = errors.New("redis does not announce changes")
)

// A Connector watches one Redis, and is where sessions begin. Any number of
// watches and sessions may run.
type Connector struct {
	cfg    Config
	log    *slog.Logger
	held   *holdings // by the sessions
	memory *memory   // of the servers
}

// New returns a Connector. It does not connect.
func New(cfg Config, log *slog.Logger) *Connector {
	return &Connector{cfg: cfg.withDefaults(), log: log, held: newHoldings(), memory: newMemory()}
}

// Watch implements kvdbsync.Connector. Keys are whole keys, as Redis has them.
func (c *Connector) Watch(ctx context.Context, prefix string) iter.Seq2[kvdbsync.Batch, error] {
	return kvdbsync.Stream(ctx, func(emit func(kvdbsync.Batch) error) error { return c.watch(ctx, prefix, emit) })
}

func (c *Connector) watch(ctx context.Context, prefix string, emit func(kvdbsync.Batch) error) error {
	w, err := begin(ctx, c, prefix, emit)
	if err != nil {
		return err
	}
	defer w.close()
	if err = w.list(ctx); err == nil {
		err = w.follow(ctx)
	}
	return cmp.Or(w.box.failure(), err) // what a server has said explains the rest
}
