package orchestrator

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/scheduler"
)

// attempt processes a request of which all takes effect, or nothing. The Memory learns it
// only when it has succeeded: after a kill, the caller has no answer, and nothing of the
// request is left.
//
// Its transaction does not prune, because nothing could bring back undeclared values. If the
// request makes the sources complete, another transaction prunes after its success.
func (o *Orchestrator) attempt(ctx context.Context, l *source, r *request, events []kvdbsync.Event) {
	if len(r.refused) > 0 {
		o.finish(l, r, nil, nil)
		return
	}
	undo := o.checkpoint(l, events)
	unsaved := o.unsavedOf(l, events)
	changes, _ := o.merge(l, events)
	if len(changes) == 0 {
		err := o.keep(l, unsaved, undo)
		l.publish()
		o.finish(l, r, nil, err)
		return
	}
	record, err := o.sched.Commit(ctx, scheduler.Txn{
		Description: r.description(l), Changes: changes, Retry: o.retry, Revert: true,
		Refresh: o.phase < partial, // nothing was committed yet
	})
	if err != nil {
		undo()
		o.takeBack(ctx, l, o.changedLeftovers(record))
		if record == nil && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", ErrStopped, err) // the scheduler may still apply the request
		}
	} else {
		o.phase = max(o.phase, partial)
		err = o.keep(l, unsaved, undo)
		if err != nil {
			o.takeBack(ctx, l, o.reversed(record, changes))
		}
	}
	l.publish()
	if record != nil {
		o.report(record)
	}
	if err != nil || o.reached() == o.phase {
		o.finish(l, r, record, err)
		return
	}
	r.record, r.decided = record, true // the caller waits for the pruning, but its failures are not those of the request
	o.waiting = append(o.waiting, r)
	o.commit(ctx, l, l.Name, nil, false)
}

// keep saves the changes of a successful attempt, or undoes it.
func (o *Orchestrator) keep(l *source, unsaved []unsavedEvent, undo func()) error {
	err := o.record(l, unsaved)
	if err != nil {
		undo()
	}
	return err
}

// takeBack commits the changes that undo the rest of an attempt, which the scheduler has not undone itself.
func (o *Orchestrator) takeBack(ctx context.Context, l *source, back []scheduler.Change) {
	if len(back) == 0 {
		return
	}
	record, err := o.sched.Commit(ctx, scheduler.Txn{Description: l.Name + ": taken back", Changes: back, Retry: o.retry})
	if record != nil {
		o.report(record)
	} else if ctx.Err() == nil {
		o.log.Error("transaction not processed", "source", l.Name, "err", err)
	}
}

// reversed returns the changes that undo an attempt which succeeded but could not be saved. Its
// entries are restored already.
func (o *Orchestrator) reversed(record *scheduler.Record, changes []scheduler.Change) []scheduler.Change {
	touched := actualBefore(record)
	back := make([]scheduler.Change, 0, len(changes))
	for _, c := range changes {
		left, changed := touched[c.Key]
		change := scheduler.Unwant(c.Key)
		switch {
		case o.declaredBefore(c.Key):
			change = o.declaredChange(c.Key)
		case !changed && c.Value != nil: // it stood as the attempt wanted it
			change = o.leave(*c.Value)
		case left != nil:
			if v, ok := o.leftValue(c.Key, left); ok {
				change = o.leave(v)
			}
		}
		back = append(back, change)
	}
	return back
}

// changedLeftovers returns the changes that restore the leftovers which a failed attempt has
// changed. The scheduler restores only what was declared.
func (o *Orchestrator) changedLeftovers(record *scheduler.Record) (back []scheduler.Change) {
	for key, left := range actualBefore(record) {
		if left == nil || o.declaredBefore(key) {
			continue
		}
		if v, ok := o.leftValue(key, left); ok {
			back = append(back, o.leave(v))
		}
	}
	return sorted(back)
}

// declaredBefore reports that a key was in the scheduler's desired state before an attempt whose
// entries are restored: a source has it, or its removal is deferred.
func (o *Orchestrator) declaredBefore(key string) bool {
	return o.resolve(key) != (resolution{}) || o.deferred[key] != nil
}

// declaredChange returns the change that makes the scheduler's desired value of a key that of the sources.
func (o *Orchestrator) declaredChange(key string) scheduler.Change {
	now := o.resolve(key)
	if now.value == nil {
		now.value = o.deferred[key]
	}
	return now.change(key)
}

// actualBefore returns the actual values, by key, that the operations of an attempt found; nil: none.
func actualBefore(record *scheduler.Record) map[string]proto.Message {
	out := map[string]proto.Message{}
	if record == nil {
		return out
	}
	for _, op := range record.Executed.All() {
		if _, later := out[op.Key]; !later && !op.Derived && !op.Property && !op.Revert {
			out[op.Key] = op.Old
		}
	}
	return out
}

// leftValue returns the value that an attempt found under a key. It returns false if the value
// cannot be declared.
func (o *Orchestrator) leftValue(key string, left proto.Message) (v scheduler.Value, ok bool) {
	v, err := o.sched.Value(key, left)
	if err != nil {
		o.log.Error("a value from before the start cannot be restored", "key", key, "err", err)
	}
	return v, err == nil
}

// leave returns the change that lets a value of an earlier run stand. Before phase known, it goes
// when its removal is no longer deferred.
func (o *Orchestrator) leave(v scheduler.Value) scheduler.Change {
	if o.phase < known {
		o.deferred[v.Key()] = &v
	}
	return v.Change()
}

// checkpoint returns a function that restores the entries of the keys of events.
func (o *Orchestrator) checkpoint(l *source, events []kvdbsync.Event) (restore func()) {
	type state struct {
		entry    *entry
		deferred *scheduler.Value
		isDue    bool
	}
	before := make(map[string]state, len(events))
	for _, e := range events {
		value, due := o.deferred[e.Key]
		before[e.Key] = state{l.entries.Get(e.Key), value, due}
	}
	return func() {
		for key, was := range before {
			l.set(key, l.entries.Get(key), was.entry)
			delete(o.deferred, key)
			if was.isDue {
				o.deferred[key] = was.deferred
			}
		}
	}
}
