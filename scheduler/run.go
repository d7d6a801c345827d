package scheduler

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/counters"
	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/intent"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
	"github.com/keyplane/keyplane/scheduler/internal/memory"
	"github.com/keyplane/keyplane/scheduler/internal/published"
	"github.com/keyplane/keyplane/scheduler/internal/readback"
	"github.com/keyplane/keyplane/scheduler/internal/retry"
	"github.com/keyplane/keyplane/scheduler/internal/value"
)

// A run is a transaction, a notification or a retry that has begun, with its record. It may last while other runs begin; see
// runPhase.
type run struct {
	rec       *Record
	phase     runPhase
	done      func(*Record)          // gets the complete record; nil: nobody waits for it
	policy    RetryPolicy            // of the values in scope; zero: Options.Retry
	scope     intent.Scope           // the values that the run declares or retries
	withheld  func(key string) error // see Txn.Withheld
	quiet     bool                   // without an operation, there is nothing to tell
	reverting bool
	simulate  bool             // plan before the first operation
	alone     bool             // no other run begins before it has ended, or has read back
	slow      bool             // others may begin while its operations are in flight
	looks     bool             // more may be possible since its operations have landed
	landed    bool             // none of its operations stays in flight; see land
	known     int              // number of changed nodes that notice has handled
	skipped   bool             // some operations were not begun
	outcomes  []memory.Outcome // that the memory may have to follow
	failed    []*graph.Node    // nodes with failed verbs
	unclear   []*graph.Node    // nodes to read back, because an observation was ignored
	recorder
	noops noops // not in the record yet; see insertNoops
	begun int   // number of operations before the first verb
	// jitter is the relative extension of retry delays. It is the same for all failures of
	// a run, so that they are retried together.
	jitter float64
	// earlier has the policies of retries before a transaction that may be undone.
	earlier map[string]retry.Policy

	// Reading back.
	reading readback.Reading
	before  func() // called before the first operation; nil: nothing

	// Executing.
	tasks     executor.Tasks
	executing time.Time // when it began; zero: not yet
	readBack  int       // number of failed nodes that were read back
}

// begin returns a new run with the next number. The number identifies the transaction in
// the history and in each Status that it changes.
func (s *Scheduler) begin(t TxnType) *run {
	s.land()
	r := &run{rec: &Record{Seq: s.seq, Type: t, Start: time.Now()}, jitter: rand.Float64() / 5} //nolint:gosec // spreads load; keeps no secret
	s.seq++
	if t != Notification {
		r.scope.Keys = r.rec.keys
	}
	s.graph.Cause = r.cause()
	s.open = append(s.open, r)
	return r
}

// commit processes txn. done gets the record, now or later. The caller closes nobody when it no
// longer waits for that; then reading back ends.
func (s *Scheduler) commit(ctx context.Context, nobody <-chan struct{}, txn Txn, done func(*Record)) {
	alone := txn.Revert || txn.Refresh && (txn.Replace || len(txn.Changes) > 0)
	if alone && len(s.open) > 0 {
		s.alone = func(ctx context.Context) { s.commit(ctx, nobody, txn, done) }
		return
	}
	r := s.begin(Northbound)
	r.done, r.reading.Nobody, r.alone = done, nobody, alone
	r.policy, r.reading.Verbose, r.simulate, r.withheld = txn.Retry, txn.Verbose, txn.Simulate, txn.Withheld
	r.rec.describe(txn)
	r.scope.Replace = txn.Replace
	if txn.Refresh {
		r.reading.Coming = coming(txn.Changes)
		s.reader.Want(&r.reading, s.reader.Everything(s.registry.Order), nil)
	}
	r.before = func() {
		if txn.Refresh {
			s.retryRetriable()
		}
		if alone || !txn.Refresh {
			r.alone = txn.Revert
			s.declare(r, txn)
		}
	}
	s.finish(ctx, r)
}

