package scheduler

import (
	"context"
	"errors"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// Plan returns a record whose Planned are the operations that Commit of txn
// would execute now, provided that each succeeds. Nothing is changed and no verb
// is called; txn.Refresh is not followed.
func (s *Scheduler) Plan(ctx context.Context, txn Txn) (*Record, error) {
	if err := s.check(txn); err != nil {
		return nil, err
	}
	rec := &Record{Type: Northbound, Start: time.Now(), Simulated: true}
	rec.describe(txn)
	err := s.runInLoop(ctx, func(context.Context) {
		rec.Seq = s.seq
		rec.Planned = s.simulate(txn)
		rec.Stop = time.Now()
	})
	if err != nil {
		return nil, err
	}
	return rec, nil
}

// simulate plans txn: the same loop, in which everything succeeds.
func (s *Scheduler) simulate(txn Txn) []Operation {
	s.graph.Begin()
	defer s.graph.Rollback()
	s.intendAll(txn)
	return s.planned()
}

// foresee plans what is about to be executed without any new intent, if that is asked for.
func (s *Scheduler) foresee(r *Record) {
	if s.opts.Simulate && !r.Simulated {
		s.graph.Begin()
		defer s.graph.Rollback()
		r.Simulated, r.Planned = true, s.planned()
	}
}

// planned are the operations that come next, if each of them succeeds.
func (s *Scheduler) planned() (ops []Operation) {
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
		ops = append(ops, o)
	}
	for n := range g.Changed(0) {
		if _, ok := told[n]; ok {
			continue
		}
		if o, ok := noop(n, was(n), s.stateOf(n)); ok {
			ops = append(ops, o)
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
	s.printer.begin(r.rec)
	s.graph.Begin()
	if refused := refusals(txn); refused != nil {
		r.rec.Executed = refused
		s.graph.Commit()
		return s.complete(r)
	}
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
