package filedb

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/models/structured/document"
)

// A snapshot is the state of all files at one moment. It never changes.
type snapshot struct {
	files files
	dirs  map[string]watch // to watch
	// folders identifies the configured folders, to notice that others took their places.
	folders string
	// problems are faults of places. Faults of files are in files.
	problems []error
	// whole is the time of the last look at everything.
	whole time.Time
	// wake is the time at which a file is due for another look; zero: none is.
	wake time.Time
	// unfinished says that a file is about to have its first content.
	unfinished bool
}

// A reason says where to look: at everything, or only at some files and at those that are
// due.
type reason struct {
	everything bool
	files      map[string]bool // by path, as configured and listed
}

// look reads the present content of the files. Its error is that of ctx; the known state
// is then unchanged.
func (db *DB) look(ctx context.Context, why reason) (*snapshot, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if why.everything || db.walk == nil || !db.lookAtSome(ctx, why.files) {
		db.lookAtAll(ctx)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	s := &snapshot{files: db.files, dirs: db.walk.dirs, whole: db.whole, folders: strings.Join(db.walk.folders, " ")}
	for _, f := range s.files {
		s.unfinished = s.unfinished || f.unfinished()
		if !f.until.IsZero() && (s.wake.IsZero() || f.until.Before(s.wake)) {
			s.wake = f.until
		}
	}
	s.problems = append(slices.Clip(db.walk.problems), db.walk.absences(s.files)...)
	return s, nil
}

// lookAtAll finds the files, and reads those with a reason, in parallel on all CPUs.
func (db *DB) lookAtAll(ctx context.Context) {
	begun, walk := time.Now(), explore(ctx, db.cfg, len(db.files))
	next, looks := make(files, len(walk.files)), map[string]*look{}
	for path, id := range walk.files {
		f := db.files.at(path)
		if f.changed(id) {
			looks[path] = &look{before: f, id: id}
		} else {
			next[path] = f
		}
	}
	for path, f := range db.files {
		if _, found := walk.files[path]; found {
			continue
		}
		if walk.holds(path) {
			next[path] = f
			continue
		}
		looks[path] = &look{before: f, absent: true}
	}
	if db.carryOut(ctx, looks, next) {
		db.whole, db.walk = begun, walk
	}
}

// lookAtSome looks at the given files and at those that are due. It returns false, and
// does nothing, if a look at everything is necessary.
func (db *DB) lookAtSome(ctx context.Context, paths map[string]bool) bool {
	now, looks := time.Now(), map[string]*look{}
	for path, f := range db.files {
		if !f.until.IsZero() && !now.Before(f.until) {
			looks[path] = &look{before: f}
		}
	}
	for path := range paths {
		looks[path] = &look{before: db.files.at(path)}
	}
	for path, l := range looks {
		var plain bool
		l.id, plain = lies(path)
		if !plain {
			return false
		}
		l.absent = l.id == identity{}
		if _, ok := document.FormatOf(path); !ok || !l.absent && !l.before.changed(l.id) {
			delete(looks, path)
			continue
		}
		if l.absent && db.walk.exceeded() || !l.absent && !db.walk.still(path, l.id) {
			return false
		}
	}
	db.carryOut(ctx, looks, maps.Clone(db.files))
	return true
}

// lies returns the identity of the file at a path, zero for none. A directory, a link, or
// a file with several names is not plain: it may affect other files.
func lies(path string) (id identity, plain bool) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return identity{}, true
	case err != nil || !info.Mode().IsRegular():
		return identity{}, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return identify(info), ok && st.Nlink == 1
}

// A look is a planned look at one file.
type look struct {
	before *file
	id     identity // of the present version; zero: nothing was found
	absent bool
	after  *file // nil: the path is to be forgotten
}

// carryOut executes the looks, and makes next, with their results, the state of the files.
// It returns false, without changes, if ctx ended. It does not wait for a file that is
// being parsed then.
func (db *DB) carryOut(ctx context.Context, looks map[string]*look, next files) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		var g errgroup.Group
		g.SetLimit(runtime.GOMAXPROCS(0))
		for path, l := range looks {
			if ctx.Err() != nil {
				break
			}
			g.Go(func() error {
				if after, keep := db.lookAt(ctx, path, l); keep {
					l.after = &after
				}
				return nil
			})
		}
		_ = g.Wait() // the looks contain the errors
	}()
	select {
	case <-ctx.Done():
		return false
	case <-done:
	}
	if ctx.Err() != nil {
		return false
	}
	for path, l := range looks {
		delete(next, path)
		if l.after != nil {
			next[path] = l.after
		}
	}
	db.files = next
	return true
}

// lookAt reads the file at path.
func (db *DB) lookAt(ctx context.Context, path string, l *look) (f file, keep bool) {
	now := time.Now()
	if l.absent {
		return l.before.sees(sight{err: fs.ErrNotExist}, now, db.cfg)
	}
	s := sight{id: l.id}
	text, err := read(path, db.cfg)
	if text.id != (identity{}) {
		s.id = text.id
	}
	s.err = err
	if err == nil {
		s = db.parsed(ctx, path, text.data, s.id, l.before.read)
		s.unsure = text.unsure
	}
	if errors.Is(err, fs.ErrNotExist) {
		s.id = identity{}
	}
	return l.before.sees(s, now, db.cfg)
}

// parsed returns the sight of data, which may equal the last read.
func (db *DB) parsed(ctx context.Context, path string, data []byte, id identity, before sight) sight {
	s := sight{id: id, sum: sha256.Sum256(data)}
	if s.sum == before.sum {
		s.content, s.fault = before.content, before.fault
		return s
	}
	s.content, s.fault = db.parse(ctx, path, data)
	if s.content != nil {
		for _, w := range s.content.warnings[:min(len(s.content.warnings), mostFaults)] {
			db.log.Warn("a file is read leniently", "warning", w)
		}
		if more := len(s.content.warnings) - mostFaults; more > 0 {
			db.log.Warn("a file is read leniently in more places", "path", path, "more", more)
		}
	}
	return s
}

// parse parses a file: quickly, or as a tree of nodes as soon as memory is free.
func (db *DB) parse(ctx context.Context, path string, data []byte) (*content, error) {
	format, _ := document.FormatOf(path)
	if format == document.JSONText {
		if c, ok := quick(path, data, db.root); ok {
			return c, nil
		}
	}
	size := int64(len(data))
	if size > int64(db.cfg.MaxYAMLSize) {
		return nil, fmt.Errorf("%s: has %d bytes; YAML, and JSON in another than the key/value form, may have %v: split it, or raise max-yaml-size in filedb.conf", path, size, db.cfg.MaxYAMLSize)
	}
	if n := document.Nodes(data); n > db.cfg.MaxYAMLNodes {
		return nil, fmt.Errorf("%s: has about %d nodes (names, values, lists), more than max-yaml-nodes allows (%d): split it, write it as JSON in the key/value form, or raise max-yaml-nodes in filedb.conf", path, n, db.cfg.MaxYAMLNodes)
	}
	// A tree is dropped as soon as its entries are made. Texts with many nodes are read one at a
	// time, even short ones.
	leave, err := db.cfg.Memory.Enter(ctx, document.Cost(data))
	if err != nil {
		return nil, err
	}
	defer leave()
	return parseSlowly(ctx, db.cfg.Models, path, data, db.root, format)
}
