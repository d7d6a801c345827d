package statestore

import (
	"context"
	"errors"
	"os"
	"time"
)

// Pause is how long Run waits after a change before it syncs: what else changes meanwhile
// is synced with it.
const Pause = time.Second

// longest is how long Run rests between attempts that fail.
const longest = 30 * time.Second

// Run has the disk take what was saved, tries again what could not be written, and merges
// the journals when they have grown, until ctx ends.
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

// again has Run go on although nothing new was saved.
func (s *Store) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.soon()
}

// tend does all that is to be done now, and returns how long to rest before it is called
// again.
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

func (s *Store) retry() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.journal == nil {
		return nil
	}
	return s.recover()
}

// sync has the disk take what was written; nobody else waits for that.
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

// compact merges the journals into a new snapshot, if that is worth it.
func (s *Store) compact() error {
	parts, generation, err := s.turn()
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
	s.base, s.sealed, s.patient = size, 0, 0
	s.mu.Unlock()
	return removeAll(merged)
}

// turn begins a new journal, if the old ones have become too large, and returns what is
// to be merged into a snapshot of its generation.
func (s *Store) turn() (parts []*part, generation uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.journal == nil:
		return nil, 0, ErrClosed
	case s.sealed+s.journal.size < max(s.compactAt, s.base, s.patient):
		return nil, 0, nil
	}
	found, err := look(s.dir)
	if err != nil {
		return nil, 0, err
	}
	s.patient = 2 * (s.sealed + s.journal.size) // if this fails
	next, err := newJournal(s.dir, s.journal.generation+1)
	if err != nil {
		return nil, 0, err
	}
	s.sealed += s.journal.size
	err = errors.Join(s.journal.rewind(), s.journal.Close())
	s.journal = next
	return found.files(), next.generation, err
}
