package statestore

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/plainfile"
	"github.com/keyplane/keyplane/internal/wake"
)

// Options configure a Store; the zero value works.
type Options struct {
	Log *slog.Logger // Defaults to slog.Default
	// Affects names the consequences if this state is lost or stale, for the log. Defaults
	// to nothing.
	Affects string
	// CompactAt is the minimum size of the journals in bytes before they are merged into a
	// new snapshot. While changes come, it is at least 128 MiB. Defaults to 4 MiB.
	CompactAt int64
	// Aside is a folder on another file system that outlives the process, such as one below /run. Where the disk refuses
	// even the mark of a stale Store, because it is read-only now, a file there says so to the next start. Defaults to none.
	Aside string
}

// A Store is a folder of state; see the package documentation.
type Store struct {
	dir       string
	log       *slog.Logger
	aside     string // the file that says that the Store is stale although it is marked as complete; "": none
	compactAt int64
	folder    *os.File // holds the lock
	ready     wake.Signal
	merging   atomic.Bool // a merge is under way, or files that were lost are written anew
	merges    sync.WaitGroup
	since     atomic.Pointer[time.Time] // the beginning of a write that is under way; nil: there is none
	mergeHook func()                    // for tests: runs before a merge reads the files; nil: none

	mu      sync.Mutex // guards the fields below
	journal *journal   // the present journal; nil: closed
	before  []held     // the files before it: the content is there as long as they are open, whatever becomes of their names
	base    int64      // bytes of the snapshot
	sealed  int64      // bytes of the journals before journal
	retryAt int64      // the journals' size in bytes before the next attempt at a snapshot
	dirty   bool       // there are changes to sync
	stale   error      // why the files may be older than the last saved state; nil: they are not
	failure reason     // why pending could not be written; nil: nothing is pending
	pending map[string][]byte
	// unsynced says that the disk has refused what was written, and may have lost it.
	unsynced bool
	buf      []byte
}

var (
	// ErrInUse says that another process has the folder.
	ErrInUse = errors.New("another process uses this folder; each agent needs a folder of its own")
	// ErrStale says that state could not be written before the last end.
	ErrStale = errors.New("the last changes could not be written")
	// ErrClosed is the error after Close.
	ErrClosed = errors.New("the state is closed")
)

// Open opens the Store in dir, and creates dir with mode 0700 if it is missing. It fails
// if the folder cannot be used. Damaged files are no error here; Stale reports them.
func Open(dir string, opts Options) (*Store, error) {
	s := &Store{
		dir: dir, log: cmp.Or(opts.Log, slog.Default()).With("state", dir),
		compactAt: cmp.Or(opts.CompactAt, 4<<20), ready: wake.New(), pending: map[string][]byte{},
	}
	if opts.Aside != "" {
		at, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("state %s: %w", dir, err)
		}
		s.aside = filepath.Join(opts.Aside, fmt.Sprintf("stale-%x", sha256.Sum256([]byte(at))))
	}
	if opts.Affects != "" {
		s.log = s.log.With("affects", opts.Affects)
	}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("state %s: %w", dir, errors.Join(err, s.release()))
	}
	return s, nil
}

// open locks the folder and reads its files. Damaged ones are set aside, and the rest is
// used.
func (s *Store) open() error {
	if err := plainfile.MakeOwn(s.dir); err != nil {
		return err
	}
	if err := s.lock(2 * time.Second); err != nil {
		return err
	}
	found, err := look(s.dir)
	if err == nil {
		err = found.examine()
	}
	if err != nil {
		return err
	}
	s.stale = found.stale()
	if s.stale == nil && !found.empty() && s.noted() {
		s.stale = ErrStale
	}
	switch {
	case found.empty():
		s.log.Info("there is no state of an earlier run")
	case s.stale != nil:
		s.log.Warn("state of the earlier run is stale", "err", s.stale)
	}
	if s.stale != nil {
		if err := s.unmark(); err != nil {
			return err
		}
	}
	if err := s.takeUp(found); err != nil {
		return err
	}
	if err := s.hold(); err != nil || s.stale != nil {
		return err
	}
	return s.mark()
}

// lock takes the lock of the folder, and waits a moment for a process that is ending.
func (s *Store) lock(timeout time.Duration) error {
	folder, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for late := time.Now().Add(timeout); ; <-again.C {
		err = unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			s.folder = folder
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK):
			return errors.Join(&os.PathError{Op: "flock", Path: s.dir, Err: err}, folder.Close())
		case time.Now().After(late):
			return errors.Join(ErrInUse, folder.Close())
		}
	}
}

// release unlocks the folder.
func (s *Store) release() error {
	if s.folder == nil {
		return nil
	}
	return s.folder.Close()
}

// Stale returns the reason why the content may be older than the last saved state, or
// incomplete, or nil. The content was correct at some time.
func (s *Store) Stale() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stale
}

// Renew declares the present content correct and ends the mark of a stale Store.
func (s *Store) Renew() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = nil
	if s.failure.get() != nil {
		return nil // recover marks it as complete after all is written
	}
	return s.mark()
}

// Load yields all pairs. The caller owns the values.
func (s *Store) Load() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		all, err := s.load()
		if err != nil {
			s.log.Error("state cannot be read", "err", err)
		}
		for key, value := range all {
			if !yield(key, value) {
				return
			}
		}
	}
}

// load returns the saved content, from the snapshot and the journals after it.
func (s *Store) load() (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string][]byte{}
	if s.journal == nil {
		return nil, ErrClosed
	}
	for _, one := range s.parts() {
		_, err := readFile(one.path, func(content []byte) {
			for key, value := range changes(content) {
				change(all, string(key), value)
			}
		})
		if err != nil {
			return all, err
		}
	}
	for key, value := range s.pending {
		change(all, key, value)
	}
	return all, nil
}

