package filedb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Get returns the value of a key in the files or in the status file. An entry that is no
// value is an error. Like the other methods, it does not wait for a file that somebody is
// writing: what the file said before counts.
func (db *DB) Get(ctx context.Context, key string) ([]byte, error) {
	entries, err := db.entries(ctx, key)
	if err != nil {
		return nil, err
	}
	if e, ok := entries[key]; ok {
		return slices.Clone(e.value.Bytes()), e.err
	}
	published, err := db.status.under(key)
	if err != nil {
		return nil, err
	}
	for _, p := range published {
		if p.Key == key {
			return p.Value, nil
		}
	}
	return nil, fmt.Errorf("%w: %s", kvdbsync.ErrNotFound, key)
}

// List returns the pairs under prefix in the files and in the status file. Entries that
// are no values are left out.
func (db *DB) List(ctx context.Context, prefix string) ([]kvdbsync.Pair, error) {
	entries, err := db.entries(ctx, prefix)
	if err != nil {
		return nil, err
	}
	out, err := db.status.under(prefix)
	if err != nil {
		return nil, err
	}
	for key, e := range entries {
		if e.err == nil {
			out = append(out, kvdbsync.Pair{Key: key, Value: slices.Clone(e.value.Bytes())})
		}
	}
	slices.SortFunc(out, func(a, b kvdbsync.Pair) int { return cmp.Compare(a.Key, b.Key) })
	return out, nil
}

// Put returns ErrReadOnly, with the file to edit. All methods that write do so.
func (db *DB) Put(ctx context.Context, key string, _ []byte) error {
	entries, err := db.entries(ctx, key)
	if err != nil {
		return err
	}
	if e, ok := entries[key]; ok {
		return fmt.Errorf("%w: edit %s, where %s stands", kvdbsync.ErrReadOnly, e.origin, key)
	}
	return fmt.Errorf("%w: add %s to a file in %s", kvdbsync.ErrReadOnly, key, strings.Join(db.cfg.Paths, " or "))
}

// ReadOnly tells that no key can be written: files are edited as files.
func (db *DB) ReadOnly() bool { return true }

// PutIfAbsent is Put.
func (db *DB) PutIfAbsent(ctx context.Context, key string, value []byte) (stored bool, err error) {
	return false, db.Put(ctx, key, value)
}

// PutIfSame is Put.
func (db *DB) PutIfSame(ctx context.Context, key string, _, value []byte) (stored bool, err error) {
	return false, db.Put(ctx, key, value)
}

// Apply makes no change, and returns the error for the first one.
func (db *DB) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	for _, c := range changes {
		_, err := db.Delete(ctx, c.Key)
		if c.Value != nil {
			err = db.Put(ctx, c.Key, c.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Delete returns ErrReadOnly, unless there is nothing to delete.
func (db *DB) Delete(ctx context.Context, key string) (existed bool, err error) {
	entries, err := db.entries(ctx, key)
	if err != nil {
		return false, err
	}
	if e, ok := entries[key]; ok {
		return true, fmt.Errorf("%w: remove %s from %s", kvdbsync.ErrReadOnly, key, e.origin)
	}
	return false, nil
}

// entries returns the present entries of the files under a prefix.
func (db *DB) entries(ctx context.Context, prefix string) (map[string]*entry, error) {
	s, err := db.look(ctx, reason{everything: true})
	if err != nil {
		return nil, err
	}
	m := newMerger(prefix)
	m.update(s.files)
	return m.counts, nil
}
