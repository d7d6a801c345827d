package statestore

import (
	"context"
	"errors"
	"os"
	"time"
)

// Pause is the time between a change and its sync by Run. Other changes in that time are
// synced with it.
const Pause = time.Second

// longest is the longest pause between attempts that fail.
const longest = 30 * time.Second

// Run syncs saved changes to the disk, repeats writes that failed, and merges the journals
// when they have grown, until ctx ends.
func (s *Store) Run(ctx context.Context) error {
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
			s.again()
		}
	}
}

// again makes Run continue without a new change.
func (s *Store) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.soon()
}

// tend does all work that is due, and returns the pause until the next call.
func (s *Store) tend(rested time.Duration) time.Duration {
	if s.retry() != nil {
		return min(2*rested, longest)
	}
	if err := s.sync(); err != nil && !errors.Is(err, os.ErrClosed) {
		s.mu.Lock()
		s.fail(err)
		s.mu.Unlock()
		return 2 * Pause
	}
	if err := s.compact(); err != nil && !errors.Is(err, ErrClosed) {
		s.log.Warn("state cannot be merged into a new snapshot; its journals go on growing", "err", err)
	}
	return Pause
}

// retry writes the changes that could not be written before, for example on a full disk.
func (s *Store) retry() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal == nil {
		return nil
	}
	return s.recover()
}

// sync makes the disk take the written changes. No caller waits for it.
func (s *Store) sync() error {
	s.mu.Lock()
	dirty, j := s.dirty, s.journal
	s.dirty = false
	if j == nil || !dirty {
		s.mu.Unlock()
		return nil
	}
	as := *j
	s.mu.Unlock()
	return errors.Join(as.sync(), s.folder.Sync())
}

// compact merges the journals into a new snapshot, if they are large enough.
func (s *Store) compact() error {
	parts, generation, err := s.rotate()
	if err != nil || parts == nil {
		return err
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
	s.mu.Unlock()
	return removeAll(merged)
}

// rotate begins a new journal, if the old ones have become too large, and returns the parts
// of the snapshot of its generation.
func (s *Store) rotate() (parts []*part, generation uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.journal == nil:
		return nil, 0, ErrClosed
	case s.sealed+s.journal.size < max(s.compactAt, s.base, s.retryAt):
		return nil, 0, nil
	}
	found, err := look(s.dir)
	if err != nil {
		return nil, 0, err
	}
	s.retryAt = 2 * (s.sealed + s.journal.size) // the next attempt, if this one fails
	next, err := newJournal(s.dir, s.journal.generation+1)
	if err != nil {
		return nil, 0, err
	}
	s.sealed += s.journal.size
	err = errors.Join(s.journal.rewind(), s.journal.Close())
	s.journal = next
	return found.files(), next.generation, err
}
