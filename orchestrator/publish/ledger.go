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
type ledger struct {
	o      Options
	until  time.Time // up to when what an earlier run has left may still become known
	known  known
	rows   map[string]*row // by key of a declared value
	urgent []*row          // to be written, first those that are not as declared
	rest   []*row
	left   []string  // keys that the store has and nobody knows
	rests  []resting // in the order in which they were written
	failed int       // rows whose last write failed
	// refusals are the rows that the store does not take, in the order of their last attempt.
	refusals []resting
	refused  int // rows in refusals, and those that are tried again now
	seed     maphash.Seed
}

// A row is one key of the store.
type row struct {
	key string
	// dirty: what is known may not be what the store has. It waits in a queue, unless
	// it was written a moment ago.
	dirty, resting bool
	inUrgent       bool
	inRest         bool

	stored  bool   // the store may have the key
	written uint64 // hash of what this session has written; 0: nothing that is sure
	removed bool   // what it has written is that the value is removed
	failed  bool
	refused bool // by the store, which works otherwise
}

// resting is a row that is not written again before its time.
type resting struct {
	row   *row
	until time.Time
}

// A write is a change of the store, of one row.
type write struct {
	row *row
	kvdbsync.Pair
	removed bool
}

func newLedger(o Options, now time.Time) *ledger {
	return &ledger{o: o, until: now.Add(o.Patience), known: known{}, rows: map[string]*row{}, seed: maphash.MakeSeed()}
}

// note takes over a status.
func (l *ledger) note(st *scheduler.Status) {
	key := l.known.set(st)
	if !strings.HasPrefix(key, config) {
		return
	}
	if l.known.has(key) || l.rows[key] != nil {
		l.soil(l.row(key))
	}
}

func (l *ledger) row(key string) *row {
	r := l.rows[key]
	if r == nil {
		r = &row{key: key}
		l.rows[key] = r
	}
	return r
}

// begin starts a session with a store that has held: all that is known is to be
// written in it.
func (l *ledger) begin(held []kvdbsync.Pair) {
	for _, r := range l.rows {
		r.stored, r.written, r.removed = false, 0, false
	}
	for _, p := range held {
		key := config + strings.TrimPrefix(p.Key, l.o.prefix())
		l.row(key).stored = true
	}
	l.left = nil
	for _, key := range slices.Sorted(maps.Keys(l.rows)) {
		if r := l.rows[key]; r.stored && !l.known.has(key) {
			l.left = append(l.left, key)
		} else {
			l.soil(r)
		}
	}
}

// soil sees to it that the row is looked at.
func (l *ledger) soil(r *row) {
	r.dirty = true
	if r.resting {
		return
	}
	switch {
	case r.inUrgent:
	case l.known.troubled(r.key):
		r.inUrgent = true
		l.urgent = append(l.urgent, r)
	case !r.inRest:
		r.inRest = true
		l.rest = append(l.rest, r)
	}
}

// next returns what to write now, at most n changes. What is not as declared comes
// first, but never alone while anything else waits.
func (l *ledger) next(now time.Time, n int) (out []write) {
	l.wake(now)
	share := n
	if len(l.rest) > 0 {
		share = n - n/4
	}
	for len(l.urgent) > 0 && len(out) < share {
		r := l.urgent[0]
		l.urgent = l.urgent[1:]
		r.inUrgent = false
		out = l.settle(out, r)
	}
	for len(l.rest) > 0 && len(out) < n {
		r := l.rest[0]
		l.rest = l.rest[1:]
		r.inRest = false
		out = l.settle(out, r)
	}
	return out
}

// settle adds the write that row r needs, if any.
func (l *ledger) settle(out []write, r *row) []write {
	if !r.dirty || r.resting {
		return out
	}
	r.dirty = false
	w := write{row: r, Pair: kvdbsync.Pair{Key: l.o.prefix() + strings.TrimPrefix(r.key, config)}}
	switch st := l.known.status(r.key); {
	case st != nil:
		if w.Value = st.json(); l.hash(w.Value) == r.written {
			return out
		}
	case !r.stored:
		l.clear(r)
		return out
	case r.written != 0 && !r.removed: // who watches the key sees the value go
		w.Value, w.removed = removed(r.key).json(), true
	}
	return append(out, w)
}

// clear forgets a row that neither side knows.
func (l *ledger) clear(r *row) {
	l.recovered(r)
	delete(l.rows, r.key)
}

// done notes that all of it is written.
func (l *ledger) done(now time.Time, writes []write) {
	for _, w := range writes {
		r := w.row
		r.stored, r.removed, r.written = w.Value != nil, w.removed, 0
		if w.Value != nil {
			r.written = l.hash(w.Value)
		}
		l.recovered(r)
		r.dirty, r.resting = w.removed, true
		l.rests = append(l.rests, resting{r, now.Add(l.o.Period)})
	}
}

// undone notes that nobody knows what of it is written.
func (l *ledger) undone(writes []write) {
	for _, w := range writes {
		r := w.row
		r.stored, r.written = true, 0
		if !r.failed {
			r.failed = true
			l.failed++
		}
		l.soil(r)
	}
}

// refuse notes that the store works but does not take w. The row is tried again later, and
// does not hold up others.
func (l *ledger) refuse(now time.Time, w write) {
	r := w.row
	l.recovered(r)
	r.refused, r.resting = true, true
	l.refused++
	l.refusals = append(l.refusals, resting{r, now.Add(refusalPause)})
}

// recovered forgets that writes of the row failed.
func (l *ledger) recovered(r *row) {
	if r.failed {
		r.failed = false
		l.failed--
	}
	if r.refused {
		r.refused = false
		l.refused--
	}
}

// wakeRefused ends the rest of refused rows whose time has come.
func (l *ledger) wakeRefused(now time.Time) {
	for len(l.refusals) > 0 && !l.refusals[0].until.After(now) {
		r := l.refusals[0].row
		l.refusals = l.refusals[1:]
		r.resting = false
		l.soil(r)
	}
}

// wake ends the rest of those whose time has come.
func (l *ledger) wake(now time.Time) {
	l.wakeRefused(now)
	for len(l.rests) > 0 && !l.rests[0].until.After(now) {
		r := l.rests[0].row
		l.rests = l.rests[1:]
		r.resting = false
		if !r.dirty && !r.stored {
			l.clear(r)
		} else if r.dirty {
			l.soil(r)
		}
	}
	if !l.until.After(now) {
		for _, key := range l.left {
			if r := l.rows[key]; r != nil {
				l.soil(r)
			}
		}
		l.left = nil
	}
}

// due returns when there may be something to write; zero: not until there are news.
func (l *ledger) due(now time.Time) time.Time {
	if len(l.urgent) > 0 || len(l.rest) > 0 {
		return now
	}
	var first time.Time
	sooner := func(t time.Time) {
		if first.IsZero() || t.Before(first) {
			first = t
		}
	}
	if len(l.rests) > 0 {
		sooner(l.rests[0].until)
	}
	if len(l.refusals) > 0 {
		sooner(l.refusals[0].until)
	}
	if len(l.left) > 0 {
		sooner(l.until)
	}
	return first
}

// hash of a text, which is never 0.
func (l *ledger) hash(text []byte) uint64 { return maphash.Bytes(l.seed, text) | 1 }
