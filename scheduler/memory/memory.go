// Package memory is a scheduler.Memory in a bbolt file, so that after a restart
// the agent knows what it had made.
//
//	m, err := memory.Open("/var/lib/keyplane/applied.db")
//	defer m.Close()
//	s := scheduler.New(scheduler.Options{Memory: m})
//
// The file belongs to one process at a time. Each Save is one transaction, on
// disk when it returns. Tested on real files.
package memory

import (
	"fmt"
	"iter"
	"time"

	"go.etcd.io/bbolt"
)

// File is a memory in a file.
type File struct{ db *bbolt.DB }

var bucket = []byte("applied")

// Open opens the file, or makes it. It fails when another process has it.
func Open(path string) (*File, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 2 * time.Second})
	if err != nil {
		return nil, fmt.Errorf("memory of what was applied: %s: %w", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucket)
		return err
	})
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("memory of what was applied: %s: %w", path, err)
	}
	return &File{db}, nil
}

// Close closes the file.
func (f *File) Close() error { return f.db.Close() }

// Load yields all that is remembered. The values are the caller's.
func (f *File) Load() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		_ = f.db.View(func(tx *bbolt.Tx) error { // fails only when closed
			c := tx.Bucket(bucket).Cursor()
			for k, v := c.First(); k != nil; k, v = c.Next() {
				if !yield(string(k), append([]byte{}, v...)) {
					return nil
				}
			}
			return nil
		})
	}
}

// Save remembers the values that are not nil, and forgets the others.
func (f *File) Save(changes map[string][]byte) error {
	return f.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucket)
		for key, value := range changes {
			if value == nil {
				if err := b.Delete([]byte(key)); err != nil {
					return err
				}
			} else if err := b.Put([]byte(key), value); err != nil {
				return err
			}
		}
		return nil
	})
}