// declare makes the changes of txn the desired state. With Revert, it ends r if one of them was refused.
func (s *Scheduler) declare(r *run, txn Txn) {
	intents := txn.intents()
	if txn.Simulate || s.opts.Simulate {
		r.rec.Simulated = true
		r.rec.Planned = s.simulate(r.rec.Values, func() { intents.Apply(s.graph) })
	}
	intents.Warn(s.graph, s.log)
	if r.rec.Revert = txn.Revert; txn.Revert {
		r.earlier = s.retries.Policies()
		if r.rec.Executed = refusals(txn); r.rec.Executed.Len() > 0 {
			s.logBegin(r.rec)
			s.complete(r)
			return
		}
		s.graph.Track()
	}
	s.forgetFlaps(intents)
	s.ledger.Expect(intents.Count)
	intents.Apply(s.graph)
	if txn.Revert {
		if r.rec.Executed = s.conflicts(txn); r.rec.Executed.Len() > 0 {
			s.undo(r)
		}
	}
}

// forgetFlaps forgets the losses of the values that changes remove.
func (s *Scheduler) forgetFlaps(changes intent.Changes) {
	for key := range changes.Unwanted(s.graph) {
		s.flaps.Forget(key)
	}
}

// retryRetriable allows the next attempt of all values with an error that it may fix.
func (s *Scheduler) retryRetriable() {
	for _, key := range retry.Failed(s.registry.Nodes(s.graph), nil) {
		if kind.Retriable(s.graph.Node(key).Err()) {
			s.graph.Retry(key)
		}
	}
}

// describe copies the request of txn to the record. The record shares the changes of the
// caller, which must not modify them after Commit.
func (r *Record) describe(txn Txn) {
	r.Description, r.Values = txn.Description, txn.Changes
	r.Refresh, r.Replace = txn.Refresh, txn.Replace
}

// finish reads back the wanted values, executes all possible operations and completes the
// record, now or later.
func (s *Scheduler) finish(ctx context.Context, r *run) {
	if !r.reading.Wanted() {
		s.beginExecution(r)
	}
	s.drive(ctx, r)
}

// complete ends r: it publishes the changes, adds it to the history, and tells the
// caller of Commit. The memory is saved later, because nobody waits for it.
func (s *Scheduler) complete(r *run) {
	if !r.executing.IsZero() { // else it was refused
		s.counters.Phase(counters.Execute, r.executing)
	}
	began := time.Now()
	s.ledger.Adopted()
	for n := range s.graph.Touched() {
		s.note(r, n)
	}
	s.insertNoops(r)
	if r.skipped { // not begun when the scheduler stopped
		r.rec.Executed = r.rec.Executed.without(func(o Operation) bool { return o.NewState == Nonexistent })
	}
	r.rec.Executed.clip()
	s.completed = append(s.completed, r.outcomes...)
	s.open = slices.DeleteFunc(s.open, func(o *run) bool { return o == r })
	r.phase = ended
	r.rec.Stop = time.Now()
	for _, n := range r.failed {
		s.retries.Ended(n.Key(), r.rec.Seq, r.rec.Stop)
	}
	s.retries.Release(r.rec.Stop)
	s.watchers.Mark()
	if r.quiet && r.done == nil && r.rec.Executed.Len() == 0 { // what it tries waits for something, and nothing is to be told
		return
	}
	s.record(r, began)
	if r.done != nil {
		r.done(r.rec)
	}
}

// record adds r, which has ended, to the history, and to what counts and logs transactions. began is when that began.
func (s *Scheduler) record(r *run, began time.Time) {
	if r.rec.Type != Northbound { // the caller of Commit gets the failures, and decides what to log
		s.report(r)
	}
	s.counters.Transaction(uint8(r.rec.Type), r.rec.Stop.Sub(r.rec.Start))
	s.counters.Phase(counters.Record, began)
	kept := r.rec.kept()
	if s.opts.TransactionLog != nil {
		told := *kept // with its values
		s.opts.TransactionLog.End(&told)
	}
	s.history.Add(keep(kept, &s.registry.Sizes))
}

// maxLoggedFailures is the number of failures of one transaction that are logged one by one.
// The history and the states of the values have all.
const maxLoggedFailures = 10

// report logs the failures of a transaction without a waiting caller. It does not repeat
// an error that a retry got again.
func (s *Scheduler) report(r *run) {
	failures := 0
	for _, op := range r.rec.Executed.All() {
		if op.NewErr == nil || op.OldErr != nil && op.OldErr.Error() == op.NewErr.Error() {
			continue
		}
		if failures++; failures <= maxLoggedFailures {
			s.log.Warn("operation failed", "key", op.Key, "operation", op.Verb, "state", op.NewState, "err", op.NewErr)
		}
	}
	if failures > maxLoggedFailures {
		s.log.Warn("more operations failed; their status has the reasons", "transaction", r.rec.Seq, "more", failures-maxLoggedFailures)
	}
}

