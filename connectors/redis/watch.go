package redis

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/keyplane/keyplane/connectors/redis/internal/paging"
	"github.com/keyplane/keyplane/kvdbsync"
)

// probeEvery is the time between two checks that the servers are alive and still the
// masters.
const probeEvery = 2 * time.Second

// A watch is one call of Connector.Watch.
type watch struct {
	access access
	log    *slog.Logger
	prefix string
	// Called by one goroutine at a time. Its error ends the watch.
	emit func(kvdbsync.Batch) error

	box *inbox
	// One for each master, sorted by address. They do not change: a failover ends the watch.
	nodes   []*node
	cluster *goredis.ClusterClient // nil: not a Cluster
	read    *pager                 // owned by follow's goroutine
	memory  *memory
	size    *paging.Size // of the Connector
	// The keys that evictions have removed. Only follow's goroutine uses it.
	lost eviction

	stop context.CancelFunc // ends the goroutines
	all  sync.WaitGroup     // waits for the goroutines
}

// begin returns a watch that receives the changes of all masters. The caller must close
// it.
func begin(ctx context.Context, c *Connector, prefix string, emit func(kvdbsync.Batch) error) (*watch, error) {
	a, err := c.cfg.access()
	if err != nil {
		return nil, err
	}
	w := &watch{access: a, log: c.log, prefix: prefix, emit: emit, box: newInbox(prefix, c.cfg.Bounds), memory: c.memory, size: &c.size}
	w.lost.gone = map[string]struct{}{}
	ctx, w.stop = context.WithCancel(ctx)
	if a.cluster() {
		o := a.toCluster(limiting(dialer(ctx, a.TLS, a.ReadTimeout), a.Bounds, false))
		o.PoolTimeout = waitForTurn
		w.cluster = goredis.NewClusterClient(o)
		w.read = newPager(oneByOne(w.cluster, a.Bounds), w.size)
	}
	if err := w.open(ctx); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// open connects to the masters.
func (w *watch) open(ctx context.Context) error {
	masters, err := w.masters(ctx)
	if err != nil {
		return err
	}
	for _, m := range masters {
		n := newNode(ctx, w.access, m.addr, w.prefix, w.box, w.memory, w.log)
		if err := n.ask(ctx); err != nil {
			n.close()
			if m.empty {
				w.log.Warn("a master without slots cannot be reached; while slots are being moved to it, changes may come late", "server", m.addr, "err", err)
				continue
			}
			return err
		}
		if err := w.add(ctx, n); err != nil {
			return err
		}
	}
	if w.cluster == nil {
		w.read = newPager(atOnce(w.nodes[0].data, w.access.Bounds), w.size)
	}
	if w.cluster != nil || w.access.sentinels() { // otherwise there is only the one that is configured
		w.all.Go(w.box.guarded(func() error { return w.followMasters(ctx, masters) }))
	}
	return w.fence(ctx)
}

// add watches a master that was asked for an answer.
func (w *watch) add(ctx context.Context, n *node) error {
	w.nodes = append(w.nodes, n)
	w.all.Go(w.box.guarded(func() error { return n.receive(ctx) }))
	if err := n.answer(ctx, w.access.ReadTimeout); err != nil {
		return err
	}
	if w.access.sentinels() && n.greeted.replica {
		return fmt.Errorf("%w: the Sentinels name %s, which is a replica", ErrMoved, n.addr)
	}
	if w.access.Endpoint != "" {
		if err := n.checkAlone(ctx); err != nil {
			return err
		}
	}
	if err := n.checkMemory(ctx); err != nil {
		return err
	}
	return n.subscribe(ctx)
}

// untilLost calls do with a context that ends when the watch must end: reads from other servers, which
// are tried many times, would hold it up.
func (w *watch) untilLost(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-w.box.lost:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := do(ctx)
	return cmp.Or(w.box.failure(), err) // a failure reported by a server explains the other errors
}

// close ends the watch. If the context has ended, its connections are already closed.
func (w *watch) close() {
	w.stop()
	for _, n := range w.nodes {
		n.close()
	}
	if w.cluster != nil {
		_ = w.cluster.Close() // its connections are already closed, too
	}
	w.all.Wait()
}

// followMasters returns an error when other servers have become the masters.
func (w *watch) followMasters(ctx context.Context, known []master) error {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := w.masters(ctx)
		switch {
		case err != nil:
			w.log.Debug("asking for the masters failed", "err", err)
		case haveMoved(known, now):
			return fmt.Errorf("%w: %v, no longer %v", ErrMoved, addresses(now), addresses(known))
		}
	}
}

// haveMoved reports whether keys may be on a master that is not watched. A master without slots that cannot
// be reached for a moment is none.
func haveMoved(known, now []master) bool {
	owner := func(m master) bool { return !m.empty }
	unknown := func(m master) bool { return !slices.Contains(known, m) }
	gone := func(m master) bool { return owner(m) && !slices.Contains(now, m) }
	return slices.ContainsFunc(now, unknown) || slices.ContainsFunc(known, gone)
}

// addresses returns the addresses of some masters.
func addresses(all []master) (addrs []string) {
	for _, m := range all {
		addrs = append(addrs, m.addr)
	}
	return addrs
}
