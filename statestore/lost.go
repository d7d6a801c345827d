package statestore

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/plainfile"
)

// Somebody may remove or move the folder, or files in it, under a running program. What is written into files without
// names is lost at the end. So each write first compares the journal with its name, and Verify compares all files. The
// open files still have the content: it is written anew.

// A held file is open, so that its content can be read whatever becomes of its name.
type held struct {
	path string // where it should be
	*os.File
	dev, ino uint64
}

func newHeld(path string, f *os.File) held {
	var st unix.Stat_t
	_ = unix.Fstat(int(f.Fd()), &st) // never fails; if it did, the file would be written anew
	return held{path, f, st.Dev, st.Ino}
}

// part returns the file as one to read. The path is that of the descriptor.
func (h held) part() *part { return &part{path: fmt.Sprintf("/proc/self/fd/%d", h.Fd())} }

// there reports whether the file has its name still.
func (h held) there() bool {
	var named unix.Stat_t
	return unix.Stat(h.path, &named) == nil && named.Ino == h.ino && named.Dev == h.dev
}

// hold opens the files before the journal. The caller holds mu, or is the only user.
func (s *Store) hold() error {
	found, err := look(s.dir)
	if err != nil {
		return err
	}
	var now []held
	for _, p := range found.files() {
		if p.path == s.journal.path {
			continue
		}
		f, err := plainfile.Open(p.path)
		if err != nil {
			return errors.Join(err, closeAll(now))
		}
		now = append(now, newHeld(p.path, f))
	}
	s.letGo()
	s.before = now
	return nil
}

// letGo closes the files before the journal, which are read only or synced.
func (s *Store) letGo() {
	_ = closeAll(s.before)
	s.before = nil
}

func closeAll(files []held) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// parts returns all files, in the order in which they were written. The caller holds mu.
func (s *Store) parts() (out []*part) {
	for _, h := range append(slices.Clip(s.before), s.journal.held) {
		out = append(out, h.part())
	}
	return out
}

// Verify writes the content anew if files have lost their names. If that fails, the Store is marked as stale, and Run
// tries again.
func (s *Store) Verify() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal == nil || s.failure.get() != nil {
		return nil
	}
	err := s.verify()
	if err != nil {
		s.fail(err)
	}
	return err
}

// verify is Verify without its lock.
func (s *Store) verify() error {
	for _, h := range s.before {
		// A merge replaces the files, and removes those that it has read.
		if !h.there() && !s.merging.Load() {
			return s.again()
		}
	}
	if err := s.present(); err != nil || s.stale != nil {
		return err
	}
	return s.mark()
}

// present writes the content anew if the journal has lost its name. The caller holds mu.
func (s *Store) present() error {
	if s.journal.there() {
		return nil
	}
	return s.again()
}

var (
	// errLost says that files have lost their names.
	errLost = errors.New("files of the state were removed, moved or replaced by somebody")
	// errMerging says that a merge would replace what is written anew.
	errMerging = errors.New("the state is being merged")
)

// again writes the state anew because files have lost their names. The caller holds mu.
func (s *Store) again() error {
	s.log.Error("files of the state were removed, moved or replaced by somebody; the state is written anew")
	if err := s.writeAnew(); err != nil {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return nil
}

// writeAnew writes the content of the open files into the folder, which is created if it is missing. The caller holds mu.
func (s *Store) writeAnew() error {
	if !s.merging.CompareAndSwap(false, true) {
		return errMerging
	}
	defer s.merging.Store(false)
	if err := plainfile.MakeOwn(s.dir); err != nil {
		return err
	}
	same, err := sameFolder(s.dir, s.folder)
	if err == nil && !same {
		err = s.lock(0)
	}
	if err != nil {
		return err
	}
	found, err := look(s.dir)
	if err != nil {
		return err
	}
	parts, generation := s.parts(), max(found.last(), s.journal.generation)+1
	if s.base, err = writeSnapshot(s.dir, generation, parts); err != nil {
		return err
	}
	next, err := newJournal(s.dir, generation)
	if err != nil {
		return err
	}
	// The old journal is closed by the garbage collector, since Run may sync it just now.
	old := s.journal.held
	s.journal, s.sealed, s.retryAt = next, 0, 0
	if err := s.hold(); err != nil {
		s.before = append(s.before, old) // which have the content still
		return err
	}
	s.soon()
	if s.stale == nil && s.failure.get() == nil {
		return s.mark()
	}
	return nil
}

// sameFolder reports whether a folder has its name still.
func sameFolder(path string, open *os.File) (bool, error) {
	now, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	was, err := open.Stat()
	return err == nil && os.SameFile(now, was), err
}