// execute begins all operations that can run, and processes results. It returns false while
// r must wait. A run that is undone after its first failure begins no operation after it.
func (s *Scheduler) execute(ctx context.Context, r *run) bool {
	if r.executing.IsZero() {
		r.executing = time.Now()
		r.begun = r.rec.Executed.Len()
		r.rec.Executed.grow(s.graph.ChangedLen())
	}
	r.looks = false
	s.takeResults(r)
	for g, why := range s.inbox.TakeLosses() { // running verbs end by themselves
		s.disconnect(g, why)
	}
	most := mostTogether
	if s.opts.Memory == nil {
		most = 1 // the first verb begins at once
	}
	for begun := s.launch(ctx, r, most); begun > 0; begun = s.launch(ctx, r, most) {
		if begun == mostTogether { // a large run: what has ended needs less memory
			s.deliver(s.executor.TakeFinished())
			s.takeResults(r)
		}
		most = min(2*most, mostTogether)
	}
	s.graph.Freed = false
	if r.tasks.Running() > 0 || s.graph.Awaiting() && s.obstructed(ctx, r) {
		return false
	}
	if len(s.open) == 1 {
		s.executor.Idle()
	}
	r.known = s.graph.ChangedLen()
	return true
}

// takeResults processes the results of operations of r that have ended.
func (s *Scheduler) takeResults(r *run) {
	for _, t := range r.tasks.TakeFinished() {
		s.done(r, t)
	}
}

// mostTogether is the maximum number of operations that begin together.
const mostTogether = 256

// launch saves the next operations in the memory and begins them. It returns their number. An
// operation that another run declares or retries belongs to that one. At most so many begin
// together: the memory is written once for all of them, and none of them begins before it is saved.
func (s *Scheduler) launch(ctx context.Context, r *run, most int) (begun int) {
	together := s.together[:0]
	for len(together) < most && ctx.Err() == nil && !r.broken() {
		op, ok := s.graph.Next()
		if !ok {
			break
		}
		d := kind.OfOp(op)
		owner := r
		if len(s.open) > 1 {
			owner = s.ownerOf(r, op.Node)
		}
		t := s.issue(owner, op, d)
		if d == nil || d.Passive() {
			s.done(t.Owner.(*run), t)
			continue
		}
		t.Err = cmp.Or(t.Verbs.Stalled(), t.WhyNot())
		if t.Err != nil {
			s.done(t.Owner.(*run), t)
			continue
		}
		together = append(together, t)
	}
	if s.opts.Memory != nil {
		s.ledger.Before(executor.Operations(together))
	}
	for _, t := range together {
		t.Generation = kind.OfOp(t.Op).Connection.Begin()
		if t.Owner != any(r) || r.landed {
			s.graph.Detach(t.Op)
		}
	}
	s.executor.Push(ctx, together, func(t *executor.Task) *executor.Pool { return kind.OfOp(t.Op).Connection.Pool })
	begun = len(together)
	clear(together)
	s.together = together[:0]
	return begun
}

// issue begins the record of an operation. Operations are recorded in the order in which
// they begin.
func (s *Scheduler) issue(r *run, op graph.Op, d *descriptor) *executor.Task {
	if r.quiet && r.rec.Executed.Len() == 0 {
		s.logBegin(r.rec)
	}
	t := r.tasks.New()
	t.Op, t.Index, t.Owner = op, r.rec.Executed.Len(), r
	if d != nil {
		t.Verbs = &d.Verbs
	}
	if r.withheld != nil {
		t.Withheld, t.Root = r.withheld, op.Node.Root().Key()
	}
	o := r.begins(op, s.statuses.At(op.Node.Slot).Known())
	o.Revert, o.Retry = r.reverting, r.retries() // all that a retry does follows from a retried value
	if !o.Noop {
		s.ordered++
		t.Order, o.Order = s.ordered, s.ordered
	}
	r.rec.Executed.add(&o)
	return t
}

