package publish

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/scheduler"
)

// refusalPause is the time from one attempt to write a row that the store refuses to the next.
const refusalPause = time.Minute

// A ledger has what is known of each declared value, and what the store has of
// it. It says what to write next, so that the store follows. It touches nothing, and
// is told the time.
type writeQueue struct {
	o             Options
	leftoverUntil time.Time // up to when what an earlier run has left may still become known
	statuses      statusIndex
	rows          map[string]*row // by key of a declared value
	urgent        []*row          // to be written, first those that are not as declared
	normal        []*row
	leftover      []string     // keys that the store has and nobody knows
	delayed       []delayedRow // in the order in which they were written
	failed        int          // rows whose last write failed
	// refusals are the rows that the store does not take, in the order of their last attempt.
	refusals    []delayedRow
	refusedRows int // rows in refusals, and those that are tried again now
	seed        maphash.Seed
}

// A row is one key of the store.
type row struct {
	key string
	// dirty: what is known may not be what the store has. It waits in a queue, unless
	// it was written a moment ago.
	dirty, delayed bool
	inUrgent       bool
	inNormal       bool

	stored       bool   // the store may have the key
	writtenHash  uint64 // hash of what this session has written; 0: nothing that is sure
	wroteRemoved bool   // what it has written is that the value is removed
	failed       bool
	refused      bool // by the store, which works otherwise
}

// resting is a row that is not written again before its time.
type delayedRow struct {
	row   *row
	until time.Time
}

// A write is a change of the store, of one row.
type write struct {
	row *row
	kvdbsync.Pair
	removed bool
}

func newWriteQueue(o Options, now time.Time) *writeQueue {
	return &writeQueue{o: o, leftoverUntil: now.Add(o.LeftoverGrace), statuses: statusIndex{}, rows: map[string]*row{}, seed: maphash.MakeSeed()}
}

// note takes over a status.
func (l *writeQueue) update(st *scheduler.Status) {
	key := l.statuses.set(st)
	if !strings.HasPrefix(key, config) {
		return
	}
	if l.statuses.has(key) || l.rows[key] != nil {
		l.markDirty(l.row(key))
	}
}

func (l *writeQueue) row(key string) *row {
	r := l.rows[key]
	if r == nil {
		r = &row{key: key}
		l.rows[key] = r
	}
	return r
}

// begin starts a session with a store that has held: all that is known is to be
// written in it.
func (l *writeQueue) beginSession(held []kvdbsync.Pair) {
	for _, r := range l.rows {
		r.stored, r.writtenHash, r.wroteRemoved = false, 0, false
	}
	for _, p := range held {
		key := config + strings.TrimPrefix(p.Key, l.o.prefix())
		l.row(key).stored = true
	}
	l.leftover = nil
	for _, key := range slices.Sorted(maps.Keys(l.rows)) {
		if r := l.rows[key]; r.stored && !l.statuses.has(key) {
			l.leftover = append(l.leftover, key)
		} else {
			l.markDirty(r)
		}
	}
}

// soil sees to it that the row is looked at.
func (l *writeQueue) markDirty(r *row) {
	r.dirty = true
	if r.delayed {
		return
	}
	switch {
	case r.inUrgent:
	case l.statuses.hasProblem(r.key):
		r.inUrgent = true
		l.urgent = append(l.urgent, r)
	case !r.inNormal:
		r.inNormal = true
		l.normal = append(l.normal, r)
	}
}

// next returns what to write now, at most n changes. What is not as declared comes
// first, but never alone while anything else waits.
func (l *writeQueue) next(now time.Time, n int) (out []write) {
	l.releaseDelayed(now)
	share := n
	if len(l.normal) > 0 {
		share = n - n/4
	}
	for len(l.urgent) > 0 && len(out) < share {
		r := l.urgent[0]
		l.urgent = l.urgent[1:]
		r.inUrgent = false
		out = l.appendWrite(out, r)
	}
	for len(l.normal) > 0 && len(out) < n {
		r := l.normal[0]
		l.normal = l.normal[1:]
		r.inNormal = false
		out = l.appendWrite(out, r)
	}
	return out
}

