package bolt

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/keyplane/keyplane/internal/guard"
)

// bucket contains all keys.
const bucket = "root"

// view runs f with the present keys. It opens the file if necessary.
func (db *DB) view(ctx context.Context, f func(*bbolt.Bucket) error) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.open(ctx); err != nil {
		return err
	}
	return db.guarded(func() error {
		return db.file.View(func(tx *bbolt.Tx) error { return f(tx.Bucket([]byte(bucket))) })
	})
}

// open opens the file, and creates a missing file or bucket. The mutex is held.
func (db *DB) open(ctx context.Context) error {
	if err := db.verify(); err != nil {
		return err
	}
	if db.file != nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if db.info == nil {
		if err := os.MkdirAll(filepath.Dir(db.cfg.Path), 0o700); err != nil {
			return fmt.Errorf("opening %s: %w", db.cfg.Path, err)
		}
	}
	return db.guarded(func() error {
		if err := db.inspect(ctx); err != nil {
			return err
		}
		file, err := db.lock(ctx, false)
		if err != nil {
			return err
		}
		if err := prepare(file); err != nil {
			return errors.Join(err, file.Close())
		}
		db.file, db.suspect = file, false
		db.note()
		return nil
	})
}

// inspect reads all of a file that may be damaged, and writes nothing. A missing file is
// no error.
func (db *DB) inspect(ctx context.Context) error {
	if err := db.peek(); err != nil || !db.suspect {
		return err
	}
	file, err := db.lock(ctx, true)
	if err != nil {
		return err
	}
	err = file.View(func(tx *bbolt.Tx) error { return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error { return walk(b) }) })
	return errors.Join(err, file.Close())
}

// peek decides by the header whether the file must be inspected.
func (db *DB) peek() error {
	file, err := openFile(db.cfg.Path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(db.admit(file), file.Close())
}

// walk touches every page of a bucket.
func walk(b *bbolt.Bucket) error {
	return b.ForEach(func(k, v []byte) error {
		if v == nil {
			return walk(b.Bucket(k))
		}
		_, _ = crc32.ChecksumIEEE(k), crc32.ChecksumIEEE(v) // reads every byte
		return nil
	})
}

// prepare makes the bucket if the file has none. Otherwise the file is not written.
func prepare(file *bbolt.DB) error {
	missing := false
	err := file.View(func(tx *bbolt.Tx) error {
		missing = tx.Bucket([]byte(bucket)) == nil
		return nil
	})
	if err != nil || !missing {
		return err
	}
	return file.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists([]byte(bucket))
		return err
	})
}

// lock opens the file as soon as no other process has it. It tries in steps short enough
// to notice the end of ctx.
func (db *DB) lock(ctx context.Context, readOnly bool) (*bbolt.DB, error) {
	const step = 100 * time.Millisecond
	deadline := time.Now().Add(db.cfg.LockTimeout)
	for {
		o := *bbolt.DefaultOptions
		o.OpenFile, o.ReadOnly = db.opener, readOnly
		o.Timeout = min(step, max(time.Millisecond, time.Until(deadline)))
		file, err := bbolt.Open(db.cfg.Path, os.FileMode(db.cfg.FileMode), &o)
		switch {
		case !errors.Is(err, bolterrors.ErrTimeout):
			return file, err
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !time.Now().Before(deadline):
			return nil, fmt.Errorf("%w (waited %v for it to be closed)", ErrLocked, db.cfg.LockTimeout)
		}
	}
}

// guarded runs a function that uses the file, and adds the path to its errors. The library
// panics on invalid data in a file, and memory behind the end of a mapped file cannot be
// read. Both become errors here, and the open file is abandoned.
func (db *DB) guarded(f func() error) error {
	err := guard.Mapped(f)
	var bug *guard.Panic
	var path *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bug):
		damage := fmt.Errorf("%w: %s; %s", ErrDamaged, panicText(bug), cure)
		db.abandon(damage)
		return fmt.Errorf("%s: %w", db.cfg.Path, damage)
	case db.info != nil && errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w: put it back; or restart the agent, which makes an empty one", db.cfg.Path, ErrGone)
	case errors.As(err, &path):
		return err
	case errors.Is(err, ErrDamaged):
		return fmt.Errorf("%s: %w; %s", db.cfg.Path, err, cure)
	case isDamage(err):
		return fmt.Errorf("%s: %w: %w; %s", db.cfg.Path, ErrDamaged, err, cure)
	}
	return fmt.Errorf("%s: %w", db.cfg.Path, err)
}

// cure tells people how to repair a damaged file.
const cure = "move it away, or put a good copy in its place"

// panicText describes a panic of the library. The text of a memory fault does not help
// people.
func panicText(p *guard.Panic) string {
	if p.BadAddress() {
		return "part of it cannot be read"
	}
	return fmt.Sprint(p.Value)
}

// isDamage recognises the errors of bbolt that mean a damaged file. Others, such as a
// missing right, pass by themselves.
func isDamage(err error) bool {
	for _, one := range []error{bolterrors.ErrInvalid, bolterrors.ErrChecksum, bolterrors.ErrVersionMismatch, bolterrors.ErrInvalidMapping} {
		if errors.Is(err, one) {
			return true
		}
	}
	return strings.HasPrefix(err.Error(), "file size too small") // has no name in bbolt
}
