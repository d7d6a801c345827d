package bolt

import (
	"context"

	"go.etcd.io/bbolt"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Beside implements kvdbsync.Browser: a cursor seeks from folder to folder.
func (db *DB) Beside(ctx context.Context, prefix string, known []string) (names []string, err error) {
	err = db.view(ctx, func(b *bbolt.Bucket) (err error) {
		c := b.Cursor()
		names, err = kvdbsync.Leap(prefix, known, func(from, to string) (string, error) {
			key, _ := c.Seek([]byte(from))
			if string(key) >= to {
				return "", nil
			}
			return string(key), nil
		})
		return err
	})
	return names, err
}
