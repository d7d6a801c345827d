package filedb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Get returns what the files say about a key. An entry that is no value is an error.
func (db *DB) Get(ctx context.Context, key string) ([]byte, error) {
	entries, err := db.entries(ctx, key)
	if err != nil {
		return nil, err
	}
	e, ok := entries[key]
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: %s", kvdbsync.ErrNotFound, key)
	case e.err != nil:
		return nil, e.err
	}
	return slices.Clone(e.value), nil
}

// List leaves out entries that are no values.
func (db *DB) List(ctx context.Context, prefix string) ([]kvdbsync.Pair, error) {
	entries, err := db.entries(ctx, prefix)
	if err != nil {
		return nil, err
	}
	out := make([]kvdbsync.Pair, 0, len(entries))
	for key, e := range entries {
		if e.err == nil {
			out = append(out, kvdbsync.Pair{Key: key, Value: slices.Clone(e.value)})
		}
	}
	slices.SortFunc(out, func(a, b kvdbsync.Pair) int { return cmp.Compare(a.Key, b.Key) })
	return out, nil
}

// Put returns ErrReadOnly, and says which file to edit.
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

// Delete returns ErrReadOnly, and says which file to edit.
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

// entries returns what the files say under a prefix, now.
func (db *DB) entries(ctx context.Context, prefix string) (map[string]entry, error) {
	n := newNotifier(db.cfg, db.log)
	defer n.close()
	s, _, err := db.settle(ctx, n, true)
	if err != nil {
		return nil, err
	}
	entries, _ := merge(s.files, prefix)
	return entries, nil
}
