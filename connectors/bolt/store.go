package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Get returns the value of a key.
func (db *DB) Get(ctx context.Context, key string) (value []byte, err error) {
	err = db.view(ctx, func(b *bbolt.Bucket) error {
		stored := b.Get([]byte(key))
		if stored == nil {
			return fmt.Errorf("%w: %s", kvdbsync.ErrNotFound, key)
		}
		if err := db.cfg.Bounds.CheckValue(int64(len(stored))); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		value = clone(stored)
		return nil
	})
	return value, err
}

// List returns the pairs under prefix.
func (db *DB) List(ctx context.Context, prefix string) (pairs []kvdbsync.Pair, err error) {
	err = db.view(ctx, func(b *bbolt.Bucket) error {
		pairs = []kvdbsync.Pair{}
		return each(b, prefix, db.cfg.Bounds, func(e kvdbsync.Event) error {
			if e.Err != nil {
				return fmt.Errorf("%s: %w", e.Key, e.Err)
			}
			pairs = append(pairs, kvdbsync.Pair{Key: e.Key, Value: e.Value})
			return nil
		})
	})
	return pairs, err
}

// Put writes one key. When Put returns, the value is on disk and the watches have it.
func (db *DB) Put(ctx context.Context, key string, value []byte) error {
	return db.Apply(ctx, []kvdbsync.Pair{{Key: key, Value: append([]byte{}, value...)}})
}

// Delete removes one key.
func (db *DB) Delete(ctx context.Context, key string) (existed bool, err error) {
	err = db.write(ctx, func(b *bbolt.Bucket) ([]kvdbsync.Event, error) {
		existed = b.Get([]byte(key)) != nil
		return db.apply(b, []kvdbsync.Pair{{Key: key}})
	})
	return existed, err
}

// PutIfAbsent implements kvdbsync.Writer.
func (db *DB) PutIfAbsent(ctx context.Context, key string, value []byte) (stored bool, err error) {
	err = db.write(ctx, func(b *bbolt.Bucket) ([]kvdbsync.Event, error) {
		stored = b.Get([]byte(key)) == nil
		if !stored {
			return nil, nil
		}
		return db.apply(b, []kvdbsync.Pair{{Key: key, Value: append([]byte{}, value...)}})
	})
	return stored && err == nil, err
}

// PutIfSame implements kvdbsync.Writer.
func (db *DB) PutIfSame(ctx context.Context, key string, old, value []byte) (stored bool, err error) {
	err = db.write(ctx, func(b *bbolt.Bucket) ([]kvdbsync.Event, error) {
		now := b.Get([]byte(key))
		stored = now != nil && bytes.Equal(now, old)
		if !stored {
			return nil, nil
		}
		return db.apply(b, []kvdbsync.Pair{{Key: key, Value: append([]byte{}, value...)}})
	})
	return stored && err == nil, err
}

// Apply writes any number of keys in one transaction; a nil Value deletes.
func (db *DB) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	return db.write(ctx, func(b *bbolt.Bucket) ([]kvdbsync.Event, error) { return db.apply(b, changes) })
}

// write runs f in a transaction, and gives its events to the watches.
func (db *DB) write(ctx context.Context, f func(*bbolt.Bucket) ([]kvdbsync.Event, error)) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.writeLocked(ctx, f)
}

// writeLocked runs f in one transaction, and tells the watches what it changed. The caller
// holds mu.
func (db *DB) writeLocked(ctx context.Context, f func(*bbolt.Bucket) ([]kvdbsync.Event, error)) error {
	if err := db.open(ctx); err != nil {
		return err
	}
	var batch kvdbsync.Batch
	err := db.guarded(func() error {
		defer db.note() // a failed transaction may have written too
		return db.file.Update(func(tx *bbolt.Tx) (err error) {
			batch.Rev = int64(tx.ID())
			batch.Events, err = f(tx.Bucket([]byte(bucket)))
			return err
		})
	})
	if err != nil {
		return errors.Join(err, db.doubt(batch.Rev))
	}
	for i := range batch.Events {
		batch.Events[i].Rev = batch.Rev
	}
	db.tell(batch)
	return nil
}

// doubt ends the watches and the sessions if readers see the transaction rev, which has failed.
// The library writes its header before the last sync, and a failure of the sync does not undo
// that. A transaction that failed earlier has changed nothing. The caller holds mu.
func (db *DB) doubt(rev int64) error {
	if db.file == nil || rev == 0 {
		return nil // the file was abandoned, or the transaction did not begin
	}
	seen := int64(0)
	err := db.guarded(func() error {
		return db.file.View(func(tx *bbolt.Tx) error {
			seen = int64(tx.ID())
			return nil
		})
	})
	if err == nil && seen < rev {
		return nil
	}
	db.suspect = true
	db.endSessions()
	return errors.Join(err, db.shut(ErrUncertain))
}

// apply changes the bucket, and returns the events for watches. If a key occurs twice, its
// last event takes effect.
func (db *DB) apply(b *bbolt.Bucket, pairs []kvdbsync.Pair) ([]kvdbsync.Event, error) {
	var events []kvdbsync.Event
	for _, p := range pairs {
		if err := db.cfg.Bounds.CheckValue(int64(len(p.Value))); err != nil {
			return nil, fmt.Errorf("%w: key %.80q: %w", kvdbsync.ErrTooLarge, p.Key, err)
		}
		before := b.Get([]byte(p.Key)) // valid until the bucket is changed
		repeated := p.Value != nil && before != nil && bytes.Equal(before, p.Value)
		noChange := before == nil && p.Value == nil
		if err := set(b, p); err != nil {
			return nil, err
		}
		if noChange || repeated && db.cfg.FilterDuplicates {
			continue
		}
		events = append(events, kvdbsync.Event{Key: p.Key, Value: clone(p.Value)})
	}
	return events, nil
}

// set puts a pair, or deletes the key for a nil value.
func set(b *bbolt.Bucket, p kvdbsync.Pair) error {
	var err error
	if p.Value == nil {
		err = b.Delete([]byte(p.Key))
	} else {
		err = b.Put([]byte(p.Key), p.Value)
	}
	if err != nil {
		return fmt.Errorf("key %.80q: %w", p.Key, err)
	}
	return nil
}

// each calls f with an event of each pair under prefix. A value that is too large is not
// copied; its event has an error. A listing beyond the bounds is an error.
func each(b *bbolt.Bucket, prefix string, bounds kvdbsync.Bounds, f func(kvdbsync.Event) error) error {
	tally := kvdbsync.NewTally(bounds)
	c := b.Cursor()
	for k, v := c.Seek([]byte(prefix)); k != nil && bytes.HasPrefix(k, []byte(prefix)); k, v = c.Next() {
		if v == nil { // a bucket of another program
			continue
		}
		e := kvdbsync.Event{Key: string(k), Err: bounds.CheckValue(int64(len(v)))}
		if e.Err == nil {
			e.Value = clone(v)
		}
		if err := cmp.Or(tally.Pair(e.Key, len(e.Value)), f(e)); err != nil {
			return err
		}
	}
	return nil
}

// count returns the number of pairs under a prefix, so that their memory is allocated
// once.
func count(b *bbolt.Bucket, prefix string) (n int) {
	c := b.Cursor()
	for k, _ := c.Seek([]byte(prefix)); k != nil && bytes.HasPrefix(k, []byte(prefix)); k, _ = c.Next() {
		n++
	}
	return n
}

// clone copies a value out of a transaction. nil stays nil, and empty stays empty.
func clone(v []byte) []byte {
	if v == nil {
		return nil
	}
	return append([]byte{}, v...)
}
