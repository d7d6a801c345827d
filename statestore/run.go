package statestore

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/keyplane/keyplane/internal/guard"
)

// Pause is the time between a change and its sync by Run. Other changes in that time are
// synced with it.
const Pause = time.Second

// While changes arrive, such as during a start, the journals may grow to several times the size at which
// they are merged, or to so many bytes if that is more. A merge would take time from those who make the changes.
const (
	timesWhileBusy = 4
	bytesWhileBusy = 128 << 20 // a million values
)

// longest is the longest pause between attempts that fail.
const longest = 30 * time.Second

// Run syncs saved changes to the disk, repeats writes that failed, and merges the journals
// when they have grown and no change has come for a Pause, until ctx ends. It returns after the end
// of a merge that has begun.
func (s *Store) Run(ctx context.Context) error {
	defer s.merges.Wait()
	rest := Pause
	for {
		select {
		case <-s.ready.C():
		case <-ctx.Done():
			return nil
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return nil
		}
		if rest = s.tend(rest); rest > Pause {
			s.ready.Set()
		}
	}
}

// tend does all work that is due, and returns the pause until the next call.
func (s *Store) tend(rested time.Duration) time.Duration {
	if s.retry() != nil {
		return min(2*rested, longest)
	}
	changed, err := s.sync()
	if err != nil && !errors.Is(err, os.ErrClosed) {
		s.mu.Lock()
		s.failSync(err)
		s.mu.Unlock()
		return 2 * Pause
	}
	s.merge(changed)
	return Pause
}

// retry writes the changes that could not be written before, for example on a full disk.
func (s *Store) retry() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.work()()
	if s.journal == nil {
		return nil
	}
	return s.recover()
}

// sync makes the disk take the written changes, and reports whether there are any. No caller waits for it.
func (s *Store) sync() (changed bool, err error) {
	s.mu.Lock()
	dirty, j := s.dirty, s.journal
	s.dirty = false
	if j == nil || !dirty {
		s.mu.Unlock()
		return false, nil
	}
	as, folder := *j, s.folder
	s.mu.Unlock()
	return true, errors.Join(as.sync(), folder.Sync())
}

// merge begins to merge the journals in another goroutine, if they are large enough and no
// other merge is under way. Where changes have just come, it waits for an end of them. A merge of a large store takes long, and Run goes on to sync
// changes meanwhile. Only Run calls it, because sync must not use a journal that is closed.
func (s *Store) merge(changed bool) {
	if s.merging.Load() {
		return
	}
	parts, generation, err := s.rotate(changed)
	if err == nil && parts != nil {
		s.merges.Go(func() {
			s.reportMerge(guard.Run(func() error { return s.compact(parts, generation) }))
		})
	}
	s.reportMerge(err)
}

// reportMerge logs that a merge has failed. The next change begins another one when the
// journals have grown.
func (s *Store) reportMerge(err error) {
	if err != nil && !errors.Is(err, ErrClosed) {
		s.log.Warn("state cannot be merged into a new snapshot; its journals go on growing", "err", err)
	}
}

// compact replaces parts by a snapshot of a generation, and ends the merge that rotate has begun.
func (s *Store) compact(parts []*part, generation uint64) error {
	defer s.merging.Store(false)
	if s.mergeHook != nil {
		s.mergeHook()
	}
	size, err := writeSnapshot(s.dir, generation, parts)
	if err != nil {
		return err
	}
	var merged []string
	for _, p := range parts {
		if p.path != s.snapshot() {
			merged = append(merged, p.path)
		}
	}
	s.mu.Lock()
	s.base, s.sealed, s.retryAt = size, 0, 0
	if s.journal != nil {
		err = s.hold()
	}
	s.mu.Unlock()
	return errors.Join(err, removeAll(merged))
}

// rotate begins a new journal, if the old ones have become too large, and returns the parts
// of the snapshot of its generation. The old journal is on disk before the new one takes
// changes, so a loss of power never takes older changes and leaves newer ones.
func (s *Store) rotate(changed bool) (parts []*part, generation uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal == nil {
		return nil, 0, ErrClosed
	}
	grown, enough := s.sealed+s.journal.size, max(s.compactAt, s.base, s.retryAt)
	switch {
	case grown < enough:
		return nil, 0, nil
	case changed && grown < max(timesWhileBusy*enough, bytesWhileBusy):
		s.ready.Set()
		return nil, 0, nil
	}
	if err := s.present(); err != nil {
		s.fail(err)
		return nil, 0, nil
	}
	found, err := look(s.dir)
	if err != nil {
		return nil, 0, err
	}
	s.retryAt = 2 * (s.sealed + s.journal.size) // the next attempt, if this one fails
	if err := s.journal.rewind(); err != nil {
		return nil, 0, err
	}
	if err := s.journal.sync(); err != nil {
		s.failSync(err)
		return nil, 0, nil
	}
	next, err := newJournal(s.dir, s.journal.generation+1)
	if err != nil {
		return nil, 0, err
	}
	s.sealed += s.journal.size
	s.before = append(s.before, s.journal.held)
	s.journal = next
	s.merging.Store(true) // before anybody else writes a snapshot
	return found.files(), next.generation, nil
}
