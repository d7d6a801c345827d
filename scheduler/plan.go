package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// ErrUnsettled is what Plan returns if something else interrupted the plan too often.
var ErrUnsettled = errors.New("the configuration changes too often for a plan of this size; try again later")

// A plan that was interrupted is begun again after planPause, then after twice that and so
// on. With the last of planAttempts it fails.
const (
	planAttempts = 5
	planPause    = 100 * time.Millisecond
)

// Plan returns a record whose Planned are the operations that Commit of txn
// would execute now, provided that each succeeds. Nothing is changed and no verb
// is called; txn.Refresh is not followed.
//
// One plan is made at a time, while the scheduler has nothing else to do. Everything else
// interrupts it, and then it is begun again; see ErrUnsettled. A plan that takes less
// than 20 ms is not interrupted.
func (s *Scheduler) Plan(ctx context.Context, txn Txn) (*Record, error) {
	if err := s.check(txn); err != nil {
		return nil, err
	}
	rec := &Record{Type: Northbound, Start: time.Now(), Simulated: true}
	rec.describe(txn)
	for pause := planPause; ; pause *= 2 {
		seq, ops, err := s.tryPlan(ctx, txn)
		if err == nil {
			rec.Seq, rec.Planned, rec.Stop = seq, slices.Concat(ops...), time.Now()
			return rec, nil
		}
		if !errors.Is(err, errInterrupted) {
			return nil, err
		}
		if pause == planPause<<(planAttempts-1) {
			return nil, fmt.Errorf("%w: interrupted %d times; it has %d changes", ErrUnsettled, planAttempts, len(txn.Changes))
		}
		select {
		case <-time.After(pause):
		case <-s.stopped:
			return nil, ErrStopped
		case <-ctx.Done():
			return nil, fmt.Errorf("planning: %w", ctx.Err())
		}
	}
}

// tryPlan plans txn, unless it is interrupted.
func (s *Scheduler) tryPlan(ctx context.Context, txn Txn) (seq uint64, ops [][]Operation, err error) {
	l, err := s.borrow(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer l.giveBack()
	s.graph.BeginPlan(l.pace)
	defer s.graph.Rollback()
	err = l.until(func() {
		s.intendAll(txn)
		seq, ops = s.seq, s.planned()
	})
	return seq, ops, err
}

// simulate plans txn: the same loop, in which everything succeeds.
func (s *Scheduler) simulate(txn Txn) []Operation {
	s.graph.Begin()
	defer s.graph.Rollback()
	s.intendAll(txn)
	return slices.Concat(s.planned()...)
}

// foresee plans what is about to be executed without any new intent, if that is asked for.
func (s *Scheduler) foresee(r *Record) {
	if s.opts.Simulate && !r.Simulated {
		s.graph.Begin()
		defer s.graph.Rollback()
		r.Simulated, r.Planned = true, slices.Concat(s.planned()...)
	}
}

// planned are the operations that come next, if each of them succeeds. They come in
// pieces: to move a large list would take long.
func (s *Scheduler) planned() (ops [][]Operation) {
	add := func(o Operation) {
		last := len(ops) - 1
		if last < 0 || len(ops[last]) == cap(ops[last]) {
			ops = append(ops, make([]Operation, 0, min(1024, 8<<min(len(ops), 7))))
			last++
		}
		ops[last] = append(ops[last], o)
	}
	g := s.graph
	told := map[*graph.Node]shown{}
	was := func(n *graph.Node) shown {
		if sh, ok := told[n]; ok {
			return sh
		}
		return s.statuses.At(n.Slot).shown()
	}
	for op, ok := g.Next(); ok; op, ok = g.Next() {
		n := op.Node
		o := operation(op, kindOf(op), was(n))
		g.Done(op, op.Meta, nil)
		if o.NewState = s.stateOf(n); o.NewState == nonexistent {
			o.NewState = removed
		}
		told[n] = now(n, o.NewState)
		add(o)
	}
	for n := range g.Changed(0) {
		g.Pace()
		if _, ok := told[n]; ok {
			continue
		}
		if o, ok := noop(n, was(n), s.stateOf(n)); ok {
			add(o)
		}
	}
	return ops
}

// broken says that the run has failed and is not to go on.
func (r *run) broken() bool { return r.undoable() && len(r.failed) > 0 }

func (r *run) undoable() bool { return r.rec.Revert && !r.reverting }

// attempt does txn as a whole or not at all: on the first failure, what failed
// is read back, and what was wanted before is wanted again.
func (s *Scheduler) attempt(ctx context.Context, r *run, txn Txn) *Record {
	r.rec.Revert = true
	r.policy = RetryPolicy{Never: true}
	s.logBegin(r.rec)
	s.graph.Begin()
	if refused := refusals(txn); refused != nil {
		r.rec.Executed = refused
		s.graph.Commit()
		return s.complete(r)
	}
	s.endContests(txn.Changes)
	s.intendAll(txn)
	if r.rec.Executed = s.conflicts(txn); r.rec.Executed != nil {
		r.reverting = true
		s.graph.Undo()
		s.pursue(ctx, r)
		return s.complete(r)
	}
	s.execute(ctx, r)
	if !r.broken() {
		s.graph.Commit()
		return s.complete(r)
	}
	r.reverting = true
	s.refresh(ctx, r, s.readingsFor(r.failed), nil)
	s.graph.Undo()
	s.pursue(ctx, r)
	return s.complete(r)
}

// refusals are the changes of txn that cannot be followed.
func refusals(txn Txn) (out []Operation) {
	for _, c := range txn.Changes {
		if c.Err == nil {
			continue
		}
		state := invalidState
		if errors.Is(c.Err, ErrUnimplemented) {
			state = unimplementedState
		}
		out = append(out, Operation{Verb: validate, Key: c.Key, Noop: true, NewState: state, NewErr: c.Err})
	}
	return out
}

// conflicts are the changes of txn that claim what others have.
func (s *Scheduler) conflicts(txn Txn) (out []Operation) {
	s.graph.ResolveClaims()
	for _, c := range txn.Changes {
		if n := s.graph.Node(c.Key); n != nil && c.Value != nil && n.LosesClaim() {
			out = append(out, Operation{Verb: validate, Key: c.Key, Noop: true, NewState: invalidState, NewErr: errOf(n)})
		}
	}
	return out
}
