package filedb

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Watch yields the entries of the files under prefix as one batch, and then a batch for
// each look that found a change. A file that cannot be read is a problem in a batch and
// does not end the watch. The watch may end with the kernel's error about watches.
func (db *DB) Watch(ctx context.Context, prefix string) iter.Seq2[kvdbsync.Batch, error] {
	return func(yield func(kvdbsync.Batch, error) bool) {
		n := newNotifier(db.cfg, db.log)
		defer n.close()
		v := view{merger: newMerger(prefix)}
		why := reason{everything: true}
		for first := true; ; first = false {
			s, notBefore, err := db.lookUntilFinal(ctx, n, why, first)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				yield(kvdbsync.Batch{}, err)
				return
			}
			if !first && v.had && db.gone(s) {
				yield(kvdbsync.Batch{}, ErrGone)
				return
			}
			v.had = len(s.files) > 0
			vanished := v.settle(s)
			b, changed := v.update(s, n.problems()...)
			if vanished && removes(b) {
				yield(kvdbsync.Batch{}, ErrVanished)
				return
			}
			b.Synced = first
			if first {
				b.Identity = s.folders
			}
			if (changed || first) && !yield(b, nil) {
				return
			}
			why, err = n.wait(ctx, s, notBefore)
			if err != nil {
				if ctx.Err() == nil {
					yield(kvdbsync.Batch{}, err)
				}
				return
			}
		}
	}
}

// ErrGone ends a watch when all its places have vanished, together with the files in them.
// They may have been removed or unmounted, so the next listing may show them again, or
// show empty places.
var ErrGone = errors.New("none of configuration-paths is there any more")

// gone reports whether all places are missing.
func (db *DB) gone(s *snapshot) bool {
	return len(s.files) == 0 && !slices.ContainsFunc(db.cfg.Paths, func(path string) bool {
		_, err := os.Lstat(path)
		return !errors.Is(err, fs.ErrNotExist)
	})
}

// lookUntilFinal repeats the look while its own result requires that. One reason is a new watch on
// a directory, which may have been written to before. Another one, at the first time, is a
// file that is half written; this wait is limited. lookUntilFinal also returns the earliest time
// of the next look, so that during a flood of changes looks take half of the time.
func (db *DB) lookUntilFinal(ctx context.Context, n *notifier, why reason, first bool) (s *snapshot, notBefore time.Time, err error) {
	limit := time.Now().Add(db.cfg.stall())
	for ctx.Err() == nil {
		begun := time.Now()
		s, err := db.look(ctx, why)
		if err != nil {
			return nil, begun, err
		}
		ended := time.Now()
		switch {
		case n.follow(s.dirs):
			why = reason{everything: true}
		case first && s.unfinished && ended.Before(limit):
			why, err = n.wait(ctx, s, ended)
			if err != nil {
				return nil, ended, err
			}
		default:
			return s, ended.Add(ended.Sub(begun)), nil
		}
	}
	return nil, time.Time{}, ctx.Err()
}

// A view is the content that one watch has yielded.
type view struct {
	*merger
	had      bool              // there were files
	folders  string            // folders of the files that have not vanished
	problems [sha256.Size]byte // hash of the last yielded ones; zero: nothing has been yielded yet
}

// update returns the batch that a snapshot causes for the watch, if any. more are problems
// of the watch itself. The end of all problems is an empty list that is not nil.
func (v *view) update(s *snapshot, more ...error) (b kvdbsync.Batch, changed bool) {
	b.Events = v.merger.update(s.files)
	problems := append(append([]error{}, more...), append(s.allProblems(), v.conflicts()...)...)
	if sum := sumOf(problems); sum != v.problems {
		v.problems, b.Problems = sum, problems
	}
	return b, len(b.Events) > 0 || b.Problems != nil
}

// allProblems returns the faults of places and files, sorted by path; never nil.
func (s *snapshot) allProblems() []error {
	var faulty []string
	for path, f := range s.files {
		if f.problems() != nil {
			faulty = append(faulty, path)
		}
	}
	slices.Sort(faulty)
	out := append([]error{}, s.problems...)
	for _, path := range faulty {
		if len(out) >= mostProblems {
			return append(out, fmt.Errorf("%s: this file and those that sort after it have problems that are not listed here", path))
		}
		out = append(out, s.files[path].problems()...)
	}
	return out
}

// mostProblems is the approximate limit of reported problems; the last file may exceed it.
// Thousands of files that are not for the agent should not fill its log.
const mostProblems = 500

// sumOf returns a hash of the texts of errors.
func sumOf(problems []error) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, p := range problems {
		text := p.Error()
		fmt.Fprintf(h, "%d %s", len(text), text)
	}
	h.Sum(sum[:0])
	return sum
}
