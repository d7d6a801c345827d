package bolt

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/kvdbsync"
)

// mostWaiting is the largest number of batches that wait for the reader of a watch.
const mostWaiting = 4096

// A watch is one reader of the transactions. The fields are guarded by the DB.
type watch struct {
	prefix string
	queue  []kvdbsync.Batch
	err    error       // reason for its end
	more   wake.Signal // set when queue or err changes
}

// Watch yields all pairs under prefix as one batch, then one batch for each transaction
// with changes under prefix.
func (db *DB) Watch(ctx context.Context, prefix string) iter.Seq2[kvdbsync.Batch, error] {
	return func(yield func(kvdbsync.Batch, error) bool) {
		w := &watch{prefix: prefix, more: wake.New()}
		first, err := db.begin(ctx, w)
		if err != nil {
			if ctx.Err() == nil {
				yield(kvdbsync.Batch{}, err)
			}
			return
		}
		defer db.forget(w)
		p := watchPlace(db.cfg.Path)
		defer p.close()
		db.look() // the file may have been replaced just before
		if !yield(first, nil) {
			return
		}
		for db.wait(ctx, w, p) {
			queue, err := db.take(w)
			for _, b := range queue {
				if ctx.Err() != nil || !yield(b, nil) {
					return
				}
			}
			if err != nil {
				yield(kvdbsync.Batch{}, err)
				return
			}
		}
	}
}

// wait returns true when there is something new for a watch, and false when ctx has ended.
// It ends the watch if the file was replaced.
func (db *DB) wait(ctx context.Context, w *watch, p *place) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-w.more.C():
			return true
		case e := <-p.events():
			if !p.concerns(e) {
				continue
			}
		case <-p.errors(): //nolint:errcheck // after any error, events may be lost
		case <-p.tick():
		}
		db.look()
	}
}

// look ends the watches if another file is at the path.
func (db *DB) look() {
	db.mu.Lock()
	defer db.mu.Unlock()
	_ = db.verify() // the close of the old file may fail, which does not concern the new one
}

// begin registers a watch and lists the keys. No write happens in between.
func (db *DB) begin(ctx context.Context, w *watch) (kvdbsync.Batch, error) {
	b := kvdbsync.Batch{Synced: true}
	err := db.view(ctx, func(bucket *bbolt.Bucket) error {
		b.Rev = int64(bucket.Tx().ID())
		b.Identity = identity(db.info)
		b.Events = make([]kvdbsync.Event, 0, count(bucket, w.prefix))
		err := each(bucket, w.prefix, db.cfg.Bounds, func(e kvdbsync.Event) error {
			b.Events = append(b.Events, e)
			return nil
		})
		if err != nil {
			return err
		}
		db.watches[w] = struct{}{}
		return nil
	})
	return b, err
}

// tell gives a batch to the watches. The mutex is held.
func (db *DB) tell(b kvdbsync.Batch) {
	for w := range db.watches {
		part := b
		part.Events = nil
		for _, e := range b.Events {
			if strings.HasPrefix(e.Key, w.prefix) {
				part.Events = append(part.Events, e)
			}
		}
		switch {
		case len(part.Events) == 0:
			continue
		case len(w.queue) == mostWaiting:
			db.end(w, fmt.Errorf("%s: watch: %w: %d transactions were waiting", db.cfg.Path, ErrBehind, mostWaiting))
			continue
		}
		w.queue = append(w.queue, part)
		w.wake()
	}
}

// endWatches ends all watches with err. The caller holds mu.
func (db *DB) endWatches(err error) {
	for w := range db.watches {
		db.end(w, fmt.Errorf("%s: %w", db.cfg.Path, err))
	}
}

// end ends one watch; it yields its queued batches first. The caller holds mu.
func (db *DB) end(w *watch, err error) {
	w.err = err
	delete(db.watches, w)
	w.wake()
}

// wake makes the watch look at its queue.
func (w *watch) wake() {
	w.more.Set()
}

// take takes the queued batches, and the error that ends the watch after them.
func (db *DB) take(w *watch) ([]kvdbsync.Batch, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	queue := w.queue
	w.queue = nil
	return queue, w.err
}

// forget removes a watch whose reader has gone.
func (db *DB) forget(w *watch) {
	db.mu.Lock()
	defer db.mu.Unlock()
	delete(db.watches, w)
}
