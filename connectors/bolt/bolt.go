// Package bolt is the store that is one file of the agent's own.
//
//	db, err := bolt.New(bolt.Config{Path: "/var/lib/keyplane/keys.db"})
//	defer db.Close()
//	for batch, err := range db.Watch(ctx, "/vnf-agent/vpp1/") { ... }
//	err = db.Put(ctx, "/vnf-agent/vpp1/config/...", value) // a kvdbsync.Writer
//	session, err := db.Session(ctx, 0)                     // and a kvdbsync.Publisher
//
// Only one process can have the file open, so whoever else wants to edit it asks
// this one. The file is opened, and made, at the first use; if that fails, the next
// use tries again. Keys lie as they are in one bucket, root, as they always have, and
// other buckets are left alone.
//
// Whoever replaces the file, by renaming another to its place, ends the watches and
// the sessions, and the next use reads the new one. A file that was there and is gone is
// waited for, and not made anew: whoever took it away may be about to put another there.
//
// A file that another program writes while it is open (truncates it, copies over it) is
// found changed at the next use or notification: it is closed, looked through without
// being written, and used again if it is whole. Otherwise every use returns ErrDamaged
// until a good file lies there. Nothing here waits for a damaged file.
//
// Each transaction is one batch, and its revision is the transaction's number in
// the file. Transactions go to watches in the order in which they were made, before
// the call that made them returns. A watch that does not keep up ends with an error,
// and starting over brings it up to date. [DB] may be used by many; a mutex guards the
// file and the watches. Keys and values handed out are copies.
//
// Tests: real files, a second opener, damaged and replaced files, and the conformance suite.
package bolt

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Errors that callers tell apart.
var (
	// ErrLocked says that another process has the file open.
	ErrLocked = errors.New("in use by another process")
	// ErrDamaged says that the file is no Bolt database, or no longer one.
	ErrDamaged = errors.New("is damaged or no Bolt database")
	// ErrReplaced ends the watches of a file in whose place there is another, or none.
	ErrReplaced = errors.New("is another file than it was")
	// ErrChanged ends the watches of a file that another program has written.
	ErrChanged = errors.New("was written by another program while it was open")
	// ErrGone says that the file has been there, and no longer is.
	ErrGone = errors.New("is gone")
	// ErrClosed ends the watches of a DB that is closed.
	ErrClosed = errors.New("closed")
	// ErrBehind ends a watch whose reader did not keep up.
	ErrBehind = errors.New("reader is too slow")
)

// Config is what bolt.conf holds.
type Config struct {
	// Path is the file. Required.
	Path string `yaml:"db-path"`
	// FileMode is the mode of a file that is made. Defaults to 0600.
	FileMode FileMode `yaml:"file-mode"`
	// LockTimeout is how long to wait for another process to close the file.
	// Defaults to 5 s.
	LockTimeout time.Duration `yaml:"lock-timeout"`
	// FilterDuplicates keeps a Put of the value that is already there from watches.
	FilterDuplicates bool `yaml:"filter-duplicate-notifications"`
	// Bounds limit what the agent reads of the file. The agent has one setting for all stores.
	Bounds kvdbsync.Bounds `yaml:"-"`
}

// A FileMode is written in octal as text, "0600", or as the number it is, 384.
type FileMode os.FileMode

// UnmarshalYAML reads either form.
func (m *FileMode) UnmarshalYAML(n *yaml.Node) error {
	base := 8
	if n.ShortTag() == "!!int" && !strings.HasPrefix(n.Value, "0") {
		base = 10
	}
	v, err := strconv.ParseUint(strings.TrimPrefix(n.Value, "0o"), base, 32)
	if n.Kind != yaml.ScalarNode || err != nil || v > 0o777 {
		return fmt.Errorf("found %q: expected octal digits in quotes, such as \"0600\"", n.Value)
	}
	*m = FileMode(v)
	return nil
}

// A DB is one file.
type DB struct {
	cfg Config

	mu       sync.Mutex  // guards what follows; held while the file is used
	file     *bbolt.DB   // nil: not open
	handle   *os.File    // of file, or of the attempt to open it; file owns it unless it is abandoned
	info     os.FileInfo // of the file as it was after this DB opened or wrote it last; nil: never
	suspect  bool        // the file is looked through before it is used again
	watches  map[*watch]struct{}
	sessions map[*session]struct{}
	owners   map[string]*session // of keys that sessions wrote
}

// New makes a DB, and touches nothing yet.
func New(cfg Config) (*DB, error) {
	if cfg.Path == "" {
		return nil, errors.New("db-path: empty: expected the path of a file")
	}
	if cfg.LockTimeout < 0 {
		return nil, fmt.Errorf("lock-timeout: %v: expected a duration above zero, such as 5s", cfg.LockTimeout)
	}
	if err := cfg.Bounds.Validate(); err != nil {
		return nil, err
	}
	cfg.Bounds = cfg.Bounds.WithDefaults()
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("db-path: %w", err)
	}
	cfg.Path = path
	cfg.FileMode = cmp.Or(cfg.FileMode, 0o600)
	cfg.LockTimeout = cmp.Or(cfg.LockTimeout, 5*time.Second)
	return &DB{cfg: cfg, watches: map[*watch]struct{}{}, sessions: map[*session]struct{}{}, owners: map[string]*session{}}, nil
}

// Close lets other processes have the file, and ends the watches with ErrClosed. A
// later use opens it again.
func (db *DB) Close() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.shut(ErrClosed)
}

// shut closes the file, and ends the watches with the reason. The mutex is held.
func (db *DB) shut(reason error) error {
	db.endWatches(reason)
	if db.file == nil {
		return nil
	}
	file := db.file
	db.file, db.handle = nil, nil
	if err := file.Close(); err != nil {
		return fmt.Errorf("closing %s: %w", db.cfg.Path, err)
	}
	return nil
}
