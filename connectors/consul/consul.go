// Package consul connects the agent to the key-value store of Consul.
//
//	watched := consul.New(cfg, log)         // a kvdbsync.Connector
//	client, err := consul.Dial(cfg)         // a kvdbsync.Writer
//	session, err := watched.Session(ctx, 0) // keys that vanish with the agent: locks
//
// A watch asks again and again for everything under the prefix; Consul answers
// when something has changed (a blocking query). Each answer is the whole prefix
// as it was at one moment, so what differs from the answer before is one Batch,
// and what one transaction changed is never torn apart. The first answer is a
// consistent one; so is the answer after Consul's index went back, which is
// yielded whole. How often is asked depends on how large the answers are.
//
// A question may wait for minutes, and an HTTP connection says nothing meanwhile.
// So a watch asks from time to time, over another connection, at which index the
// prefix is. If the store has moved on and the answer does not come, the
// connection is silent and the watch ends.
//
// Keys are whole keys, with the leading slash that Consul itself does without.
//
// Each watch, and each session, has a client of its own, made from the
// configuration as it is then; tokens and certificates are read again for each
// request and connection. Nothing is shared, no goroutine outlives the watch or
// the session's Close.
//
// Tests run against the real server, which they cut off, kill, freeze, restore
// and wipe; what a real one cannot be made to do, a fake one does.
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
	// ErrNotConsul says that what answers has no index: it is no Consul, or something
	// stands in between that answers itself.
	ErrNotConsul = errors.New("the answer is none of Consul, or has no X-Consul-Index: is this Consul?")
	// ErrFiltered says that the token may not read all of what is watched. Consul
	// leaves the rest out, as if it were not there.
	ErrFiltered = errors.New("the ACL token may not read all keys: expected key_prefix read, and the token in token or token-file")
	// ErrReconnected says that the connection broke, and that what answers now need not
	// be what answered before.
	ErrReconnected = errors.New("the connection to Consul broke")
	// ErrSilent says that the store has changed, and that the connection which waits for
	// changes has not told of it.
	ErrSilent = errors.New("the connection that waits for changes is silent")
	// ErrNoLeader says that the server has lost the others, and would not tell of changes.
	ErrNoLeader = errors.New("the server of Consul knows no leader")
)

// A Connector watches one Consul datacenter. It has no state: any number of
// watches may run.
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

// storeKey is a key as Consul has it.
func storeKey(key string) string { return strings.TrimPrefix(key, "/") }
