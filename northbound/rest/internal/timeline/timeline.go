// Package timeline reconstructs the past of values from the history of transactions and their
// present states: which value a key had at a moment, and which keys met a dependency then.
//
// It is as old as the history reaches. All of it is pure and works on snapshots.
//
// A revision ends when the next operation of its key begins one. States that the history
// has forgotten, or that changed without an operation, come from the present status. So
// the last revision always agrees with the scheduler, and the first one may begin before
// the history.
package timeline

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler"
)

// Timelines hold the revisions of keys, as far back as the history reaches. Each
// operation starts a new revision of its key.
type Timelines struct {
	Keys []string // sorted
	// By key; those of one key are in order of time and do not overlap.
	Revisions map[string][]Revision
}

// A Revision is the state of a key during one period.
type Revision struct {
	Since, Until time.Time // zero since: before the history; zero until: still current
	Value        proto.Message
	Applied      bool // the southbound has the value
	// State and Err are those after the operation that started the revision.
	State scheduler.State
	Err   error
	Txn   uint64 // number of the transaction that started it
	InTxn bool   // txn is known
	Meta  any    // nil: none, or unknown
	Base  string // key of the base value; empty for a base value
}

// New returns the timelines of the keys that keep accepts. statuses must be
// older than records: an operation between both would otherwise be missing.
func New(statuses []*scheduler.Status, records []*scheduler.Record, keep func(key string) bool) *Timelines {
	c := &Timelines{Revisions: map[string][]Revision{}}
	for _, r := range records {
		for _, op := range r.Executed.All() {
			if keep(op.Key) {
				c.add(r, &op)
			}
		}
	}
	for _, st := range statuses {
		if keep(st.Key) {
			c.addCurrent(st)
		}
	}
	for key := range c.Revisions {
		c.Keys = append(c.Keys, key)
	}
	slices.Sort(c.Keys)
	return c
}

// add starts the revision that an operation created. The first operation of a key
// also reveals the revision before it.
func (c *Timelines) add(r *scheduler.Record, op *scheduler.Operation) {
	revs := c.Revisions[op.Key]
	if len(revs) == 0 && exists(op.OldState) {
		revs = append(revs, Revision{Value: op.Old, Applied: op.Old != nil, State: op.OldState, Err: op.OldErr})
	}
	next := Revision{Since: r.Stop, Value: op.New, Applied: appliedAfter(op), State: op.NewState, Err: op.NewErr, Meta: op.Meta, Txn: r.Seq, InTxn: true}
	if next.Value == nil && exists(next.State) {
		next.Value = op.Old // deleted from the southbound, but still declared
	}
	c.Revisions[op.Key] = startRevision(revs, next)
}

// startRevision ends the last revision and appends next. Of several revisions that
// start at the same moment, the last one is kept. A state that means "does not
// exist" starts no revision.
func startRevision(revs []Revision, next Revision) []Revision {
	if n := len(revs); n > 0 {
		last := &revs[n-1]
		if last.Until.IsZero() {
			last.Until = next.Since
		}
		if !last.Since.IsZero() && !last.Since.Before(next.Since) {
			revs = revs[:n-1]
		}
	}
	if !exists(next.State) {
		return revs
	}
	return append(revs, next)
}

// addCurrent adds information from the current status: values that the history has
// forgotten, states that changed without an operation, and the base of derived
// values.
func (c *Timelines) addCurrent(st *scheduler.Status) {
	revs := c.Revisions[st.Key]
	n := len(revs)
	if n == 0 || revs[n-1].Until.IsZero() && revs[n-1].State != st.State {
		value := st.Actual
		if value == nil {
			value = st.Desired
		}
		revs = startRevision(revs, Revision{Since: st.Since, Value: value, Applied: st.Actual != nil, State: st.State, Err: st.Err})
	}
	if n := len(revs); n > 0 && revs[n-1].Until.IsZero() {
		revs[n-1].Meta = st.Meta // newer than that of the operation, if the system has changed it
	}
	for i := range revs {
		revs[i].Base = st.Base
	}
	c.Revisions[st.Key] = revs
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

// At returns the revision of key at a moment, or nil.
func (c *Timelines) At(key string, t time.Time) *Revision {
	revs := c.Revisions[key]
	for i := range slices.Backward(revs) {
		if r := &revs[i]; !r.Since.After(t) && (r.Until.IsZero() || r.Until.After(t)) {
			return r
		}
	}
	return nil
}

// Satisfying returns the keys that satisfied d at a moment.
func (c *Timelines) Satisfying(d scheduler.Dependency, t time.Time) []string {
	out := []string{}
	for _, key := range c.candidates(d) {
		if r := c.At(key, t); r != nil && r.Applied && d.MetBy(key) {
			out = append(out, key)
		}
	}
	return out
}

// candidates returns the keys that may satisfy d. Prefixes are found by binary
// search.
func (c *Timelines) candidates(d scheduler.Dependency) (out []string) {
	if d.Key != "" {
		return []string{d.Key}
	}
	out = slices.Clone(d.Keys)
	for _, prefix := range d.Prefixes {
		from, _ := slices.BinarySearch(c.Keys, prefix)
		for ; from < len(c.Keys) && strings.HasPrefix(c.Keys[from], prefix); from++ {
			out = append(out, c.Keys[from])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
