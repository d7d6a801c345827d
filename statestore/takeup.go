package statestore

import (
	"errors"
	"os"
)

// takeUp continues with the files of an earlier run.
func (s *Store) takeUp(found finding) (err error) {
	if found.damage() != nil {
		return s.salvage(found)
	}
	if err := removeAll(found.rest); err != nil {
		return err
	}
	if found.snapshot != nil {
		s.base = found.snapshot.reading.size
	}
	if len(found.journals) == 0 {
		s.journal, err = newJournal(s.dir, found.last()+1)
		return err
	}
	end := len(found.journals) - 1
	for _, p := range found.journals[:end] {
		s.sealed += p.reading.size
	}
	last := found.journals[end]
	if dropped := last.reading.size - last.reading.good; dropped > 0 {
		s.log.Info("the last record was cut short by the end of the process; it is dropped, as nothing has relied on it", "bytes", dropped)
	}
	s.journal, err = openJournal(last.path, last.reading)
	return err
}

// salvage makes new files of the readable part of damaged ones, which are set aside. After
// a kill at any moment, it can be repeated.
func (s *Store) salvage(found finding) (err error) {
	generation := found.last() + 1
	if s.journal, err = newJournal(s.dir, generation); err != nil {
		return err
	}
	if p := found.snapshot; p != nil && p.reading.damage != nil {
		if err := errors.Join(removeIfThere(p.path+brokenSuffix), os.Link(p.path, p.path+brokenSuffix)); err != nil {
			return err
		}
		s.reportBroken(p)
	}
	if s.base, err = writeSnapshot(s.dir, generation, found.files()); err != nil {
		return err
	}
	for _, p := range found.journals {
		if p.reading.damage == nil {
			found.rest = append(found.rest, p.path)
			continue
		}
		if err := os.Rename(p.path, p.path+brokenSuffix); err != nil {
			return err
		}
		s.reportBroken(&p)
	}
	return removeAll(found.rest)
}

// reportBroken logs a damaged file, and how many of its bytes could be used.
func (s *Store) reportBroken(p *part) {
	s.log.Warn("file is damaged and set aside", "file", p.path+brokenSuffix, "err", p.reading.damage, "bytes_used", p.reading.good)
}

// removeIfThere removes a file; a missing one is no error.
func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// removeAll removes files, and goes on after an error.
func removeAll(paths []string) error {
	var errs []error
	for _, path := range paths {
		errs = append(errs, os.Remove(path))
	}
	return errors.Join(errs...)
}
