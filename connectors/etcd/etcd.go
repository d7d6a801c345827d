// Package etcd connects the agent to an etcd cluster, v3.
//
//	watched := etcd.New(cfg, log)           // a kvdbsync.Connector
//	client, err := etcd.Dial(ctx, cfg)      // a kvdbsync.Writer, for agentctl
//	session, err := watched.Session(ctx, 0) // keys that vanish with the agent: a lease
//
// A watch lists the prefix page by page at one revision and then follows from
// the next one. What etcd changed in one revision, by one transaction, is one
// Batch. It never resumes: whatever ends the stream (a server that goes away, a
// member without a leader, compaction, a token that ran out) ends the watch, and
// the next one lists anew. Resuming would be cheaper, but could not tell a
// restarted cluster from one that was restored from a backup and has since moved
// on past our revision.
//
// A listing goes on where it was interrupted, at the same revision, if the same cluster
// answers. A watch that says nothing is asked, on its own stream, how far the server has
// come, since the rest of the connection may work without it.
//
// Each watch, and each session, has a client of its own, made from the configuration as it is then:
// tokens, certificates and password files are never older than the watch.
// Nothing is shared, no goroutine outlives the watch or the session's Close.
//
// Tests run against the real server, which they cut off, kill, freeze, compact
// and wipe.
package etcd

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

var (
	// ErrWentBack says that the store is at an earlier revision than it was: its
	// data was lost or restored.
	ErrWentBack = errors.New("etcd went back in time")
	// ErrOtherCluster says that another cluster answers than did before.
	ErrOtherCluster = errors.New("another etcd cluster answers")
	// ErrNotEtcd says that an answer is none that etcd gives.
	ErrNotEtcd = errors.New("the answer is not one of etcd")
	// ErrClosed says that the server ended the watch and did not say why.
	ErrClosed = errors.New("etcd ended the watch")
)

// A Connector watches one etcd cluster. Any number of watches may run.
type Connector struct {
	cfg      Config
	log      *slog.Logger
	askAfter time.Duration
	talent   talent
}

// New returns a Connector. It does not connect.
func New(cfg Config, log *slog.Logger) *Connector {
	return &Connector{cfg: cfg.withDefaults(), log: log, askAfter: askAfter}
}

// Watch implements kvdbsync.Connector. Keys are whole keys, as etcd has them.
func (c *Connector) Watch(ctx context.Context, prefix string) iter.Seq2[kvdbsync.Batch, error] {
	return kvdbsync.Stream(ctx, func(emit func(kvdbsync.Batch) error) error { return c.watch(ctx, prefix, emit) })
}

func (c *Connector) watch(ctx context.Context, prefix string, emit func(kvdbsync.Batch) error) error {
	client, err := newClient(ctx, c.cfg)
	if err != nil {
		return err
	}
	defer client.Close()
	if c.cfg.ExpandEnv {
		emit = expanding(c.cfg.ExpandNames, emit)
	}
	w := watch{client: client, log: c.log, timeout: c.cfg.OperationTimeout, alone: true, prefix: prefix, emit: emit, bounds: c.cfg.Bounds}
	w.vigil = vigil{after: c.askAfter, timeout: c.cfg.OperationTimeout, talent: &c.talent}
	if err := w.list(ctx); err != nil {
		return err
	}
	return w.follow(ctx)
}
