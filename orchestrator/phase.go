package orchestrator

import (
	"context"
	"slices"
	"sync"

	"github.com/keyplane/keyplane/internal/wake"
	"github.com/keyplane/keyplane/scheduler"
)

// A phase is a step of the start. The table in the package documentation says when each
// begins and which transactions it has. Phases only go up.
type phase uint8

const (
	starting phase = iota
	ready
	partial
	known
	pruned
)

// reached returns the phase that the sources have made possible.
func (o *Orchestrator) reached() phase {
	incomplete := func(l *source) bool { return !l.synced && !l.isOfAnother() }
	faulty := func(l *source) bool { return !l.synced || len(l.problems) > 0 }
	switch {
	case o.idle() || slices.ContainsFunc(o.sources, incomplete):
		return o.phase
	case o.phase == pruned || !slices.ContainsFunc(o.sources, faulty):
		return pruned
	}
	return known
}

// idle reports that there is no source: neither a store nor a program has declared anything
// since the start. Then nobody can tell which actual values are still desired. After a change of
// Options.First somebody can: its layer had values before the start, and may be empty now.
func (o *Orchestrator) idle() bool { return len(o.sources) == 0 && !o.madeFirst }

// commit commits changes, after the sources may have reached another phase. They come from l, or from several sources if l is
// nil. fresh says that changes are the whole desired state.
func (o *Orchestrator) commit(ctx context.Context, l *source, description string, changes []scheduler.Change, fresh bool) {
	before := o.phase
	if o.phase < pruned {
		o.phase = o.reached()
	}
	if o.phase == starting {
		return // the callers of Declare wait, too
	}
	txn := scheduler.Txn{Description: description, Changes: changes, Retry: o.retry, Refresh: before < partial}
	if before < partial || o.phase > before {
		o.describePhase(&txn, before, fresh)
		l = nil
	}
	first := before < partial && o.phase >= known // reads the system back, even without a key
	if len(txn.Changes) == 0 && !first && !txn.Replace {
		o.answer(nil, nil)
		return
	}
	o.phase = max(o.phase, partial)
	o.start(ctx, l, txn)
}

// start begins a transaction with what comes from l, or from several sources if l is nil.
func (o *Orchestrator) start(ctx context.Context, l *source, txn scheduler.Txn) {
	out := outcome{description: txn.Description, waiting: o.waiting, phase: o.phase, number: o.txns.begin(), sources: o.withhold(&txn, l)}
	o.waiting = nil
	err := o.sched.Start(ctx, txn, func(record *scheduler.Record, err error) {
		out.record, out.err = record, err
		o.outcomes.put(out)
	})
	if err != nil {
		out.err = err
		o.ended(ctx, out)
	}
}

// An outcome is the result of a transaction. Transactions begin one after the other, but a
// later one does not wait for the slow operations of an earlier one. So they may end in
// another order.
type outcome struct {
	description string
	waiting     []*request                // their callers wait for the result
	phase       phase                     // when the transaction began
	number      uint64                    // see transactions
	sources     func() map[string]*source // see withhold
	record      *scheduler.Record
	err         error
}

// outcomes has the results that Run's goroutine has not handled yet.
type outcomes struct {
	ready wake.Signal // set when there are results

	mu  sync.Mutex // guards all
	all []outcome
}

// put adds the outcome of a transaction. The scheduler's goroutine calls it, so it never
// blocks.
func (os *outcomes) put(out outcome) {
	os.mu.Lock()
	defer os.mu.Unlock()
	os.all = append(os.all, out)
	os.ready.Set()
}

// take removes and returns all outcomes, oldest first.
func (os *outcomes) take() []outcome {
	os.mu.Lock()
	defer os.mu.Unlock()
	out := os.all
	os.all = nil
	return out
}

// takeOutcomes handles the results of the transactions that have ended.
func (o *Orchestrator) takeOutcomes(ctx context.Context) {
	for _, out := range o.outcomes.take() {
		o.ended(ctx, out)
	}
}

// ended answers the callers that wait for a transaction, and reports its failures.
func (o *Orchestrator) ended(ctx context.Context, out outcome) {
	for _, r := range out.waiting {
		r.finish(out.record, out.err)
	}
	o.txns.end(out.number)
	switch {
	case out.record != nil:
		if out.err != nil && o.report(out.record) { // some were withheld
			o.missed(ctx, out)
		}
		if out.phase >= known && o.complete != nil {
			o.reportComplete()
		}
	case ctx.Err() == nil:
		o.log.Error("transaction not processed", "description", out.description, "err", out.err)
	}
}

// reportComplete calls Options.Complete if the sources are complete for the first time, or
// if there are none.
func (o *Orchestrator) reportComplete() {
	if (o.phase >= known || o.idle()) && o.complete != nil {
		o.complete()
		o.complete = nil
	}
}

// describePhase makes txn the first transaction of the present phase: it has the whole
// desired state.
func (o *Orchestrator) describePhase(txn *scheduler.Txn, before phase, fresh bool) {
	if fresh {
		txn.Changes = sorted(txn.Changes)
	} else {
		txn.Changes = o.all()
	}
	switch {
	case o.phase == pruned:
		txn.Description = "all sources are complete"
		txn.Refresh, txn.Replace = true, true
		o.deferred = nil // the replacement makes these removals
	case o.phase == known && before < known:
		txn.Description = "all sources are complete, but have problems, or another agent has the label: undeclared values stay"
		txn.Changes = append(txn.Changes, o.deferredRemovals()...)
		o.log.Warn("not pruning undeclared values while a source has problems, or another agent has the label in it")
	default:
		txn.Description = o.incomplete()
	}
}
