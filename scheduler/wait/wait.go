// Package wait waits until values are applied.
//
//	err := wait.For(ctx, s, "mount/home", "volume/v1")
//
// It reads the statuses that the scheduler publishes; no transaction waits for it.
//
// Waiting costs the scheduler nothing: it reads the same snapshots and changes as any
// other reader. A verb of a descriptor must not wait, because the loop would wait for the
// verb.
package wait

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/scheduler"
)

// ErrNotApplied is wrapped by every Error.
var ErrNotApplied = errors.New("not applied")

// An Error lists the values that are neither CONFIGURED nor OBTAINED. It wraps
// ErrNotApplied, the error of each value and, if For was ended by its context, the error
// of the context.
type Error struct {
	Values []Value // sorted by key
	ended  error
}

// A Value is a value that is not applied.
type Value struct {
	Key     string
	State   scheduler.State // NONEXISTENT: the key is unknown
	Err     error           // INVALID, FAILED, RETRYING or UNIMPLEMENTED: the reason; else nil
	Details []string        // PENDING: labels of unmet dependencies
}

// String says what keeps the value from being applied, in one line.
func (v Value) String() string {
	switch {
	case v.State == scheduler.Nonexistent:
		return v.Key + " does not exist: it is neither declared nor found"
	case v.Err != nil:
		return fmt.Sprintf("%s is %s: %v", v.Key, v.State, v.Err)
	case len(v.Details) > 0:
		return fmt.Sprintf("%s is %s: it waits for %s", v.Key, v.State, strings.Join(v.Details, ", "))
	}
	return fmt.Sprintf("%s is %s", v.Key, v.State)
}

// Error names the first values only. Values has all of them.
func (e *Error) Error() string {
	const most = 10
	var b strings.Builder
	if e.ended != nil {
		fmt.Fprintf(&b, "%v while waiting: ", e.ended)
	}
	for i, v := range e.Values {
		if i == most {
			fmt.Fprintf(&b, "; and %d more", len(e.Values)-most)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(v.String())
	}
	return b.String()
}

// Unwrap returns ErrNotApplied, the reason why waiting ended early, and the error of each
// value. So errors.Is distinguishes a deadline from a value that can never be applied.
func (e *Error) Unwrap() []error {
	out := []error{ErrNotApplied}
	if e.ended != nil {
		out = append(out, e.ended)
	}
	for _, v := range e.Values {
		if v.Err != nil {
			out = append(out, v.Err)
		}
	}
	return out
}

// For waits until earlier Submits were processed and each of the keys is CONFIGURED or
// OBTAINED. It returns an *Error when ctx ends, or as soon as one of them is in a state that
// does not change by itself: INVALID, FAILED, UNIMPLEMENTED, DISCOVERED, or unknown. It
// returns scheduler.ErrStopped if s has stopped.
func For(ctx context.Context, s *scheduler.Scheduler, keys ...string) error {
	if err := s.Sync(ctx); err != nil {
		return err
	}
	watch := s.Watch("")
	defer watch.Close()
	waiting := newWaited(keys)
	for news := watch.Take(); ; {
		for _, st := range news {
			waiting.update(st)
		}
		if waiting.decided() {
			return waiting.err(nil)
		}
		var err error
		news, err = watch.Next(ctx)
		if err != nil {
			return waiting.err(err)
		}
	}
}

// NonePending waits until none of the values under keys is PENDING, nor any value that is derived
// from them. Unknown keys are not. It returns at once if that is so. When ctx ends before, it
// returns an *Error with the pending values.
//
// Unlike For it does not wait for failed values: their errors are known already.
func NonePending(ctx context.Context, s *scheduler.Scheduler, keys ...string) error {
	pending := pendingOf(s, keys, 1)
	if len(pending) == 0 {
		return nil
	}
	watch := s.Watch("")
	defer watch.Close()
	for {
		// The first pending value is asked again after each change, all others only when it
		// is no longer pending: with 10,000 keys, each change would cost a look at each.
		for pending = pendingOf(s, keys, 1); len(pending) > 0 && isPending(s, pending[0].Key); {
			if _, err := watch.Next(ctx); err != nil {
				return &Error{Values: pendingOf(s, keys, len(keys)), ended: err}
			}
		}
		if len(pending) == 0 {
			return nil
		}
	}
}

// isPending reports whether key is pending now. It reads a snapshot; no transaction waits
// for it.
func isPending(s *scheduler.Scheduler, key string) bool {
	st, ok := s.Status(key)
	return ok && st.State == scheduler.Pending
}

// pendingOf returns the pending values under keys and their derived values, sorted by key. It
// stops after most keys with a pending value.
func pendingOf(s *scheduler.Scheduler, keys []string, most int) (out []Value) {
	bases := 0
	for _, key := range keys {
		before := len(out)
		out = appendPending(out, s, key)
		if len(out) == before {
			continue
		}
		if bases++; bases == most {
			break
		}
	}
	slices.SortFunc(out, func(a, b Value) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// appendPending appends the pending values among key and all values that are derived from
// it, directly or indirectly.
func appendPending(out []Value, s *scheduler.Scheduler, key string) []Value {
	st, ok := s.Status(key)
	if !ok {
		return out
	}
	if st.State == scheduler.Pending {
		out = append(out, Value{key, st.State, st.Err, st.Details})
	}
	for _, part := range st.Derived() {
		out = appendPending(out, s, part)
	}
	return out
}

// waited are the keys that are waited for. It counts their states, because each change would
// otherwise cost a look at all of them.
type waited struct {
	newest   map[string]*scheduler.Status // by key; nil: none
	open     int                          // not applied yet
	hopeless int                          // never applied by the scheduler itself
}

// newWaited returns the keys without a status.
func newWaited(keys []string) *waited {
	w := &waited{newest: make(map[string]*scheduler.Status, len(keys))}
	for _, key := range keys {
		w.newest[key] = nil
	}
	w.hopeless = len(w.newest)
	return w
}

// update stores the newest status of a key that is waited for. Others are ignored, because
// the watch is for all keys.
func (w *waited) update(st *scheduler.Status) {
	before, asked := w.newest[st.Key]
	if !asked {
		return
	}
	w.count(before, -1)
	w.count(st, 1)
	w.newest[st.Key] = st
}

// count adds n to the count that a status belongs to.
func (w *waited) count(st *scheduler.Status, n int) {
	switch {
	case applied(st):
	case mayApply(st):
		w.open += n
	default:
		w.hopeless += n
	}
}

// decided reports whether waiting is no longer useful or necessary.
func (w *waited) decided() bool { return w.hopeless > 0 || w.open == 0 }

// err lists the keys that are not applied; nil: all are applied.
func (w *waited) err(ended error) error {
	e := &Error{ended: ended}
	for key, st := range w.newest {
		switch {
		case st == nil:
			e.Values = append(e.Values, Value{Key: key, State: scheduler.Nonexistent})
		case !applied(st):
			e.Values = append(e.Values, Value{key, st.State, st.Err, st.Details})
		}
	}
	if len(e.Values) == 0 {
		return nil
	}
	slices.SortFunc(e.Values, func(a, b Value) int { return strings.Compare(a.Key, b.Key) })
	return e
}

func applied(st *scheduler.Status) bool {
	return st != nil && (st.State == scheduler.Configured || st.State == scheduler.Obtained)
}

// mayApply reports whether the scheduler itself will try to apply st.
func mayApply(st *scheduler.Status) bool {
	if st == nil {
		return false
	}
	switch st.State {
	case scheduler.Pending, scheduler.Retrying, scheduler.Missing:
		return true
	default:
		return false
	}
}
