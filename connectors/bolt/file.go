package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// bucket is where all keys are.
const bucket = "root"

// view runs f with the keys, as of now. The file is opened if it is not.
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

// open opens the file, and makes what is missing. The mutex is held.
func (db *DB) open(ctx context.Context) error {
	if err := db.verify(); err != nil {
		return err
	}
	if db.file != nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if db.info == nil {
		if err := os.MkdirAll(filepath.Dir(db.cfg.Path), 0o755); err != nil {
			return fmt.Errorf("opening %s: %w", db.cfg.Path, err)
		}
	}
	return db.guarded(func() error {
		var info os.FileInfo
		file, err := db.lock(ctx, db.opener(&info))
		if err != nil {
			return err
		}
		if err := prepare(file); err != nil {
			return errors.Join(err, file.Close())
		}
		db.file, db.info = file, info
		return nil
	})
}

// prepare makes the bucket in a file that has none. A file that has one is not written.
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

// lock opens the file as soon as no other process has it, in steps short enough to
// notice the end of ctx.
func (db *DB) lock(ctx context.Context, open func(string, int, os.FileMode) (*os.File, error)) (*bbolt.DB, error) {
	const step = 100 * time.Millisecond
	deadline := time.Now().Add(db.cfg.LockTimeout)
	for {
		o := *bbolt.DefaultOptions
		o.OpenFile = open
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

// guarded runs what touches the file, and gives its errors the path. The library
// panics where it finds nonsense in a file, and a file that has become shorter is a
// fault of memory: both are errors here.
func (db *DB) guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %w: %v", db.cfg.Path, ErrDamaged, p)
		}
	}()
	err = f()
	var path *fs.PathError
	switch {
	case err == nil:
		return nil
	case db.info != nil && errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w: put it back; or start the agent anew, which makes an empty one", db.cfg.Path, ErrGone)
	case errors.As(err, &path):
		return err
	case isDamage(err):
		return fmt.Errorf("%s: %w: %w; move it away, or put a good copy in its place", db.cfg.Path, ErrDamaged, err)
	}
	return fmt.Errorf("%s: %w", db.cfg.Path, err)
}

func isDamage(err error) bool {
	for _, one := range []error{bolterrors.ErrInvalid, bolterrors.ErrChecksum, bolterrors.ErrVersionMismatch, bolterrors.ErrInvalidMapping} {
		if errors.Is(err, one) {
			return true
		}
	}
	return strings.HasPrefix(err.Error(), "file size too small") // has no name in bbolt
}
