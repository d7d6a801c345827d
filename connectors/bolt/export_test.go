package bolt

import (
	"context"
)

// PanicInside panics as the library does on a damaged page: with its locks held.
func (db *DB) PanicInside(ctx context.Context) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.open(ctx); err != nil {
		return err
	}
	return db.guarded(func() error {
		if _, err := db.file.Begin(true); err != nil {
			return err
		}
		if _, err := db.file.Begin(false); err != nil {
			return err
		}
		panic("page 7: invalid page type: 0: 0")
	})
}
