// Package bolt is a store in one file that belongs to the agent.
//
//	db, err := bolt.New(bolt.Config{Path: "/var/lib/keyplane/keys.db"})
//	defer db.Close()
//	for batch, err := range db.Watch(ctx, "/vnf-agent/vpp1/") { ... }
//	err = db.Put(ctx, "/vnf-agent/vpp1/config/...", value) // a kvdbsync.Writer
//	session, err := db.Session(ctx, 0)                     // and a kvdbsync.Publisher
//
// Only one process can have the file open, so other programs edit it through this one. The
// first use opens the file, and creates it if it is missing. If that fails, the next use
// tries again. Keys are stored unchanged in one bucket, root. Other buckets are left
// alone.
//
// If another file is renamed to the path, the watches and the sessions end, and the next
// use reads the new file. If an existing file disappears, the agent waits for its return
// and does not create a new one: the person that moved it may be about to put another one
// there.
//
// If another program truncates or overwrites the open file, the next use or notification
// finds that. The file is then closed, inspected without writing, and used again if it is
// whole. Otherwise every use returns ErrDamaged until a good file is at the path. No call
// waits for a damaged file.
//
// If the last sync of a transaction fails, its changes can be read, but a loss of power may
// take them. Then the watches and the sessions end, and the next use inspects the file.
//
// Each transaction is one batch, and its revision is the transaction's number in the file.
// Watches get transactions in their order, before the call that made them returns. A watch
// that does not keep up ends with an error, and its next start lists all keys. Any
// goroutine may use a [DB]; a mutex guards the file and the watches. Keys and values
// handed out are copies.
//
// Tests: real files, a second opener, damaged and replaced files, and the conformance
// suite.
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

// Errors that callers distinguish.
var (
	// ErrLocked means that another process has the file open.
	ErrLocked = errors.New("in use by another process")
	// ErrDamaged means that the file is no Bolt database, or no longer one.
	ErrDamaged = errors.New("is damaged or no Bolt database")
	// ErrReplaced ends the watches of a file that was removed or replaced by another one.
	ErrReplaced = errors.New("is another file than it was")
	// ErrChanged ends the watches of a file that another program has written.
	ErrChanged = errors.New("was written by another program while it was open")
	// ErrUncertain ends the watches and sessions of a file in which a transaction has failed
	// after its changes could be read.
	ErrUncertain = errors.New("may have lost its last transaction, which could not be synced")
	// ErrGone means that the file existed before and is missing now.
	ErrGone = errors.New("is gone")
	// ErrClosed ends the watches of a DB that is closed.
	ErrClosed = errors.New("closed")
	// ErrBehind ends a watch because its reader did not keep up.
	ErrBehind = errors.New("reader is too slow")
)

// Config is the content of bolt.conf.
type Config struct {
	// Path is the file. Required.
	Path string `yaml:"db-path"`
	// FileMode is the mode of a new file. Defaults to 0600.
	FileMode FileMode `yaml:"file-mode"`
	// LockTimeout is the longest wait for another process to close the file.
	// Defaults to 5 s.
	LockTimeout time.Duration `yaml:"lock-timeout"`
	// FilterDuplicates hides a Put of an unchanged value from watches.
	FilterDuplicates bool `yaml:"filter-duplicate-notifications"`
	// Bounds limit the number and the size of the values that the agent reads. The agent
	// has one setting for all stores.
	Bounds kvdbsync.Bounds `yaml:"-"`
}

// A FileMode is written as octal text, "0600", or as a decimal number, 384.
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

	mu       sync.Mutex  // guards the fields below; held while the file is used
	file     *bbolt.DB   // nil: not open
	handle   *os.File    // of file, or of the attempt to open it; file owns it unless it is abandoned
	info     os.FileInfo // of the file after this DB last opened or wrote it; nil: never
	suspect  bool        // the file is inspected before its next use
	watches  map[*watch]struct{}
	sessions map[*session]struct{}
	owners   map[string]*session // by key that a session wrote
}

// New makes a DB. It does not touch the file yet.
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

// Close lets other processes open the file, and ends the watches with ErrClosed. A later
// use opens it again.
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
