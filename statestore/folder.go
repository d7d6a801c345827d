package statestore

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/internal/plainfile"
)

const (
	snapshotName  = "snapshot"
	journalPrefix = "journal."
	completeName  = "complete"
	brokenSuffix  = ".broken"
)

// A part is one file of a Store.
type part struct {
	path       string
	generation uint64
	reading    reading
}

// A finding is the state of a folder at the start.
type finding struct {
	snapshot *part  // nil: none
	journals []part // oldest first, without those that the snapshot has replaced
	rest     []string
	marked   bool // as complete
}

// look lists the files in dir, without their content.
func look(dir string) (finding, error) {
	var found finding
	entries, err := os.ReadDir(dir)
	if err != nil {
		return found, err
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		generation, isJournal := generationOf(entry.Name())
		switch {
		case entry.Type()&fs.ModeSymlink != 0:
			return found, fmt.Errorf("%s is a link: %w", path, plainfile.ErrNoFile)
		case entry.Name() == snapshotName:
			found.snapshot = &part{path: path}
		case isJournal:
			found.journals = append(found.journals, part{path: path, generation: generation})
		case entry.Name() == completeName:
			found.marked = true
		case strings.HasPrefix(entry.Name(), "."):
			found.rest = append(found.rest, path) // a new file that a kill has left incomplete
		}
	}
	slices.SortFunc(found.journals, func(a, b part) int { return cmp.Compare(a.generation, b.generation) })
	return found, found.dropReplaced()
}

// dropReplaced removes the journals that the snapshot has replaced from the finding.
func (f *finding) dropReplaced() error {
	if f.snapshot == nil {
		return nil
	}
	in, err := plainfile.Open(f.snapshot.path)
	if err != nil {
		return err
	}
	defer in.Close()
	head, err := readHeader(in)
	if err != nil {
		return nil //nolint:nilerr // examine finds the damage; no journal is known to be replaced
	}
	f.snapshot.generation = head.generation
	f.journals = slices.DeleteFunc(f.journals, func(p part) bool {
		replaced := p.generation < head.generation
		if replaced {
			f.rest = append(f.rest, p.path)
		}
		return replaced
	})
	return nil
}

// files returns all parts, in the order in which they were written.
func (f *finding) files() []*part {
	var out []*part
	if f.snapshot != nil {
		out = append(out, f.snapshot)
	}
	for i := range f.journals {
		out = append(out, &f.journals[i])
	}
	return out
}

// examine reads all parts.
func (f *finding) examine() error {
	for _, p := range f.files() {
		var err error
		if p.reading, err = readFile(p.path, nil); err != nil {
			return err
		}
		if p.reading.damage == nil && p.reading.good < p.reading.size && !f.inUse(p) {
			p.reading.damage = errCut
		}
	}
	return nil
}

// inUse reports whether p is the journal that took the last changes. Only there can a kill
// have cut a record short. The others were complete before the next file began.
func (f *finding) inUse(p *part) bool {
	return len(f.journals) > 0 && p == &f.journals[len(f.journals)-1]
}

// damage returns the damage of the files, or nil.
func (f *finding) damage() error {
	var errs []error
	for _, p := range f.files() {
		if p.reading.damage != nil {
			errs = append(errs, fmt.Errorf("%s: %w", filepath.Base(p.path), p.reading.damage))
		}
	}
	return errors.Join(errors.Join(errs...), f.missing())
}

// missing returns an error that names a missing file, or nil.
func (f *finding) missing() error {
	next := uint64(1)
	switch {
	case f.snapshot == nil && len(f.journals) == 0:
		return nil
	case f.snapshot != nil && f.snapshot.reading.damage != nil && f.snapshot.generation == 0:
		return nil // the needed journal is unknown
	case f.snapshot != nil:
		next = f.snapshot.generation
	case f.journals[0].generation > next:
		return fmt.Errorf("%s: %w", snapshotName, fs.ErrNotExist)
	}
	for _, p := range f.journals {
		if p.generation != next {
			break
		}
		next++
	}
	if last := f.last(); next <= last || len(f.journals) == 0 {
		return fmt.Errorf("%s%d: %w", journalPrefix, next, fs.ErrNotExist)
	}
	return nil
}

// last returns the highest generation.
func (f *finding) last() (last uint64) {
	for _, p := range f.files() {
		last = max(last, p.generation)
	}
	return last
}

// empty reports whether nothing was ever saved.
func (f *finding) empty() bool {
	return !f.marked && f.snapshot == nil &&
		!slices.ContainsFunc(f.journals, func(p part) bool { return p.reading.size > headerSize || p.reading.damage != nil })
}

// stale returns the reason why the files may be older than the last saved state, or nil.
func (f *finding) stale() error {
	err := f.damage()
	if f.marked && f.snapshot == nil && len(f.journals) == 0 {
		err = fmt.Errorf("%s1: %w", journalPrefix, fs.ErrNotExist)
	}
	if !f.marked && err == nil && !f.empty() {
		return ErrStale
	}
	return err
}
