package filedb

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/models/structured/document"
)

// A file is the knowledge about one path. It is a value: each decision makes a new one.
type file struct {
	id    identity  // of the present version
	since time.Time // when this version was first seen
	good  *content  // the effective content; nil: nothing has been read yet
	fault error     // why the present version has no effect; begins with the path
	read  sight     // the last read
	state state
	until time.Time // when to look at it again; zero: when it changes
	busy  time.Time // since when another process has it open for writing; zero: none has
	freed time.Time // when it was last found closed
}

// files are files by path. A file in it never changes, so several looks share it.
type files map[string]*file

// at returns the knowledge about a path, which is that of an unknown file at first.
func (all files) at(path string) *file {
	if f := all[path]; f != nil {
		return f
	}
	return &file{}
}

// A state says whether the content of a file can be relied on, and when to look again.
type state int

const (
	final  state = iota // final until it changes
	racy                // read so soon after a change that the next change may carry the same time
	busy                // another process has it open for writing
	blank               // empty or perhaps incomplete; perhaps for a moment only
	shrunk              // keys are gone from it; perhaps they are about to come in another file
	gone                // missing; perhaps for a moment only
)

// An identity distinguishes a file, and a version of it, from others.
type identity struct {
	dev, ino         uint64
	size             int64
	modified, status time.Time // of the content, and of anything about the file
}

// A sight is the result of one look at a path.
type sight struct {
	id      identity
	err     error    // it cannot be read: errBusy, fs.ErrNotExist, or for good
	content *content // its content
	fault   error    // or the reason why it cannot be parsed
	sum     [sha256.Size]byte
	unsure  bool // another process may have been writing it
}

// raciness covers the coarsest clock of a file system.
const raciness = 100 * time.Millisecond

// changed reports whether a file must be read again, given its present identity.
func (f file) changed(now identity) bool { return f.state != final || f.id != now }

// sees returns the file after a look, and whether to keep it. The last content stays
// effective while the file is open for writing, cannot be read or parsed, or looks cut
// off, and for a grace time while it is empty or missing. A file with a fault keeps it
// until it has complete content. A file from which keys are gone is shrunk for a time, however often it changes
// meanwhile; see view.hold.
func (f file) sees(s sight, now time.Time, c Config) (next file, keep bool) {
	next = f.at(s.id, now)
	next.until = time.Time{}
	if errors.Is(s.err, errBusy) {
		return next.isBusy(s.err, now, c), true
	}
	if !f.busy.IsZero() {
		next.busy, next.freed = time.Time{}, now
	}
	age := next.age(now)
	switch {
	case errors.Is(s.err, fs.ErrNotExist):
		next.state, next.fault, next.until = gone, nil, next.since.Add(c.VanishGrace)
		return next, f.good != nil && now.Before(next.until)
	case s.err != nil:
		next.state, next.fault = racy, s.err
		if passes(s.err) {
			next.until = now.Add(retryRead)
		}
		return next, true
	}
	next.read, next.state = s, final
	if now.Sub(s.id.status) < raciness {
		next.state = racy
	}
	if s.fault != nil {
		next.fault = s.fault
		return next, true
	}
	if s.doubtful() && age < c.Grace {
		next.state, next.until = blank, now.Add(c.Grace-age)
		return next, true
	}
	next.fault = s.content.cutFrom(f.good, s.unsure)
	if next.fault == nil && (f.good == nil || f.good.said() != s.content) {
		next.good = s.content.orOf(f.good)
	}
	next.shrinks(f, now, c)
	return next, true
}

// shrinks makes the file shrunk, if keys of before are gone, or it was shrunk before. That ends with the time of before, and
// what was empty for its time does not wait again.
func (f *file) shrinks(before file, now time.Time, c Config) {
	switch {
	case (before.state == blank || before.state == shrunk) && !now.Before(before.until):
	case before.state == shrunk:
		f.state, f.until = shrunk, before.until
	case len(before.good.without(f.good)) > 0:
		f.state, f.until = shrunk, now.Add(c.VanishGrace)
	}
}

// retryRead is how soon a file is read again after an error that passes without a change of the file.
const retryRead = time.Second

// passes reports whether the cause of an error is not the file. Then its end is no event of the file system,
// so nobody would look at the file before the next rescan.
func passes(err error) bool {
	return slices.ContainsFunc([]error{
		unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EIO, unix.ESTALE, unix.ETIMEDOUT,
	}, func(one error) bool { return errors.Is(err, one) })
}

// isBusy returns the file while another process has it open for writing, for any length of
// time. The kernel sends no notification when it is closed.
func (f file) isBusy(why error, now time.Time, c Config) file {
	f.state = busy
	if f.busy.IsZero() {
		f.busy = now
	}
	held := now.Sub(f.busy)
	f.until = now.Add(min(max(held/4, time.Millisecond), time.Second))
	if held > c.Grace {
		f.fault = why
	}
	return f
}

// doubtful reports whether the next moment may show more.
func (s sight) doubtful() bool {
	return s.content.blank || s.unsure && s.content.ending == document.EndsInLine
}

// at returns the file with id as its present identity.
func (f file) at(id identity, now time.Time) file {
	if id != f.id || f.since.IsZero() {
		f.id, f.since = id, now
	}
	return f
}

// age returns how long the file has been unchanged, by its own times or as observed. A file
// that another process had open is as old as its release.
func (f file) age(now time.Time) time.Duration {
	age := max(now.Sub(f.id.status), now.Sub(f.since))
	if f.freed.IsZero() {
		return age
	}
	return min(age, now.Sub(f.freed))
}

// unfinished reports whether a short wait may show the first content of the file.
func (f file) unfinished() bool {
	return f.good == nil && (f.state == busy || f.state == blank)
}

// problems returns the faults of the file and of its content.
func (f file) problems() []error {
	var out []error
	switch {
	case f.fault != nil && f.good != nil:
		out = append(out, fmt.Errorf("%w; what the file said before still counts", f.fault))
	case f.fault != nil:
		out = append(out, f.fault)
	}
	if f.good != nil && f.state != gone {
		out = append(out, f.good.problems...)
	}
	return out
}

// countsAs reports whether two states of a file are the same to the store.
func (f *file) countsAs(other *file) bool {
	return f.good == other.good && (f.state == gone) == (other.state == gone)
}
