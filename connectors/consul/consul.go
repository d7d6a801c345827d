// Package consul connects the agent to the key-value store of Consul.
//
//	watched := consul.New(cfg, log)         // a kvdbsync.Connector
//	client, err := consul.Dial(cfg)         // a kvdbsync.Writer
//	session, err := watched.Session(ctx, 0) // keys that vanish with the agent: locks
//
// A watch sends one blocking query after another for the whole prefix. Consul answers when
// something has changed. Each answer is a snapshot of the whole prefix at one moment, so
// the difference from the previous answer is one Batch, and the changes of one transaction
// stay together. The first answer is a consistent read. After Consul's index goes back,
// the next answer is consistent too and is emitted whole. The rate of the queries depends
// on the size of the answers. With AllowStale a server that is not the leader may answer the
// blocking queries. It may be late, but its answers never go back.
//
// A blocking query may wait for minutes, and its HTTP connection is idle meanwhile. So a
// watch regularly reads the prefix's index over another connection. If the store has moved
// on and the answer does not come, the connection is dead and the watch ends.
//
// Keys are whole keys with a leading slash. Consul stores them without the slash.
//
// Each watch and each session has its own client, made from the configuration at that
// time. Tokens are read again for each request, certificates for each connection. Watches
// and sessions share nothing. No goroutine outlives the watch or the session's Close.
//
// Tests run against the real server: they disconnect, kill, freeze, restore and wipe it. A
// fake server produces the failures that a real one cannot be forced into.
package consul

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"sync"

	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/kvdbsync"
)

var (
	// ErrNotConsul says that an answer has no index. The server is not Consul, or a proxy
	// answers instead of Consul.
	ErrNotConsul = errors.New("the answer is not from Consul, or has no X-Consul-Index: is this Consul?")
	// ErrFiltered says that the token may not read all keys under the prefix. Consul omits
	// the other keys, as if they did not exist.
	ErrFiltered = errors.New("the ACL token may not read all keys: expected key_prefix read, and the token in token or token-file")
	// ErrReconnected says that the connection broke. The next connection may lead to
	// another server, or to other data.
	ErrReconnected = errors.New("the connection to Consul broke")
	// ErrSilent says that the store has changed, but the connection that waits for changes
	// has not reported it.
	ErrSilent = errors.New("the connection that waits for changes is silent")
	// ErrNoLeader says that the server has lost the rest of the cluster, so it would not
	// report changes.
	ErrNoLeader = errors.New("the Consul server has no leader")
)

// A Connector watches one Consul datacenter. It is stateless: any number of watches may
// run at the same time.
type Connector struct {
	cfg Config
	log *slog.Logger
}

// New returns a Connector. It does not connect.
func New(cfg Config, log *slog.Logger) *Connector {
	return &Connector{cfg: cfg.withDefaults(), log: log}
}

// Watch implements kvdbsync.Connector.
func (c *Connector) Watch(ctx context.Context, prefix string) iter.Seq2[kvdbsync.Batch, error] {
	return kvdbsync.Stream(ctx, func(emit func(kvdbsync.Batch) error) error { return c.watch(ctx, prefix, emit) })
}

// watch is one life of Watch: it lists and follows until the first error, while another
// goroutine probes the server. A failed probe ends the watch by its context.
func (c *Connector) watch(ctx context.Context, prefix string, emit func(kvdbsync.Batch) error) error {
	client, err := newClient(c.cfg)
	if err != nil {
		return err
	}
	defer client.close()
	ctx, stop := context.WithCancelCause(ctx)
	var probes sync.WaitGroup
	defer probes.Wait()
	defer stop(nil)
	w := newWatch(client, c.log, prefix, emit)
	probes.Go(func() {
		if err := guard.Run(func() error { w.probe(ctx, stop); return nil }); err != nil {
			stop(err)
		}
	})
	return w.run(ctx)
}

// storeKey returns the key in Consul's form, without the leading slash.
func storeKey(key string) string { return strings.TrimPrefix(key, "/") }
