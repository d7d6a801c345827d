package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/counters"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/idle"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/published"
)

// ErrUnsettled is the error of Plan if other work interrupted it too often.
var ErrUnsettled = errors.New("the configuration changes too often for a plan of this size; try again later")

// Plan returns a record whose Planned are the operations that Commit of txn would run now
// if each succeeded. Its Unknown are the kinds about which it cannot tell: what their values need is found when they
// are read back. Nor can it tell that a Create will need another value to be created again (NeedsNew): the Create itself
// finds that. Plan changes nothing and calls no verb; txn.Refresh is ignored.
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
	var f forecast
	err = s.idle.Run(ctx, func(w *idle.Work) (err error) {
		rec.Seq, rec.Unknown, f, err = s.tryPlan(w, txn)
		return err
	})
	switch {
	case errors.Is(err, idle.ErrInterrupted):
		return nil, fmt.Errorf("%w: interrupted %d times; it has %d changes", ErrUnsettled, idle.Attempts, len(txn.Changes))
	case err != nil:
		return nil, fmt.Errorf("planning: %w", err)
	}
	rec.Planned, rec.Stop = f.operations(rec.Values), time.Now()
	return rec, nil
}

// tryPlan plans txn until it is interrupted.
func (s *Scheduler) tryPlan(w *idle.Work, txn Txn) (seq uint64, unknown []UnknownKind, f forecast, err error) {
	s.graph.BeginPlan(w.Pace)
	defer s.graph.Rollback()
	err = w.Until(func() {
		txn.intents().Apply(s.graph)
		seq, f, unknown = s.seq, s.planned(), s.unknownInUse()
	})
	return seq, unknown, f, err
}

// simulate returns the operations of the loop in which each of them succeeds, after declare has changed the
// desired values. values are those of the record.
func (s *Scheduler) simulate(values []Change, declare func()) Operations {
	began := time.Now()
	defer func() { s.counters.Phase(counters.Plan, began) }()
	s.graph.BeginPlan(nil)
	defer s.graph.Rollback()
	declare()
	f := s.planned()
	out := f.operations(values)
	out.base = nil // records are kept, and executed operations have none
	return out
}

// mostRetriesPlanned is the number of values from which a retry is planned only if Options.Simulate asks for it: all other work
// would wait for its plan.
const mostRetriesPlanned = 1000

// simulateRun plans the operations of a run without a transaction, if Options.Simulate asks
// for it, and those of a retry.
func (s *Scheduler) simulateRun(run *run) {
	r := run.rec
	asked := s.opts.Simulate || run.simulate
	if asked && !r.Simulated || r.Type == RetryFailed && len(r.Values) <= mostRetriesPlanned {
		r.Simulated, r.Planned = asked, s.simulate(r.Values, func() {})
		for i, o := range r.Planned.All() {
			o.Retry = r.Type == RetryFailed
			r.Planned.set(i, &o)
		}
	}
}

// planned returns the next operations, if each of them succeeds.
func (s *Scheduler) planned() (f forecast) {
	g := s.graph
	told := map[*graph.Node]published.Status{}
	var record recorder
	was := func(n *graph.Node) published.Status {
		if x, ok := told[n]; ok {
			return x
		}
		return s.statuses.At(n.Slot).Known()
	}
	for op, ok := g.Next(); ok; op, ok = g.Next() {
		n := op.Node
		o := record.begins(op, was(n))
		o.Base = kind.BaseOf(n) // a derived value that is deleted has none afterwards
		g.Done(op, op.Meta, nil)
		state := s.stateOf(n)
		if state == Nonexistent {
			state = Removed
		}
		told[n] = *published.Of(n, uint8(state), time.Time{})
		record.ends(&o, op, state)
		f.ops.add(&o)
	}
	for n := range g.Changed(0) {
		g.Pace()
		_, done := told[n]
		if o, ok := record.changes(n, was(n), s.stateOf(n), done); ok {
			o.Base = kind.BaseOf(n)
			f.noops.add(&o, n.Root().Key(), f.ops.Len())
		}
	}
	return f
}

// broken reports that a run which is applied completely or not at all has failed: the failed values are read back, and the earlier
// desired values restored.
func (r *run) broken() bool {
	return r.rec.Revert && !r.reverting && len(r.failed) > 0
}

// undo restores the earlier desired values.
func (s *Scheduler) undo(r *run) {
	r.phase, r.reverting = executing, true
	s.graph.Undo()
}

// refusals returns the changes of txn that were refused.
func refusals(txn Txn) (out Operations) {
	for _, c := range txn.Changes {
		if c.Err == nil {
			continue
		}
		state := Invalid
		if errors.Is(c.Err, ErrUnimplemented) {
			state = Unimplemented
		}
		out.add(&Operation{Verb: Validate, Key: c.Key, New: kind.RefusedIn(c.Err), Noop: true, NewState: state, NewErr: c.Err})
	}
	return out
}

// conflicts returns the changes of txn whose claims other values hold.
func (s *Scheduler) conflicts(txn Txn) (out Operations) {
	s.graph.ResolveClaims()
	for _, c := range txn.Changes {
		if n := s.graph.Node(c.Key); n != nil && c.Value != nil && n.LosesClaim() {
			out.add(&Operation{Verb: Validate, Key: c.Key, New: c.Value.Message(), Noop: true, NewState: Invalid, NewErr: kind.ErrOf(n)})
		}
	}
	return out
}
