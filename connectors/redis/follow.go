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

// maxReadings bounds how often keys are read again because they, and others with
// them, have changed meanwhile.
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

// listAll emits the pairs of all masters, which are read at the same time, and the
// next page while one is emitted.
func (w *watch) listAll(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // a listing may take long, and is worth nothing without the other connection
		select {
		case <-w.box.lost:
			cancel(w.box.failure())
		case <-ctx.Done():
		}
	}()
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
			if err = w.emit(kvdbsync.Batch{Events: events}); err != nil {
				cancel(err)
			}
		}
	}
	return cmp.Or(err, <-listed)
}

// listNode hands on the pairs of one master: the keys of the next page are asked for while
// the values of one are taken in.
func (w *watch) listNode(ctx context.Context, n *node, pages chan<- []kvdbsync.Event) error {
	read := newPager(w.read.read)
	if w.cluster != nil {
		read = newPager(fromNode(n.data, w.cluster, w.access.Bounds))
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
				err := read.each(ctx, keys, func(events []kvdbsync.Event) error { return handOn(ctx, pages, events) })
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
	return both.Wait()
}

func handOn[T any](ctx context.Context, to chan<- T, one T) error {
	select {
	case to <- one:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finish completes the listing with what has changed while it was made.
func (w *watch) finish(ctx context.Context) error {
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
	b := kvdbsync.Batch{Events: events, Problems: append(problems, w.missedEvictions()...), Synced: true}
	if b.Identity, b.Former, err = w.identity(ctx); err != nil {
		return err
	}
	return w.emit(b)
}

// follow emits what changes, until the watch must end.
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

// pass emits what has been named so far, and with it what the servers had to name
// before that: what is written once something else was acknowledged never comes
// before it, not even from another master.
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

// scattered tells whether keys that changed together may be named one after the
// other.
func (w *watch) scattered() bool {
	return slices.ContainsFunc(w.nodes, func(n *node) bool { return !n.greeted.tracking })
}

// changed reads the keys in the inbox. Of a transaction it may have read keys that
// were changed before, and by it, while others of it had not yet been named; then
// it reads all of them again. Whatever it takes out of the inbox it reads after that:
// what is named later stays there, for the next pass.
func (w *watch) changed(ctx context.Context) (events []kvdbsync.Event, err error) {
	var keys []string
	for range maxReadings {
		keys = union(keys, w.box.take())
		if len(keys) == 0 {
			return nil, nil
		}
		if events, err = w.read.all(ctx, keys, w.access.Bounds); err != nil {
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

// whole tells whether keys, now that they have been read, hold no transaction in
// part: none of them was named again, or, if all are read at one moment, nothing else was.
func (w *watch) whole(keys []string) bool {
	some, others := w.box.overlaps(keys)
	return !some || !others && w.cluster == nil
}

// union is what is in either, sorted.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// fence returns when all that the servers had to tell until now is in the inbox.
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

// probe makes sure that the connections live: none would say so by itself.
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
	return nil
}
