package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

// ErrNotApplied is what Wait returns, as a *NotAppliedError.
var ErrNotApplied = errors.New("not applied")

// A NotAppliedError lists the values that Wait waited for and that are neither CONFIGURED
// nor OBTAINED. It is ErrNotApplied, the error of each value and, where Wait was ended by
// its context, the context's error.
type NotAppliedError struct {
	Values []NotApplied // sorted by key
	ended  error
}

// NotApplied is a value that is not applied.
type NotApplied struct {
	Key     string
	State   State    // NONEXISTENT: nothing is known of the key
	Err     error    // why it is INVALID, FAILED, RETRYING or UNIMPLEMENTED; else nil
	Details []string // PENDING: the labels of what it waits for
}

func (v NotApplied) String() string {
	switch {
	case v.State == nonexistent:
		return v.Key + " does not exist: nobody declares it, and it was not found"
	case v.Err != nil:
		return fmt.Sprintf("%s is %s: %v", v.Key, v.State, v.Err)
	case len(v.Details) > 0:
		return fmt.Sprintf("%s is %s: it waits for %s", v.Key, v.State, strings.Join(v.Details, ", "))
	}
	return fmt.Sprintf("%s is %s", v.Key, v.State)
}

func (e *NotAppliedError) Error() string {
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

func (e *NotAppliedError) Unwrap() []error {
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

// Wait waits until what was submitted before has been processed and each of the keys is
// CONFIGURED or OBTAINED. It returns a *NotAppliedError as soon as one of them is in a
// state that does not change by itself (INVALID, FAILED, UNIMPLEMENTED, DISCOVERED, or
// unknown), or when ctx ends.
func (s *Scheduler) Wait(ctx context.Context, keys ...string) error {
	if err := s.runInLoop(ctx, func(context.Context) {}); err != nil {
		return err
	}
	w := s.Watch("")
	defer w.Close()
	waiting := make(waited, len(keys))
	for _, key := range keys {
		waiting[key] = nil
	}
	for st := range s.statuses.All() {
		waiting.update(st)
	}
	for !waiting.decided() {
		news, err := w.Next(ctx)
		if err != nil {
			return waiting.err(err)
		}
		for _, st := range news {
			waiting.update(st)
		}
	}
	return waiting.err(nil)
}

// waited are the newest statuses of the keys that are waited for; nil: there is none.
type waited map[string]*Status

func (w waited) update(st *Status) {
	if _, asked := w[st.Key]; asked {
		w[st.Key] = st
	}
}

// over says that waiting does not help, or is not needed any more.
func (w waited) decided() bool {
	over := true
	for _, st := range w {
		switch {
		case applied(st):
		case mayApply(st):
			over = false
		default:
			return true
		}
	}
	return over
}

// err lists those that are not applied; nil: all are.
func (w waited) err(ended error) error {
	e := &NotAppliedError{ended: ended}
	for key, st := range w {
		switch {
		case st == nil:
			e.Values = append(e.Values, NotApplied{Key: key, State: nonexistent})
		case !applied(st):
			e.Values = append(e.Values, NotApplied{key, st.State, st.Err, st.Details})
		}
	}
	if len(e.Values) == 0 {
		return nil
	}
	slices.SortFunc(e.Values, func(a, b NotApplied) int { return strings.Compare(a.Key, b.Key) })
	return e
}

func applied(st *Status) bool {
	return st != nil && (st.State == kvscheduler.ValueState_CONFIGURED || st.State == kvscheduler.ValueState_OBTAINED)
}

// mayApply says that the scheduler itself will try to have st applied.
func mayApply(st *Status) bool {
	if st == nil {
		return false
	}
	switch st.State {
	case kvscheduler.ValueState_PENDING, kvscheduler.ValueState_RETRYING, kvscheduler.ValueState_MISSING:
		return true
	}
	return false
}
