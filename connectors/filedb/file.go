package filedb

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/keyplane/keyplane/models/structured/document"
)

// A file is what is known of one path. It is a value: deciding makes a new one.
type file struct {
	id    identity  // of what lies there now
	since time.Time // when it was first seen like this
	good  *content  // what counts of it; nil: nothing has been read yet
	fault error     // why what lies there now does not count; begins with the path
	read  sight     // what was last read
	state state
	until time.Time // when to look at it again; zero: when it changes
	busy  time.Time // since when it is found open for writing; zero: it is not
	freed time.Time // when it was last found to be open no more
}

type state int

const (
	settled state = iota // as good as it gets until it changes
	racy                 // read so soon after a change that the next may carry the same time
	busy                 // someone has it open for writing
	blank                // empty, or perhaps not complete; perhaps for a moment only
	gone                 // not there; perhaps for a moment only
)

// An identity tells a file, and one version of it, from others.
type identity struct {
	dev, ino         uint64
	size             int64
	modified, status time.Time // of the content, and of anything about the file
}

// A sight is what one look finds at a path.
type sight struct {
	id      identity
	err     error    // it cannot be read: errBusy, fs.ErrNotExist, or for good
	content *content // what it says
	fault   error    // or why that cannot be parsed
	sum     [sha256.Size]byte
	unsure  bool // somebody may have been writing it
}

// raciness covers the coarsest clock of a file system.
const raciness = 100 * time.Millisecond

// changed tells whether a file must be read again, given what lies there now.
func (f file) changed(now identity) bool { return f.state != settled || f.id != now }

// sees returns what is known of the file after a look at it, and whether it is to
// be kept. What it said last goes on counting while it is open for writing, while it
// cannot be read or parsed or looks cut off, and for a grace while it is empty or gone. Until
// it says something whole, it is not without a fault if it had one before.
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
		return next, true
	}
	next.read, next.state = s, settled
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
	if next.fault = s.content.cutFrom(f.good, s.unsure); next.fault == nil && (f.good == nil || f.good.said() != s.content) {
		next.good = s.content.orOf(f.good)
	}
	return next, true
}

// isBusy is the file while somebody has it open for writing. The writer may hold it
// for as long as it likes; the kernel tells nobody when it is closed.
func (f file) isBusy(why error, now time.Time, c Config) file {
	if f.state = busy; f.busy.IsZero() {
		f.busy = now
	}
	held := now.Sub(f.busy)
	f.until = now.Add(min(max(held/4, time.Millisecond), time.Second))
	if held > c.Grace {
		f.fault = why
	}
	return f
}

// doubtful tells that the next moment may show more.
func (s sight) doubtful() bool {
	return s.content.blank || s.unsure && s.content.ending == document.EndsInLine
}

// at is the file as it is known, when id lies there now.
func (f file) at(id identity, now time.Time) file {
	if id != f.id || f.since.IsZero() {
		f.id, f.since = id, now
	}
	return f
}

// age is how long the file has been as it is: as it says itself, or as has been seen.
// While somebody has it open, it has no age.
func (f file) age(now time.Time) time.Duration {
	age := max(now.Sub(f.id.status), now.Sub(f.since))
	if f.freed.IsZero() {
		return age
	}
	return min(age, now.Sub(f.freed))
}

// unsettled tells that waiting a moment may show what the file says for the first time.
func (f file) unsettled() bool {
	return f.good == nil && (f.state == busy || f.state == blank)
}

// problems are the faults of the file and of what it says.
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

// countsAs tells whether two states of a file make no difference to the store.
func (f file) countsAs(other file) bool {
	return f.good == other.good && (f.state == gone) == (other.state == gone)
}
