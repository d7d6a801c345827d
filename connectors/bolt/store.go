package bolt

import (
	"bytes"
	"context"
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
		value = clone(stored)
		return nil
	})
	return value, err
}

// List returns the pairs under prefix.
func (db *DB) List(ctx context.Context, prefix string) (pairs []kvdbsync.Pair, err error) {
	err = db.view(ctx, func(b *bbolt.Bucket) error {
		pairs = []kvdbsync.Pair{}
		each(b, prefix, func(key string, value []byte) { pairs = append(pairs, kvdbsync.Pair{Key: key, Value: value}) })
		return nil
	})
	return pairs, err
}

// Put writes one key. It is on disk, and with the watches, when Put returns.
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
		if stored = b.Get([]byte(key)) == nil; !stored {
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

// write runs f in a transaction, and tells the watches what f returns.
func (db *DB) write(ctx context.Context, f func(*bbolt.Bucket) ([]kvdbsync.Event, error)) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.writeLocked(ctx, f)
}

func (db *DB) writeLocked(ctx context.Context, f func(*bbolt.Bucket) ([]kvdbsync.Event, error)) error {
	if err := db.open(ctx); err != nil {
		return err
	}
	var batch kvdbsync.Batch
	err := db.guarded(func() error {
		defer db.note() // also a transaction that fails may have written
		return db.file.Update(func(tx *bbolt.Tx) (err error) {
			batch.Rev = int64(tx.ID())
			batch.Events, err = f(tx.Bucket([]byte(bucket)))
			return err
		})
	})
	if err != nil {
		return err
	}
	for i := range batch.Events {
		batch.Events[i].Rev = batch.Rev
	}
	db.tell(batch)
	return nil
}

// apply changes the bucket, and returns what watches are to know of it. Where a key
// comes twice, the last event of it is what counts.
func (db *DB) apply(b *bbolt.Bucket, pairs []kvdbsync.Pair) ([]kvdbsync.Event, error) {
	var events []kvdbsync.Event
	for _, p := range pairs {
		before := clone(b.Get([]byte(p.Key)))
		if err := set(b, p); err != nil {
			return nil, err
		}
		noChange := before == nil && p.Value == nil
		repeated := p.Value != nil && before != nil && bytes.Equal(before, p.Value)
		if noChange || repeated && db.cfg.FilterDuplicates {
			continue
		}
		events = append(events, kvdbsync.Event{Key: p.Key, Value: clone(p.Value)})
	}
	return events, nil
}

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

// each calls f with a copy of each pair under prefix.
func each(b *bbolt.Bucket, prefix string, f func(key string, value []byte)) {
	c := b.Cursor()
	for k, v := c.Seek([]byte(prefix)); k != nil && bytes.HasPrefix(k, []byte(prefix)); k, v = c.Next() {
		if v != nil { // else a bucket of someone else's
			f(string(k), clone(v))
		}
	}
}

// count is how many pairs there are under a prefix, so that room is made once for them.
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
