package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/counters"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/loan"
	"github.com/keyplane/keyplane/scheduler/internal/outline"
	"github.com/keyplane/keyplane/scheduler/internal/recreation"
)

// ErrUnsettled is the error of Plan if other work interrupted it too often.
var ErrUnsettled = errors.New("the configuration changes too often for a plan of this size; try again later")

// An interrupted plan begins again after planPause, then after twice that, and so on. It
// fails if the last of planAttempts is interrupted.
const (
	planAttempts = 5
	planPause    = 100 * time.Millisecond
)

// Plan returns a record whose Planned are the operations that Commit of txn would run now
// if each succeeded. It changes nothing and calls no verb; txn.Refresh is ignored.
//
// One plan is made at a time, while the scheduler has no other work. Other work interrupts
// a plan, which then begins again; see ErrUnsettled. A plan that takes less than 20 ms is
// not interrupted.
func (s *Scheduler) Plan(ctx context.Context, txn Txn) (*Record, error) {
	txn, err := s.checked(txn)
	if err != nil {
		return nil, err
	}
	rec := &Record{Type: Northbound, Start: time.Now(), Simulated: true}
	rec.describe(txn)
	for pause := planPause; ; pause *= 2 {
		seq, f, err := s.tryPlan(ctx, txn)
		if err == nil {
			rec.Seq, rec.Planned, rec.Stop = seq, f.operations(rec.Values), time.Now()
			return rec, nil
		}
		if !errors.Is(err, loan.ErrCalledIn) {
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

// tryPlan plans txn until it is interrupted.
func (s *Scheduler) tryPlan(ctx context.Context, txn Txn) (seq uint64, f forecast, err error) {
	l, err := s.borrow(ctx)
	if err != nil {
		return 0, f, err
	}
	defer l.GiveBack()
	s.graph.BeginPlan(l.Pace)
	defer s.graph.Rollback()
	err = l.Until(func() {
		s.intendAll(txn)
		seq, f = s.seq, s.planned()
	})
	if err != nil {
		err = fmt.Errorf("planning: %w", err)
	}
	return seq, f, err
}

// simulate plans txn, which has the values of the record. It runs the same loop, in which
// every operation succeeds.
func (s *Scheduler) simulate(txn Txn, values []Change) []Operation {
	began := time.Now()
	defer func() { s.counters.Phase(counters.Plan, began) }()
	s.graph.Begin()
	defer s.graph.Rollback()
	s.intendAll(txn)
	return s.planned().operations(values)
}

// foresee plans the operations of a run without a transaction, if Options.Simulate asks
// for it, and those of every retry.
func (s *Scheduler) foresee(run *run) {
	r := run.rec
	asked := s.opts.Simulate || run.simulate
	if asked && !r.Simulated || r.Type == RetryFailed {
		began := time.Now()
		defer func() { s.counters.Phase(counters.Plan, began) }()
		s.graph.Begin()
		defer s.graph.Rollback()
		r.Simulated, r.Planned = asked, s.planned().operations(r.Values)
		for i := range r.Planned {
			r.Planned[i].Retry = r.Type == RetryFailed
		}
	}
}

// A forecast is what the graph would do. It refers to no node, so it stays valid when the graph
// is rolled back and lent to others.
type forecast struct {
	pieces [][]Operation  // in pieces, because growing one large list would take long
	bases  map[int]string // the keys of the base values of derived values, by the index of the operation
	count  int
	noops  []noticed
}

func (f *forecast) add(n *graph.Node, o Operation) {
	last := len(f.pieces) - 1
	if last < 0 || len(f.pieces[last]) == cap(f.pieces[last]) {
		f.pieces = append(f.pieces, make([]Operation, 0, min(1024, 8<<min(len(f.pieces), 7))))
		last++
	}
	f.pieces[last] = append(f.pieces[last], o)
	if n.Base() != nil {
		if f.bases == nil {
			f.bases = map[int]string{}
		}
		f.bases[f.count] = baseOf(n).Key()
	}
	f.count++
}

// operations returns all operations, in the order in which the transaction with these values
// would record them.
func (f forecast) operations(values []Change) []Operation {
	ops := slices.Concat(f.pieces...)
	base := func(i int) string { return cmp.Or(f.bases[i], ops[i].Key) }
	return complete(outline.Outline[Operation]{Ops: ops, Base: base, Noops: f.noops}, values)
}

// planned returns the next operations, if each of them succeeds.
func (s *Scheduler) planned() (f forecast) {
	g := s.graph
	told := map[*graph.Node]shown{}
	var recreated recreation.Marks
	was := func(n *graph.Node) shown {
		if sh, ok := told[n]; ok {
			return sh
		}
		return s.statuses.At(n.Slot).shown()
	}
	for op, ok := g.Next(); ok; op, ok = g.Next() {
		n := op.Node
		o := operation(op, kind.OfOp(op), was(n))
		markBegun(&recreated, op, &o)
		g.Done(op, op.Meta, nil)
		if o.NewState = s.stateOf(n); o.NewState == Nonexistent {
			o.NewState = Removed
		}
		told[n] = now(n, o.NewState)
		o.NewState = stateAfter(&recreated, op, &o, o.NewState)
		f.add(n, o)
	}
	for n := range g.Changed(0) {
		g.Pace()
		if _, ok := told[n]; ok {
			continue
		}
		if o, ok := noop(n, was(n), s.stateOf(n)); ok {
			f.noops = append(f.noops, noticed{Op: o, Base: baseOf(n).Key()})
		}
	}
	return f
}

// broken reports that the run has failed and must not go on.
func (r *run) broken() bool { return r.undoable() && len(r.failed) > 0 }

func (r *run) undoable() bool { return r.rec.Revert && !r.reverting }

// attempt applies txn completely or not at all. After the first failure it reads the
// failed values back and restores the earlier desired values.
func (s *Scheduler) attempt(ctx context.Context, r *run, txn Txn) {
	r.rec.Revert = true
	r.policy = RetryPolicy{Never: true}
	s.logBegin(r.rec)
	s.graph.Begin()
	if refused := refusals(txn); refused != nil {
		r.rec.Executed = refused
		s.graph.Commit()
		s.complete(r)
		return
	}
	s.endContests(txn.Changes)
	s.intendAll(txn)
	if r.rec.Executed = s.conflicts(txn); r.rec.Executed != nil {
		r.reverting = true
		s.graph.Undo()
		s.pursue(ctx, r)
		s.complete(r)
		return
	}
	s.executeAll(ctx, r)
	if !r.broken() {
		s.graph.Commit()
		s.complete(r)
		return
	}
	r.reverting = true
	s.refresh(ctx, r, s.reader.For(r.failed), nil)
	s.graph.Undo()
	s.pursue(ctx, r)
	s.complete(r)
}

// executeAll executes all possible operations while all other work waits.
func (s *Scheduler) executeAll(ctx context.Context, r *run) {
	r.phase = executing
	for !s.execute(ctx, r) {
		s.await(ctx, r, false)
	}
}

// pursue is executeAll, and reads back the values whose verbs failed.
func (s *Scheduler) pursue(ctx context.Context, r *run) {
	before := len(r.failed)
	s.executeAll(ctx, r)
	if failed := r.failed[before:]; len(failed) > 0 && ctx.Err() == nil {
		s.refresh(ctx, r, s.reader.For(failed), nil)
		s.executeAll(ctx, r)
	}
}

// refusals returns the changes of txn that were refused.
func refusals(txn Txn) (out []Operation) {
	for _, c := range txn.Changes {
		if c.Err == nil {
			continue
		}
		state := Invalid
		if errors.Is(c.Err, ErrUnimplemented) {
			state = Unimplemented
		}
		out = append(out, Operation{Verb: Validate, Key: c.Key, New: refusedIn(c.Err), Noop: true, NewState: state, NewErr: c.Err})
	}
	return out
}

// conflicts returns the changes of txn whose claims other values hold.
func (s *Scheduler) conflicts(txn Txn) (out []Operation) {
	s.graph.ResolveClaims()
	for _, c := range txn.Changes {
		if n := s.graph.Node(c.Key); n != nil && c.Value != nil && n.LosesClaim() {
			out = append(out, Operation{Verb: Validate, Key: c.Key, New: c.Value.Message(), Noop: true, NewState: Invalid, NewErr: errOf(n)})
		}
	}
	return out
}
