package filedb

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"time"
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
}

type state int

const (
	settled state = iota // as good as it gets until it changes
	racy                 // read so soon after a change that the next may carry the same time
	busy                 // someone is writing it
	blank                // empty; perhaps for a moment only
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
}

// raciness covers the coarsest clock of a file system.
const raciness = 100 * time.Millisecond

// changed tells whether a file must be read again, given what lies there now.
func (f file) changed(now identity) bool { return f.state != settled || f.id != now }

// sees returns what is known of the file after a look at it, and whether it is to
// be kept. What it said last goes on counting while it cannot be read or parsed,
// and for a grace while it is empty or gone.
func (f file) sees(s sight, now time.Time, c Config) (next file, keep bool) {
	next = f.at(s.id, now)
	next.fault, next.until = nil, time.Time{}
	age := next.age(now)
	switch {
	case errors.Is(s.err, fs.ErrNotExist):
		next.state, next.until = gone, next.since.Add(c.VanishGrace)
		return next, f.good != nil && now.Before(next.until)
	case errors.Is(s.err, errBusy):
		next.state = busy
		next.until = now.Add(min(max(age/4, time.Millisecond), 100*time.Millisecond))
		if age > c.Grace {
			next.fault = s.err
		}
		return next, true
	case s.err != nil:
		next.state, next.fault = racy, s.err
		return next, true
	}
	next.read, next.state = s, settled
	if now.Sub(s.id.status) < raciness {
		next.state = racy
	}
	switch {
	case s.fault != nil:
		next.fault = s.fault
	case s.content.blank && age < c.Grace:
		next.state, next.until = blank, now.Add(c.Grace-age)
	case f.good == nil || f.good.said() != s.content:
		next.good = s.content.orOf(f.good)
	}
	return next, true
}

// at is the file as it is known, when id lies there now.
func (f file) at(id identity, now time.Time) file {
	if id != f.id || f.since.IsZero() {
		f.id, f.since = id, now
	}
	return f
}

// age is how long the file has been as it is: as it says itself, or as has been seen.
func (f file) age(now time.Time) time.Duration {
	return max(now.Sub(f.id.status), now.Sub(f.since))
}

// stalled tells that whoever has the file open has long stopped writing it.
func (f file) stalled(now time.Time, c Config) bool { return f.age(now) >= c.stall() }

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
