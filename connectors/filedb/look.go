package filedb

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"
)

// A state of all files, at one moment. It is never changed.
type snapshot struct {
	files map[string]file
	dirs  map[string]watch // what to watch
	// problems are faults of places; those of files are with the files.
	problems []error
	// wake is when a file wants to be looked at again; zero: none does.
	wake time.Time
	// unsettled tells that a file is about to say something for the first time.
	unsettled bool
}

// look finds out what all files say now.
func (db *DB) look() *snapshot {
	db.mu.Lock()
	defer db.mu.Unlock()
	w := explore(db.cfg)
	s := &snapshot{dirs: w.dirs, problems: w.problems, files: make(map[string]file, len(w.files))}
	paths := maps.Clone(w.files)
	for path := range db.files {
		if _, found := paths[path]; !found {
			paths[path] = identity{}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		f, keep := db.lookAt(path, paths[path], w)
		if !keep {
			continue
		}
		s.files[path] = f
		s.unsettled = s.unsettled || f.unsettled()
		if !f.until.IsZero() && (s.wake.IsZero() || f.until.Before(s.wake)) {
			s.wake = f.until
		}
	}
	s.problems = append(s.problems, w.absences(s.files)...)
	db.files = s.files
	return s
}

// lookAt reads the file at path if there is reason to. id is what lies there, zero
// for nothing that could be found.
func (db *DB) lookAt(path string, id identity, w *walk) (f file, keep bool) {
	f, now := db.files[path], time.Now()
	_, listed := w.files[path]
	switch {
	case !listed && w.holds(path):
		return f, true
	case !listed:
		return f.sees(sight{err: fs.ErrNotExist}, now, db.cfg)
	case !f.changed(id):
		return f, true
	}
	s := sight{id: id}
	data, read, err := read(path, f.at(id, now).stalled(now, db.cfg))
	if read != (identity{}) {
		s.id = read
	}
	if s.err = err; err == nil {
		s = db.parsed(path, data, s.id, f.read)
	}
	if errors.Is(err, fs.ErrNotExist) {
		s.id = identity{}
	}
	return f.sees(s, now, db.cfg)
}

// parsed is the sight of data, which may well be what was read before.
func (db *DB) parsed(path string, data []byte, id identity, before sight) sight {
	s := sight{id: id, sum: sha256.Sum256(data)}
	if s.sum == before.sum {
		s.content, s.fault = before.content, before.fault
		return s
	}
	s.content, s.fault = parse(path, data, db.root)
	return s
}