// settle adds the write that row r needs, if any.
func (l *writeQueue) appendWrite(out []write, r *row) []write {
	if !r.dirty || r.delayed {
		return out
	}
	r.dirty = false
	w := write{row: r, Pair: kvdbsync.Pair{Key: l.o.prefix() + strings.TrimPrefix(r.key, config)}}
	switch st := l.statuses.status(r.key); {
	case st != nil:
		if w.Value = st.json(); l.hash(w.Value) == r.writtenHash {
			return out
		}
	case !r.stored:
		l.dropRow(r)
		return out
	case r.writtenHash != 0 && !r.wroteRemoved: // who watches the key sees the value go
		w.Value, w.removed = removed(r.key).json(), true
	}
	return append(out, w)
}

// clear forgets a row that neither side knows.
func (l *writeQueue) dropRow(r *row) {
	l.recovered(r)
	delete(l.rows, r.key)
}

// done notes that all of it is written.
func (l *writeQueue) noteWritten(now time.Time, writes []write) {
	for _, w := range writes {
		r := w.row
		r.stored, r.wroteRemoved, r.writtenHash = w.Value != nil, w.removed, 0
		if w.Value != nil {
			r.writtenHash = l.hash(w.Value)
		}
		l.recovered(r)
		r.dirty, r.delayed = w.removed, true
		l.delayed = append(l.delayed, delayedRow{r, now.Add(l.o.Period)})
	}
}

// undone notes that nobody knows what of it is written.
func (l *writeQueue) noteFailed(writes []write) {
	for _, w := range writes {
		r := w.row
		r.stored, r.writtenHash = true, 0
		if !r.failed {
			r.failed = true
			l.failed++
		}
		l.markDirty(r)
	}
}

// refuse notes that the store works but does not take w. The row is tried again later, and
// does not hold up others.
func (l *writeQueue) noteRefused(now time.Time, w write) {
	r := w.row
	l.recovered(r)
	r.refused, r.delayed = true, true
	l.refusedRows++
	l.refusals = append(l.refusals, delayedRow{r, now.Add(refusalPause)})
}

// recovered forgets that writes of the row failed.
func (l *writeQueue) recovered(r *row) {
	if r.failed {
		r.failed = false
		l.failed--
	}
	if r.refused {
		r.refused = false
		l.refusedRows--
	}
}

// wakeRefused ends the rest of refused rows whose time has come.
func (l *writeQueue) releaseRefused(now time.Time) {
	for len(l.refusals) > 0 && !l.refusals[0].until.After(now) {
		r := l.refusals[0].row
		l.refusals = l.refusals[1:]
		r.delayed = false
		l.markDirty(r)
	}
}

// wake ends the rest of those whose time has come.
func (l *writeQueue) releaseDelayed(now time.Time) {
	l.releaseRefused(now)
	for len(l.delayed) > 0 && !l.delayed[0].until.After(now) {
		r := l.delayed[0].row
		l.delayed = l.delayed[1:]
		r.delayed = false
		if !r.dirty && !r.stored {
			l.dropRow(r)
		} else if r.dirty {
			l.markDirty(r)
		}
	}
	if !l.leftoverUntil.After(now) {
		for _, key := range l.leftover {
			if r := l.rows[key]; r != nil {
				l.markDirty(r)
			}
		}
		l.leftover = nil
	}
}

// due returns when there may be something to write; zero: not until there are news.
func (l *writeQueue) nextTime(now time.Time) time.Time {
	if len(l.urgent) > 0 || len(l.normal) > 0 {
		return now
	}
	var first time.Time
	sooner := func(t time.Time) {
		if first.IsZero() || t.Before(first) {
			first = t
		}
	}
	if len(l.delayed) > 0 {
		sooner(l.delayed[0].until)
	}
	if len(l.refusals) > 0 {
		sooner(l.refusals[0].until)
	}
	if len(l.leftover) > 0 {
		sooner(l.leftoverUntil)
	}
	return first
}

// hash of a text, which is never 0.
func (l *writeQueue) hash(text []byte) uint64 { return maphash.Bytes(l.seed, text) | 1 }
