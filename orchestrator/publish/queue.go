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

// refusalPause is the time between two attempts to write a row that the store
// refuses.
const refusalPause = time.Minute

// A writeQueue holds the known status of each declared value and the known content
// of the store. It decides what to write next, so that the store follows the
// statuses. It is pure: callers pass the time and execute the writes.
type writeQueue struct {
	o             Options
	leftoverUntil time.Time // end of LeftoverGrace
	statuses      statusIndex
	rows          map[string]*row // by key of the declared value
	urgent        []*row          // to be written first: values that are not as declared
	normal        []*row
	leftover      []string     // keys of an earlier run without a known status
	delayed       []delayedRow // in the order of their writes
	failed        int          // number of rows with a failed last write
	// refusals are the rows that the store refuses, in the order of their last
	// attempt.
	refusals    []delayedRow
	refusedRows int // rows in refusals, and those that are tried again now
	seed        maphash.Seed
}

// A row is the status of one declared value in the store.
type row struct {
	key string
	// dirty rows may differ from the store. They are in a queue, or delayed if they
	// were written recently.
	dirty, delayed bool
	inUrgent       bool
	inNormal       bool
	// The agent has handled another value since the last write. The status is written even if
	// its text is the same: a reader that removed the old text waits for that.
	otherValue bool

	held        held   // by the store, under the key
	writtenHash uint64 // hash of the text written in this session; 0: unknown
	failed      bool
	refused     bool // the store refuses this key, but not others
}

// held says what the store holds under a key.
type held uint8

const (
	heldNothing held = iota
	heldUnknown      // a text of an earlier session, or that of a write without a result
	heldStatus       // the text written last
	heldRemoved      // the same; it is REMOVED
)

// A delayedRow is not written again before a given time.
type delayedRow struct {
	row   *row
	until time.Time
}

// A write is one change of the store. A nil Value deletes the key.
type write struct {
	row *row
	kvdbsync.Pair
	removed bool
}

// newWriteQueue returns an empty queue.
func newWriteQueue(o Options, now time.Time) *writeQueue {
	return &writeQueue{o: o, leftoverUntil: now.Add(o.LeftoverGrace), statuses: statusIndex{}, rows: map[string]*row{}, seed: maphash.MakeSeed()}
}

// update records a status. Values outside config/ are not declared and have no row.
func (l *writeQueue) update(st *scheduler.Status) {
	other := l.statuses.hasOtherValue(st)
	key := l.statuses.set(st)
	if !strings.HasPrefix(key, config) {
		return
	}
	switch r := l.rows[key]; {
	case l.statuses.has(key):
		r = l.row(key)
		r.otherValue = r.otherValue || other
		l.markDirty(r)
	case r == nil:
	case r.held == heldNothing && !r.delayed:
		l.dropRow(r) // it came and went while there was no session
	default:
		l.markDirty(r)
	}
}

// row returns the row of a key, new if needed.
func (l *writeQueue) row(key string) *row {
	r := l.rows[key]
	if r == nil {
		r = &row{key: key}
		l.rows[key] = r
	}
	return r
}

// beginSession starts over with a store that contains the given pairs. All known
// statuses are written, because an earlier session may have left other texts.
func (l *writeQueue) beginSession(held []kvdbsync.Pair) {
	for _, r := range l.rows {
		r.held, r.writtenHash = heldNothing, 0
	}
	l.compare(held)
}

// compare schedules the rows for which the store has another text than this session has written.
func (l *writeQueue) compare(held []kvdbsync.Pair) {
	texts := make(map[string][]byte, len(held))
	for _, p := range held {
		key := config + strings.TrimPrefix(p.Key, l.o.prefix())
		texts[key] = p.Value
		l.row(key)
	}
	l.leftover = nil
	for _, key := range slices.Sorted(maps.Keys(l.rows)) {
		r := l.rows[key]
		text, has := texts[key]
		if has && l.hash(text) == r.writtenHash {
			continue
		}
		r.held, r.writtenHash = heldNothing, 0
		if has {
			r.held = heldUnknown
		}
		if has && !l.statuses.has(key) {
			l.leftover = append(l.leftover, key)
		} else {
			l.markDirty(r)
		}
	}
}