// done processes and records the result of an operation. The result of an abandoned verb
// is unknown, so its value keeps its claims and dependencies until the verb returns.
func (s *Scheduler) done(r *run, t *executor.Task) {
	n := t.Op.Node
	s.graph.Cause = r.cause()
	r.tasks.End(t)
	if t.Skipped {
		s.graph.Cancel(t.Op)
		r.skipped = true
		return
	}
	o := r.rec.Executed.At(t.Index)
	t.Err = s.oneFault(t.Err, o.OldErr)
	o.NewErr = t.Err
	s.remember(r, t, &o)
	s.counters.Operation(t)
	t.Report(s.graph)
	s.outdate(t)
	if s.graph.NeedsReading(n) {
		r.unclear = append(r.unclear, n)
		s.readOrphan(t.Op)
	}
	if t.Err != nil {
		r.failed = append(r.failed, n)
		s.readOrphan(t.Op)
		s.scheduleRetry(r, n, t.Err)
	} else {
		s.retries.Drop(n.Key())
		if t.Op.Verb == value.Delete && n.Desired() == nil { // else it is to come back
			s.flaps.Forget(n.Key())
		}
	}
	old := s.statuses.At(n.Slot)
	state := s.publish(r.rec.Start, n, old)
	if d := kind.OfOp(t.Op); d != nil && d.Referenced {
		s.graph.Identify(n)
	}
	r.ends(&o, t.Op, state)
	o.Meta = n.Meta()
	r.rec.Executed.set(t.Index, &o)
	if n.State() == graph.Rejected {
		r.recordNoop(n, old, state, false)
	}
	s.statuses.At(n.Slot).Mark(r.mark())
}

// oneFault returns an earlier error that equals err: that of the value's last attempt, or the newest of all. Thousands of
// values may fail for one reason, again and again. An equal text is not enough: errors of one text may ask for different things.
func (s *Scheduler) oneFault(err, last error) error {
	switch {
	case err == nil:
		return nil
	case last != nil && last.Error() == err.Error() && reflect.DeepEqual(last, err):
		return last
	case s.fault == nil || s.fault.Error() != err.Error() || !reflect.DeepEqual(s.fault, err):
		s.fault = err
	}
	return s.fault
}

// retries reports that r tries failed values again.
func (r *run) retries() bool { return r.rec.Type == RetryFailed }

// cause identifies r for the graph; see graph.Graph.Cause.
func (r *run) cause() uint8 { return uint8(r.rec.Seq) }

// mark identifies r in a Status; it is not 0.
func (r *run) mark() uint32 { return uint32(r.rec.Seq%math.MaxUint32) + 1 }

// note records the new state of a node without an operation. A node that is being deleted
// by another run is left to that run.
func (s *Scheduler) note(r *run, n *graph.Node) {
	if n.Detached() && n.Desired() == nil {
		return // it is being deleted; its status changes with the result
	}
	old := s.statuses.At(n.Slot)
	done := r.didTo(old)
	if !done && s.ledger.Outdated(n) { // also if notice has published it
		r.outcomes = append(r.outcomes, memory.Outcome{Key: n.Key(), Unsure: true})
	}
	if !n.News && (!r.recreated.Unfinished(n) || len(n.Unmet()) == 0) {
		return
	}
	state := s.publish(r.rec.Start, n, old)
	if done || !r.isUntold(old, state) {
		r.recordNoop(n, old, state, done)
	}
}

// isUntold reports that a resync has found a new or vanished value of somebody else. There may be any number of
// them. A resync that is slow publishes what it has read so far, and does not record it either.
func (r *run) isUntold(old *published.Status, state State) bool {
	vanished := state == Removed || state == Nonexistent
	return r.rec.Refresh && (state == Obtained || vanished && State(old.Known().State) == Obtained)
}

// didTo reports whether r executed an operation of the value with the status x.
func (r *run) didTo(x *published.Status) bool { return x != nil && x.Txn == r.mark() }

// recordNoop records a change of a node without a verb. done says that the record has an operation of the node.
func (r *run) recordNoop(n *graph.Node, old *published.Status, state State, done bool) {
	if state == Removed && !done {
		state = Nonexistent
	}
	o, news := r.changes(n, old.Known(), state, done)
	if !news {
		return
	}
	o.Retry, o.Meta = r.retries(), n.Meta()
	r.noops.add(&o, n.Root().Key(), r.rec.Executed.Len())
}
