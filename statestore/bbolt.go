package statestore

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/keyplane/keyplane/internal/guard"
	"github.com/keyplane/keyplane/internal/plainfile"
)

// TakeOver replaces the content of the Store by that of a bbolt file of an earlier
// version, and removes the file. After a kill at any moment, it can be repeated. A damaged
// file is renamed to PATH.broken, and the Store is then stale. A missing file is not an
// error.
func (s *Store) TakeOver(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	old, err := readBolt(path)
	var at *fs.PathError
	switch {
	case errors.Is(err, ErrInUse), errors.As(err, &at):
		return fmt.Errorf("taking over %s: %w", path, err)
	case err != nil:
		return s.refuseBolt(path, err)
	}
	for key := range s.Load() {
		if _, keeps := old[key]; !keeps {
			old[key] = nil
		}
	}
	err = s.Record(maps.All(old))
	if err == nil {
		err = s.syncNow()
	}
	if err == nil {
		err = s.Renew()
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return fmt.Errorf("taking over %s: %w", path, err)
	}
	s.log.Info("state of an earlier version is taken over", "file", path, "keys", len(old))
	return nil
}

// refuseBolt sets a damaged file of an earlier release aside, and notes that the saved
// state is incomplete.
func (s *Store) refuseBolt(path string, damage error) error {
	aside := path + brokenSuffix
	if err := os.Rename(path, aside); err != nil {
		return fmt.Errorf("setting a damaged file aside: %w", err)
	}
	s.log.Warn("file is damaged and set aside", "file", aside, "err", damage, "bytes_used", 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = fmt.Errorf("%s: %w", path, damage)
	return s.unmark()
}

// syncNow writes the journal to disk.
func (s *Store) syncNow() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal == nil {
		return ErrClosed
	}
	return s.journal.sync()
}

// readBolt returns the content of a file of an earlier version.
func readBolt(path string) (all map[string][]byte, err error) {
	// The library panics, or reads behind the end of the file, if a file is damaged.
	err = guard.Mapped(func() error {
		all, err = readBucket(path)
		return err
	})
	if damage, ok := errors.AsType[*guard.Panic](err); ok {
		return nil, fmt.Errorf("damaged: %v", damage.Value)
	}
	return all, err
}

// readBucket reads the file of an earlier release. It waits 2 s for an agent that has it
// open.
func readBucket(path string) (all map[string][]byte, err error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: 2 * time.Second, OpenFile: plainfile.OpenFile})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, ErrInUse
	}
	if err != nil {
		return nil, err
	}
	defer db.Close()
	all = map[string][]byte{}
	return all, db.View(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("applied")) // in all files
		if b == nil {
			return nil
		}
		return b.ForEach(func(key, value []byte) error {
			all[string(key)] = append([]byte{}, value...)
			return nil
		})
	})
}