// markDirty schedules the row for comparison with the store. Delayed rows are
// scheduled at the end of their delay.
func (l *writeQueue) markDirty(r *row) {
	r.dirty = true
	if r.delayed {
		return
	}
	switch {
	case r.inUrgent:
	case l.statuses.hasProblem(r.key):
		r.inUrgent = true
		l.urgent = l.push(l.urgent, r)
	case !r.inNormal:
		r.inNormal = true
		l.normal = l.push(l.normal, r)
	}
}

// push adds a row to a queue. It takes those out that were dropped, when they are the most.
func (l *writeQueue) push(queue []*row, r *row) []*row {
	if len(queue) > 2*len(l.rows) {
		queue = slices.DeleteFunc(queue, func(r *row) bool { return l.rows[r.key] != r })
	}
	return append(queue, r)
}

// next returns at most n changes to write now. Urgent rows come first, but leave a
// quarter of the batch to the others, so that neither starves.
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

// appendWrite adds the write that row r needs, if any.
func (l *writeQueue) appendWrite(out []write, r *row) []write {
	if !r.dirty || r.delayed {
		return out
	}
	other := r.otherValue
	r.dirty, r.otherValue = false, false
	w := write{row: r, Pair: kvdbsync.Pair{Key: l.o.prefix() + strings.TrimPrefix(r.key, config)}}
	switch st := l.statuses.status(r.key); {
	case st != nil:
		w.Value = st.json()
		if l.hash(w.Value) == r.writtenHash && !other {
			return out
		}
	case r.held == heldNothing:
		l.dropRow(r)
		return out
	case r.held == heldStatus: // clients that watch the key see the removal
		w.Value, w.removed = removed(r.key).json(), true
	}
	return append(out, w)
}

// dropRow forgets a row without a status and without a key in the store.
func (l *writeQueue) dropRow(r *row) {
	l.recovered(r)
	r.dirty = false // it may be in a queue still
	delete(l.rows, r.key)
}

// noteWritten records that all of the writes succeeded.
func (l *writeQueue) noteWritten(now time.Time, writes []write) {
	for _, w := range writes {
		r := w.row
		r.held, r.writtenHash = heldNothing, 0
		if w.Value != nil {
			r.held, r.writtenHash = heldStatus, l.hash(w.Value)
		}
		if w.removed {
			r.held = heldRemoved
		}
		l.recovered(r)
		r.dirty, r.delayed = w.removed, true
		l.delayed = append(l.delayed, delayedRow{r, now.Add(l.o.Period)})
	}
}

// noteFailed records that the result of the writes is unknown: the store may have
// executed any of them.
func (l *writeQueue) noteFailed(writes []write) {
	for _, w := range writes {
		r := w.row
		r.held, r.writtenHash = heldUnknown, 0
		if !r.failed {
			r.failed = true
			l.failed++
		}
		l.markDirty(r)
	}
}

// noteRefused records that the store works but refuses w. The row is retried later
// and does not delay others.
func (l *writeQueue) noteRefused(now time.Time, w write) {
	r := w.row
	l.recovered(r)
	r.refused, r.delayed = true, true
	l.refusedRows++
	l.refusals = append(l.refusals, delayedRow{r, now.Add(refusalPause)})
}

// recovered clears the failure marks of a row.
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

// releaseRefused schedules the refused rows after their pause.
func (l *writeQueue) releaseRefused(now time.Time) {
	for len(l.refusals) > 0 && !l.refusals[0].until.After(now) {
		r := l.refusals[0].row
		l.refusals = l.refusals[1:]
		r.delayed = false
		l.markDirty(r)
	}
}

// releaseDelayed schedules the delayed rows after their delay, and the leftover ones
// after LeftoverGrace.
func (l *writeQueue) releaseDelayed(now time.Time) {
	l.releaseRefused(now)
	for len(l.delayed) > 0 && !l.delayed[0].until.After(now) {
		r := l.delayed[0].row
		l.delayed = l.delayed[1:]
		r.delayed = false
		if !r.dirty && r.held == heldNothing {
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

// nextTime returns the time of the next possible write, or zero if nothing is
// pending.
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

// hash returns the hash of a text. It is never 0, which means unknown.
func (l *writeQueue) hash(text []byte) uint64 { return maphash.Bytes(l.seed, text) | 1 }
