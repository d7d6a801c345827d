// Package etcd connects the agent to an etcd cluster, v3.
//
//	watched := etcd.New(cfg, log)           // a kvdbsync.Connector
//	client, err := etcd.Dial(ctx, cfg)      // a kvdbsync.Writer, for agentctl
//	session, err := watched.Session(ctx, 0) // keys that vanish with the agent: a lease
//
// A watch lists the prefix page by page at one revision and then follows from the next
// one. The listing is complete only when a server has confirmed the watch. The changes of
// one revision are one Batch. A watch never resumes: any end of the stream (a stopped server,
// a member without a leader, compaction, an expired token) ends the watch, and the next one
// lists again. Resuming would be cheaper. But it could not distinguish a restarted cluster
// from one that was restored from a backup and has since passed our revision.
//
// An interrupted listing continues at the same revision, if the same cluster answers. The
// agent asks a silent watch, on its own stream, for the server's progress, because the
// rest of the connection may work without the watch.
//
// Each watch and each session has its own client, made from the present configuration. So
// tokens, certificates and password files are never older than the watch. Nothing is
// shared. No goroutine outlives the watch or the session's Close.
//
// Tests run against the real server, which they cut off, kill, freeze, compact and wipe.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

var (
	// ErrWentBack means that the store is at an earlier revision than before, so its
	// data was lost or restored.
	ErrWentBack = errors.New("etcd went back in time")
	// ErrOtherCluster means that another cluster answers than before.
	ErrOtherCluster = errors.New("another etcd cluster answers")
	// ErrNotEtcd means that the answer cannot come from an etcd server.
	ErrNotEtcd = errors.New("the answer is not one of etcd")
	// ErrClosed means that the server ended the watch without a reason.
	ErrClosed = errors.New("etcd ended the watch")
)

// A Connector watches one etcd cluster. Any number of watches may run.
type Connector struct {
	cfg      Config
	log      *slog.Logger
	askAfter time.Duration
	progress support
	cluster  atomic.Uint64 // of the last confirmed watch; 0: none yet
}

// New returns a Connector. It does not connect.
func New(cfg Config, log *slog.Logger) *Connector {
	return &Connector{cfg: cfg.withDefaults(), log: log, askAfter: askAfter}
}

// Watch implements kvdbsync.Connector. Keys are whole keys, as stored in etcd.
func (c *Connector) Watch(ctx context.Context, prefix string) iter.Seq2[kvdbsync.Batch, error] {
	return kvdbsync.Stream(ctx, func(emit func(kvdbsync.Batch) error) error { return c.watch(ctx, prefix, emit) })
}

// watch is one life of Watch: it connects, lists, and follows until the first error.
func (c *Connector) watch(ctx context.Context, prefix string, emit func(kvdbsync.Batch) error) error {
	client, err := newClient(ctx, c.cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	if c.cfg.ExpandEnv {
		emit = expanding(c.cfg.ExpandNames, c.cfg.Bounds, emit)
	}
	w := watch{client: client, log: c.log, timeout: c.cfg.OperationTimeout, alone: true, prefix: prefix, emit: emit, bounds: c.cfg.Bounds}
	w.watchdog = watchdog{after: c.askAfter, timeout: c.cfg.OperationTimeout, progress: &c.progress}
	w.cluster, w.at.cluster = &c.cluster, c.cluster.Load()
	last, err := w.list(ctx)
	// The token of one cluster is refused in another.
	if w.at.rev == 0 && (errors.Is(err, ErrOtherCluster) || w.at.cluster != 0 && client.tokens.refused(err)) {
		if !c.choose(ctx, &w) {
			return fmt.Errorf("%w (no endpoint of the known cluster answers; it is given up when more than half of the endpoints belong to another one)", err)
		}
		last, err = w.list(ctx)
	}
	if err != nil {
		return err
	}
	return w.follow(ctx, last)
}
