// Package memory is a scheduler.Memory in a bbolt file, so that after a restart
// the agent knows what it had made.
//
//	m, err := memory.Open("/var/lib/keyplane/applied.db", log)
//	go m.Run(ctx)
//	s := scheduler.New(scheduler.Options{Memory: m})
//	...
//	err = m.Close()
//
// Nobody waits for the disk: Save takes note, and Run writes behind, at most once
// a [Pause]. What is noted meanwhile is merged key by key, so memory is bounded by the
// number of keys. A process that is killed may so lose what it saved within the last
// Pause; what was written before is on disk, also after a loss of power. Close writes
// the rest. A disk that is full or fails is tried again and disturbs nothing else. A
// key of more than 32 KiB is not remembered, with a warning.
//
// The file belongs to one process at a time. One that cannot be read is set aside,
// and a new one begun. Tested on real files, and on a real file system that is full.
package memory

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// File is a memory in a file.
type File struct {
	db   *bbolt.DB
	log  *slog.Logger
	news pending
}

var bucket = []byte("applied")

// ErrInUse says that another process has the file.
var ErrInUse = errors.New("another process has it: want a folder of its own for each agent")

// Open opens the file, or makes it with mode 0600. One that is broken is renamed to
// PATH.broken, with a warning, and a new one is made. log defaults to slog.Default.
func Open(path string, log *slog.Logger) (*File, error) {
	log = cmp.Or(log, slog.Default()).With("file", path)
	db, err := open(path)
	if err != nil && !unreachable(err) {
		broken := err
		if err := os.Rename(path, path+".broken"); err != nil {
			return nil, fmt.Errorf("memory: setting a broken file aside: %w", err)
		}
		log.Warn("file is broken, and set aside: what it remembered is forgotten", "aside", path+".broken", "err", broken)
		db, err = open(path)
	}
	if err != nil {
		return nil, fmt.Errorf("memory %s: %w", path, err)
	}
	return &File{db: db, log: log, news: newPending()}, nil
}

// unreachable tells an error of the file system or of another process from what a
// broken file makes.
func unreachable(err error) bool {
	var at *fs.PathError
	return errors.Is(err, ErrInUse) || errors.As(err, &at)
}

func open(path string) (db *bbolt.DB, err error) {
	err = guarded(func() (err error) {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 2 * time.Second})
		return err
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, ErrInUse
	case err != nil:
		return nil, err
	}
	if err := read(db, func(_, _ []byte) bool { return true }); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// guarded makes an error of what the library does with a broken file: it panics, or
// reads where nothing is.
func guarded(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("broken: %v", p)
		}
	}()
	return do()
}

// read yields all pairs, which are valid until yield returns.
func read(db *bbolt.DB, yield func(key, value []byte) bool) error {
	return guarded(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			b := tx.Bucket(bucket)
			if b == nil {
				return nil
			}
			c := b.Cursor()
			for k, v := c.First(); k != nil && yield(k, v); k, v = c.Next() {
			}
			return nil
		})
	})
}

// Load yields all that is on disk. The values are the caller's.
func (f *File) Load() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		err := read(f.db, func(k, v []byte) bool { return yield(string(k), append([]byte{}, v...)) })
		if err != nil {
			f.log.Error("part of what is remembered cannot be read", "err", err)
		}
	}
}

// Save remembers the values that are not nil, and forgets the others. It never
// fails: what cannot be written yet is written later. The map is f's then, and its
// values are not changed any more.
func (f *File) Save(changes map[string][]byte) error {
	f.news.add(changes)
	return nil
}

// Close writes what is not written yet, and closes the file.
func (f *File) Close() error { return errors.Join(f.write(), f.db.Close()) }
