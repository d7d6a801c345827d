package scheduler

import (
	"cmp"
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// A run is one pass of the loop, with its record.
type run struct {
	rec       *Record
	policy    RetryPolicy     // of the values in keys
	keys      map[string]bool // the values that the run declares or retries; nil: not computed yet
	retry     bool
	reverting bool
	verbose   bool          // log each value that is read back
	known     int           // number of changed nodes that notice has handled
	skipped   bool          // some operations were not begun
	quiet     []string      // keys without an operation that may be outdated in the memory
	failed    []*graph.Node // nodes with failed verbs
	// jitter is the relative extension of retry delays. It is the same for all failures of
	// a run, so that they are retried together.
	jitter float64
}

func (s *Scheduler) begin(t TxnType) *run {
	r := &run{rec: &Record{Seq: s.seq, Type: t, Start: time.Now()}, jitter: rand.Float64() / 5} //nolint:gosec // spreads load; keeps no secret
	s.seq++
	return r
}

// commit processes txn. Reading back ends when the caller no longer waits.
func (s *Scheduler) commit(ctx context.Context, nobody <-chan struct{}, txn Txn) *Record {
	r := s.begin(Northbound)
	r.policy, r.verbose = cmp.Or(txn.Retry, s.opts.Retry), txn.Verbose
	r.rec.describe(txn)
	if txn.Refresh {
		reading, cancel := until(ctx, nobody)
		s.refresh(reading, r, s.everything(s.registry.Order), txn.Changes)
		cancel()
		for _, key := range s.failedOf(nil) {
			if retriable(s.graph.Node(key).Err()) {
				s.graph.Retry(key)
			}
		}
	}
	if txn.Simulate || s.opts.Simulate {
		r.rec.Simulated = true
		r.rec.Planned = s.simulate(txn)
	}
	s.warn(txn)
	if txn.Revert {
		return s.attempt(ctx, r, txn)
	}
	s.endContests(txn.Changes)
	s.intendAll(txn)
	return s.finish(ctx, r)
}

// until returns a context that also ends when done is closed.
func until(ctx context.Context, done <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if done != nil {
		go func() {
			select {
			case <-done:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

func (r *Record) describe(txn Txn) {
	r.Description, r.Values = txn.Description, txn.Changes
	r.Refresh, r.Replace = txn.Refresh, txn.Replace
}

func (s *Scheduler) intendAll(txn Txn) {
	if txn.Replace {
		s.unwantAbsent(txn.Changes)
	}
	s.graph.Expect(len(txn.Changes))
	for _, c := range txn.Changes {
		s.graph.Pace()
		s.intend(c)
	}
	if txn.Replace {
		s.graph.Complete()
	}
}

func (s *Scheduler) intend(c Change) {
	switch {
	case c.Value != nil:
		s.graph.Want(c.Value.v)
	case c.Err == nil || s.graph.Wants(c.Key):
		s.graph.Unwant(c.Key)
	default:
		s.graph.Spare(c.Key)
	}
	if c.Err != nil {
		s.graph.Reject(c.Key, c.Err)
	}
}

// unwantAbsent removes the desired values that are not among changes.
func (s *Scheduler) unwantAbsent(changes []Change) {
	others := map[string]bool{}
	for n := range s.graph.Nodes() {
		s.graph.Pace()
		if n.Base() == nil && (n.Desired() != nil || n.Err() != nil) {
			others[n.Key()] = true
		}
	}
	for _, c := range changes {
		s.graph.Pace()
		delete(others, c.Key)
	}
	sorted := slices.SortedFunc(maps.Keys(others), func(a, b string) int {
		s.graph.Pace()
		return strings.Compare(a, b)
	})
	for _, key := range sorted {
		s.graph.Unwant(key)
	}
}

// finish executes all possible operations and completes the record.
func (s *Scheduler) finish(ctx context.Context, r *run) *Record {
	s.foresee(r.rec)
	s.logBegin(r.rec)
	s.pursue(ctx, r)
	return s.complete(r)
}

// pursue executes operations. Then it reads back the keys that failed, because a failed
// verb may have been partly effective.
func (s *Scheduler) pursue(ctx context.Context, r *run) {
	before := len(r.failed)
	s.execute(ctx, r)
	if failed := r.failed[before:]; len(failed) > 0 && ctx.Err() == nil {
		s.refresh(ctx, r, s.readingsFor(failed), nil)
		s.execute(ctx, r)
	}
}

func (s *Scheduler) complete(r *run) *Record {
	began := time.Now()
	s.ledger.Adopted()
	for n := range s.graph.Touched() {
		s.note(r, n)
	}
	if r.skipped { // not begun when the scheduler stopped
		r.rec.Executed = slices.DeleteFunc(r.rec.Executed, func(o Operation) bool { return o.NewState == nonexistent })
	}
	s.completed = append(s.completed, r)
	r.rec.Stop = time.Now()
	s.report(r)
	s.stats.transaction(r.rec)
	s.stats.phase(PhaseRecord, began)
	kept := r.rec.kept()
	s.history.add(kept)
	s.logEnd(kept)
	return r.rec
}

// report logs the failures of a transaction without a waiting caller. It does not repeat
// an error that a retry got again.
func (s *Scheduler) report(r *run) {
	if r.rec.Type == Northbound {
		return
	}
	for i := range r.rec.Executed {
		op := &r.rec.Executed[i]
		if op.NewErr != nil && (op.OldErr == nil || op.OldErr.Error() != op.NewErr.Error()) {
			s.log.Warn("operation failed", "key", op.Key, "operation", op.Verb, "state", op.NewState, "err", op.NewErr)
		}
	}
}

// execute runs operations until none is possible, or until the first failure of a run that
// is then undone.
func (s *Scheduler) execute(ctx context.Context, r *run) {
	began := time.Now()
	defer func() { s.stats.phase(PhaseExecute, began) }()
	r.rec.Executed = slices.Grow(r.rec.Executed, s.graph.ChangedLen())
	defer func() { r.known = s.graph.ChangedLen() }()
	defer s.executor.Idle()
	running := 0
	for {
		for begun := s.launch(ctx, r); begun > 0; begun = s.launch(ctx, r) {
			running += begun
		}
		if running == 0 {
			return
		}
		for _, t := range s.executor.Await(ctx) {
			running--
			s.done(r, t)
		}
		s.handleLosses()
	}
}

// mostTogether is the maximum number of operations that are saved in the memory by one
// write.
const mostTogether = 256

// launch saves the next operations in the memory, begins them, and returns their number.
func (s *Scheduler) launch(ctx context.Context, r *run) int {
	together := s.together[:0]
	for len(together) < mostTogether && ctx.Err() == nil && !r.broken() {
		op, ok := s.graph.Next()
		if !ok {
			break
		}
		d := kind.OfOp(op)
		t := s.issue(r, op, d)
		if d == nil || d.Passive() {
			s.done(r, t)
			continue
		}
		t.Err = t.Verbs.Stalled()
		if t.Err != nil {
			s.done(r, t)
			continue
		}
		together = append(together, t)
		if s.opts.Memory == nil {
			break
		}
	}
	if s.opts.Memory != nil {
		s.rememberBefore(together)
	}
	for _, t := range together {
		kind.OfOp(t.Op).Pool.Push(ctx, t)
	}
	begun := len(together)
	clear(together)
	s.together = together[:0]
	return begun
}

// issue begins the record of an operation. Operations are recorded in the order in which
// they begin.
func (s *Scheduler) issue(r *run, op graph.Op, d *descriptor) *executor.Task {
	t := &executor.Task{Op: op, Index: len(r.rec.Executed)}
	if d != nil {
		t.Verbs = &d.Verbs
	}
	o := operation(op, d, s.statuses.At(op.Node.Slot).shown())
	o.Revert, o.Retry = r.reverting, r.retry && o.OldErr != nil
	r.rec.Executed = append(r.rec.Executed, o)
	return t
}

// done processes and records the result of an operation.
func (s *Scheduler) done(r *run, t *executor.Task) {
	n := t.Op.Node
	if t.Skipped {
		s.graph.Cancel(t.Op)
		r.skipped = true
		return
	}
	o := &r.rec.Executed[t.Index]
	o.NewErr = t.Err
	s.stats.operation(t)
	if t.Abandoned {
		s.graph.Abandon(t.Op, t.Err)
	} else {
		s.graph.Done(t.Op, t.Meta, t.Err)
	}
	if t.Err != nil {
		r.failed = append(r.failed, n)
		s.scheduleRetry(r, n, t.Err)
	} else {
		s.retries.Drop(n.Key())
		if t.Op.Verb == graph.Delete {
			s.contests.Forget(n.Key())
		}
	}
	old := s.statuses.At(n.Slot)
	o.NewState = s.publish(r.rec.Start, n, old)
	if n.State() == graph.Rejected {
		r.recordNoop(n, old, o.NewState)
	}
	if st := s.statuses.At(n.Slot); st != nil {
		st.txn = r.mark()
	}
}

// mark identifies r in a Status; it is not 0.
func (r *run) mark() uint32 { return uint32(r.rec.Seq%math.MaxUint32) + 1 }

// note records the new state of a node without an operation.
func (s *Scheduler) note(r *run, n *graph.Node) {
	old := s.statuses.At(n.Slot)
	done := r.didTo(old)
	if !done && s.ledger.Outdated(n) { // also if notice has published it
		r.quiet = append(r.quiet, n.Key())
	}
	if !n.News {
		return
	}
	if state := s.publish(r.rec.Start, n, old); !done {
		r.recordNoop(n, old, state)
	}
}

// didTo reports whether r executed an operation of the value with status st.
func (r *run) didTo(st *Status) bool { return st != nil && st.txn == r.mark() }

// recordNoop records a change of a node without a verb.
func (r *run) recordNoop(n *graph.Node, old *Status, state State) {
	if state == removed {
		state = nonexistent
	}
	if o, ok := noop(n, old.shown(), state); ok {
		r.rec.Executed = append(r.rec.Executed, o)
	}
}
