package rest

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler"
)

// timelines hold the revisions of keys, as far back as the history reaches. Each
// operation starts a new revision of its key.
type timelines struct {
	keys      []string // sorted
	revisions map[string][]revision
}

// A revision is the state of a key during one period.
type revision struct {
	since, until time.Time // zero since: before the history; zero until: still current
	value        proto.Message
	applied      bool // the southbound has the value
	state        scheduler.State
	err          error
	txn          uint64 // number of the transaction that started it
	inTxn        bool   // txn is known
	meta         any    // nil: none, or unknown
	base         string // key of the base value; empty for a base value
}

// newTimelines returns the timelines of the keys that keep accepts. statuses must be
// older than records: an operation between both would otherwise be missing.
func newTimelines(statuses []*scheduler.Status, records []*scheduler.Record, keep func(key string) bool) *timelines {
	c := &timelines{revisions: map[string][]revision{}}
	for _, r := range records {
		for i := range r.Executed {
			if op := &r.Executed[i]; keep(op.Key) {
				c.add(r, op)
			}
		}
	}
	for _, st := range statuses {
		if keep(st.Key) {
			c.addCurrent(st)
		}
	}
	for key := range c.revisions {
		c.keys = append(c.keys, key)
	}
	slices.Sort(c.keys)
	return c
}

// add starts the revision that an operation created. The first operation of a key
// also reveals the revision before it.
func (c *timelines) add(r *scheduler.Record, op *scheduler.Operation) {
	revs := c.revisions[op.Key]
	if len(revs) == 0 && exists(op.OldState) {
		revs = append(revs, revision{value: op.Old, applied: op.Old != nil, state: op.OldState, err: op.OldErr})
	}
	next := revision{since: r.Stop, value: op.New, applied: appliedAfter(op), state: op.NewState, err: op.NewErr, meta: op.Meta, txn: r.Seq, inTxn: true}
	if next.value == nil && exists(next.state) {
		next.value = op.Old // deleted from the southbound, but still declared
	}
	c.revisions[op.Key] = startRevision(revs, next)
}

// startRevision ends the last revision and appends next. Of several revisions that
// start at the same moment, the last one is kept. A state that means "does not
// exist" starts no revision.
func startRevision(revs []revision, next revision) []revision {
	if n := len(revs); n > 0 {
		last := &revs[n-1]
		if last.until.IsZero() {
			last.until = next.since
		}
		if !last.since.IsZero() && !last.since.Before(next.since) {
			revs = revs[:n-1]
		}
	}
	if !exists(next.state) {
		return revs
	}
	return append(revs, next)
}

// addCurrent adds information from the current status: values that the history has
// forgotten, states that changed without an operation, and the base of derived
// values.
func (c *timelines) addCurrent(st *scheduler.Status) {
	revs := c.revisions[st.Key]
	n := len(revs)
	if n == 0 || revs[n-1].until.IsZero() && revs[n-1].state != st.State {
		value := st.Actual
		if value == nil {
			value = st.Desired
		}
		revs = startRevision(revs, revision{since: st.Since, value: value, applied: st.Actual != nil, state: st.State, err: st.Err})
	}
	if n := len(revs); n > 0 && revs[n-1].until.IsZero() {
		revs[n-1].meta = st.Meta // newer than that of the operation, if the system has changed it
	}
	for i := range revs {
		revs[i].base = st.Base
	}
	c.revisions[st.Key] = revs
}

// exists reports whether a value with this state exists.
func exists(s scheduler.State) bool {
	return s != scheduler.Nonexistent && s != scheduler.Removed
}

// appliedAfter reports whether the southbound has the value after the operation.
func appliedAfter(op *scheduler.Operation) bool {
	switch op.NewState {
	case scheduler.Configured, scheduler.Obtained, scheduler.Discovered:
		return true
	case scheduler.Failed, scheduler.Retrying:
		return op.Old != nil // a failed update or delete leaves the old value
	case scheduler.Invalid:
		return op.Old != nil
	default:
		return false
	}
}

// at returns the revision of key at a moment, or nil.
func (c *timelines) at(key string, t time.Time) *revision {
	revs := c.revisions[key]
	for i := range slices.Backward(revs) {
		if r := &revs[i]; !r.since.After(t) && (r.until.IsZero() || r.until.After(t)) {
			return r
		}
	}
	return nil
}

// satisfying returns the keys that satisfied d at a moment.
func (c *timelines) satisfying(d scheduler.Dependency, t time.Time) []string {
	out := []string{}
	for _, key := range c.candidates(d) {
		if r := c.at(key, t); r != nil && r.applied && d.MetBy(key) {
			out = append(out, key)
		}
	}
	return out
}

// candidates returns the keys that may satisfy d. Prefixes are found by binary
// search.
func (c *timelines) candidates(d scheduler.Dependency) (out []string) {
	if d.Key != "" {
		return []string{d.Key}
	}
	out = slices.Clone(d.Keys)
	for _, prefix := range d.Prefixes {
		from, _ := slices.BinarySearch(c.keys, prefix)
		for ; from < len(c.keys) && strings.HasPrefix(c.keys[from], prefix); from++ {
			out = append(out, c.keys[from])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
