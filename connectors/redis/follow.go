package redis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/kvdbsync"
)

// maxReadings limits how often keys are read again because they, and others with them,
// have changed meanwhile.
const maxReadings = 10

// list emits every pair.
func (w *watch) list(ctx context.Context) error {
	if w.cluster != nil {
		if err := w.checkCover(ctx); err != nil {
			return err
		}
	}
	if err := w.listAll(ctx); err != nil {
		return err
	}
	return w.finish(ctx)
}

// listAll emits the pairs of all masters. It reads the masters concurrently, and reads the
// next page while it emits one. After an error it still drains the pages, so that no goroutine
// stays behind.
func (w *watch) listAll(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all, each := errgroup.WithContext(ctx)
	pages, listed := make(chan []kvdbsync.Event), make(chan error, 1)
	for _, n := range w.nodes {
		all.Go(func() error {
			return guard.Run(func() error { return w.listNode(each, n, pages) })
		})
	}
	go func() {
		listed <- all.Wait()
		close(pages)
	}()
	for events := range pages {
		if err == nil {
			err = w.emit(kvdbsync.Batch{Events: events})
			if err != nil {
				cancel()
			}
		}
	}
	return cmp.Or(err, <-listed)
}

// listNode passes on the pairs of one master. It requests the keys of the next page while
// it processes the values of the current one.
func (w *watch) listNode(ctx context.Context, n *node, pages chan<- []kvdbsync.Event) error {
	read := newPager(w.read.read, w.size)
	if w.cluster != nil {
		read = newPager(fromNode(n.data, w.cluster, w.access.Bounds), w.size)
	}
	both, ctx := errgroup.WithContext(ctx)
	found := make(chan []string)
	both.Go(func() error {
		defer close(found)
		return guard.Run(func() error {
			return scan(ctx, n.data, w.prefix, w.access.Bounds, func(keys []string) error { return handOn(ctx, found, keys) })
		})
	})
	both.Go(func() error {
		return guard.Run(func() error {
			for keys := range found {
				err := read.each(ctx, keys, func(events []kvdbsync.Event) error { return handOn(ctx, pages, present(events)) })
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
	return both.Wait()
}

// present drops the keys of a listing that were deleted after SCAN had named them. If an earlier page has the
// value of such a key, the server names it as changed, and finish reads it again. So a server that names keys
// without end, of which none is there, takes no memory.
func present(events []kvdbsync.Event) []kvdbsync.Event {
	return slices.DeleteFunc(events, func(e kvdbsync.Event) bool { return e.Value == nil && e.Err == nil })
}

// handOn sends one item, or returns the error of the context.
func handOn[T any](ctx context.Context, to chan<- T, one T) error {
	select {
	case to <- one:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finish completes the listing with the changes made during the listing. Its Batch is the only
// one of a listing with Synced. SCAN may have missed keys that were written meanwhile; the
// server has named all of these.
func (w *watch) finish(ctx context.Context) error {
	counts, err := w.counts(ctx)
	if err != nil {
		return err
	}
	if err := w.fence(ctx); err != nil {
		return err
	}
	events, err := w.changed(ctx)
	if err != nil {
		return err
	}
	problems, err := w.doubtEvicted(ctx, events)
	if err != nil {
		return err
	}
	missed := w.missedEvictions()
	b := kvdbsync.Batch{Events: events, LostKeys: len(missed) > 0, Problems: append(problems, missed...), Synced: true}
	b.Identity, b.Former, err = w.identity(ctx)
	if err != nil {
		return err
	}
	if err := w.emit(b); err != nil {
		return err
	}
	w.settle(counts)
	return nil
}

// follow emits changes until the watch must end.
func (w *watch) follow(ctx context.Context) error {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-w.box.lost:
			return w.box.failure()
		case <-tick.C:
			err = w.probe(ctx)
		case <-w.box.some.C():
			err = w.pass(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// pass emits all keys named so far, after a fence over all masters. The fence keeps the
// order of acknowledged writes: a write that starts after another was acknowledged is
// never emitted before it, even if the two are on different masters.
func (w *watch) pass(ctx context.Context) error {
	if len(w.nodes) > 1 || w.scattered() {
		if err := w.fence(ctx); err != nil {
			return err
		}
	}
	events, err := w.changed(ctx)
	if err != nil || len(events) == 0 {
		return err
	}
	problems, err := w.doubtEvicted(ctx, events)
	if err != nil {
		return err
	}
	return w.emit(kvdbsync.Batch{Events: events, Problems: problems})
}

// scattered reports whether the server may name the keys of one transaction one after the
// other.
func (w *watch) scattered() bool {
	return slices.ContainsFunc(w.nodes, func(n *node) bool { return !n.greeted.tracking })
}

// changed reads the keys in the inbox. It may read some keys of a transaction before the
// server has named the others; then it reads all of them again. It takes keys out of the
// inbox before it reads them. Keys named later stay there for the next pass.
func (w *watch) changed(ctx context.Context) (events []kvdbsync.Event, err error) {
	var keys []string
	for range maxReadings {
		keys = union(keys, w.box.take())
		if len(keys) == 0 {
			return nil, nil
		}
		events, err = w.read.all(ctx, keys, w.access.Bounds)
		if err != nil {
			return nil, err
		}
		if err := w.fence(ctx); err != nil {
			return nil, err
		}
		if w.whole(keys) {
			break
		}
	}
	return events, nil
}

// whole reports whether the read keys contain each transaction completely. This holds if
// none of them was named again. It also holds if all keys were read at one moment and no
// other key was named.
func (w *watch) whole(keys []string) bool {
	some, others := w.box.overlaps(keys)
	return !some || !others && !w.read.several && w.cluster == nil
}

// union returns the sorted elements of both.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// fence returns when the inbox has all changes that the servers have reported until now. It
// sends all PINGs before it waits for an answer, so it takes as long as the slowest server.
// The answer to a PING follows all earlier messages on the same connection.
func (w *watch) fence(ctx context.Context) error {
	for _, n := range w.nodes {
		if err := n.ask(ctx); err != nil {
			return err
		}
	}
	for _, n := range w.nodes {
		if err := n.answer(ctx, w.access.ReadTimeout); err != nil {
			return err
		}
	}
	return nil
}

// probe checks that the connections are alive: a dead connection gives no sign. It also
// notices that somebody has turned notifications off, after which no change would be named.
// If a server may evict keys, it emits those named so far, so that the next watch asks only for later
// evictions.
func (w *watch) probe(ctx context.Context) error {
	if err := w.fence(ctx); err != nil {
		return err
	}
	for _, n := range w.nodes {
		if err := n.data.Ping(ctx).Err(); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrLost, n.addr, err)
		}
		if err := n.checkEvents(ctx); err != nil {
			return err
		}
	}
	if !w.memory.mayEvict() {
		return nil
	}
	counts, err := w.counts(ctx)
	if err != nil {
		return err
	}
	if err := w.fence(ctx); err != nil {
		return err
	}
	if err := w.pass(ctx); err != nil {
		return err
	}
	w.settle(counts)
	return nil
}