// change enters a put or a removal.
func change(all map[string][]byte, key string, value []byte) {
	if value == nil {
		delete(all, key)
	} else {
		all[key] = value
	}
}

// Save stores the values that are not nil, and deletes the keys of the others. If a key
// occurs twice, the last one wins. When Save returns, a kill of the process does not lose
// the changes. It does not wait for the disk. If they cannot be written, the Store is
// marked as stale, keeps them in memory, and tries again; that is no error. The caller
// must not change the values any more.
func (s *Store) Save(changes iter.Seq2[string, []byte]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.work()()
	if s.journal == nil {
		return ErrClosed
	}
	if s.failure.get() == nil {
		err := s.append(changes)
		if err == nil {
			return nil
		}
		s.fail(err)
	}
	maps.Insert(s.pending, changes)
	return nil
}

// Record is like Save, but returns an error if the changes cannot be written, and then
// keeps none of them.
func (s *Store) Record(changes iter.Seq2[string, []byte]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.work()()
	if s.journal == nil {
		return ErrClosed
	}
	if err := s.recover(); err != nil {
		return err
	}
	return s.append(changes)
}

// Sync returns when the disk has everything that was saved. Other calls wait meanwhile.
func (s *Store) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.work()()
	if s.journal == nil {
		return ErrClosed
	}
	if err := s.recover(); err != nil {
		return err
	}
	err := s.present()
	if err == nil {
		err = errors.Join(s.journal.sync(), s.folder.Sync())
	}
	if err != nil {
		s.failSync(err)
	}
	return err
}

// append writes changes to the journal, all or none. The caller holds mu.
func (s *Store) append(changes iter.Seq2[string, []byte]) (err error) {
	if err := s.present(); err != nil {
		return err
	}
	s.buf, err = s.journal.append(s.buf, changes)
	if cap(s.buf) > recordSize/4 {
		s.buf = nil
	}
	if err != nil {
		return err
	}
	s.soon()
	return nil
}

// soon makes Run sync the written changes. The caller holds mu.
func (s *Store) soon() {
	s.dirty = true
	s.ready.Set()
}

// fail starts to keep unwritten changes in memory, and marks the Store as stale. The
// caller holds mu.
func (s *Store) fail(err error) {
	s.failure.set(err)
	s.log.Error("state cannot be written, is marked as stale, and is tried again", "err", err)
	if err := s.unmark(); err != nil {
		if err = errors.Join(err, s.noteAside()); s.noted() {
			s.log.Warn("state cannot be marked as stale on its disk; a file elsewhere says so until the host starts again", "file", s.aside)
		} else {
			s.log.Error("state cannot be marked as stale: a restart may use what was written before the failure", "err", err)
		}
	}
	s.soon()
}

// failSync is fail after the disk has not taken what was written. Another attempt to sync could succeed although the disk has
// lost it, since Linux reports such an error once (fsync(2)): so all is written anew. The caller holds mu.
func (s *Store) failSync(err error) {
	s.unsynced = true
	s.fail(err)
}

// recover writes the changes that could not be written before. The caller holds mu.
func (s *Store) recover() error {
	if s.failure.get() == nil {
		return nil
	}
	if s.unsynced {
		if err := s.writeAnew(); err != nil {
			return err
		}
		s.unsynced = false
	}
	err := s.append(maps.All(s.pending))
	if err == nil {
		err = errors.Join(s.journal.sync(), s.folder.Sync())
		s.unsynced = err != nil
	}
	if err == nil && s.stale == nil {
		err = s.mark()
	}
	if err != nil {
		return err
	}
	s.pending = map[string][]byte{}
	s.failure.set(nil)
	s.log.Info("state is written again")
	return nil
}

// snapshot returns the path of the snapshot.
func (s *Store) snapshot() string { return filepath.Join(s.dir, snapshotName) }

// complete returns the path of the file that marks the others as complete.
func (s *Store) complete() string { return filepath.Join(s.dir, completeName) }

// mark notes on disk that the saved state is complete.
func (s *Store) mark() error {
	if s.noted() {
		if err := removeIfThere(s.aside); err != nil {
			return err
		}
	}
	f, err := plainfile.OpenFile(s.complete(), os.O_CREATE|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// unmark notes on disk that the saved state may lack changes.
func (s *Store) unmark() error { return removeIfThere(s.complete()) }

// noteAside says elsewhere that the Store is stale.
func (s *Store) noteAside() error {
	if s.aside == "" {
		return nil
	}
	return WriteFile(s.aside, []byte(s.dir+"\n"))
}

// noted reports whether it is said elsewhere that the Store is stale.
func (s *Store) noted() bool {
	if s.aside == "" {
		return false
	}
	_, err := os.Lstat(s.aside)
	return err == nil
}

// Close writes pending changes, syncs, and releases the folder.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal == nil {
		return nil
	}
	err := s.recover()
	if err == nil {
		err = s.present()
	}
	if err == nil {
		if err = errors.Join(s.journal.sync(), s.folder.Sync()); err != nil {
			s.failSync(err)
		}
	}
	err = errors.Join(err, s.journal.Close(), s.release())
	s.journal = nil
	s.letGo()
	if err != nil {
		return fmt.Errorf("state %s: %w", s.dir, err)
	}
	return nil
}

// The agent closes its stores by this interface.
var _ io.Closer = (*Store)(nil)
