package scheduler

import (
	"context"
	"errors"
	"time"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// A run is one pass of the loop, with its record.
type run struct {
	rec    *Record
	policy Retry
	retry  bool
}

func (s *Scheduler) begin(t TxnType) *run {
	r := &run{rec: &Record{Seq: s.seq, Type: t, Start: time.Now()}}
	s.seq++
	return r
}

func (s *Scheduler) commit(ctx context.Context, txn Txn) *Record {
	r := s.begin(Northbound)
	r.policy = txn.Retry
	r.rec.Description, r.rec.Values = txn.Description, txn.Changes
	r.rec.Refresh, r.rec.Replace = txn.Refresh, txn.Replace
	if txn.Replace {
		s.unwantOthers(txn.Changes)
	}
	for _, c := range txn.Changes {
		s.intend(c)
	}
	if txn.Replace {
		s.graph.Complete()
	}
	if txn.Refresh {
		s.refresh(ctx, r, s.registry.all)
	}
	return s.finish(ctx, r)
}

func (s *Scheduler) intend(c Change) {
	if c.Value != nil {
		s.graph.Want(c.Value.v)
	} else {
		s.graph.Unwant(c.Key)
	}
	if c.Err != nil {
		s.graph.Reject(c.Key, c.Err)
	}
}

// unwantOthers drops what is wanted but not among changes.
func (s *Scheduler) unwantOthers(changes []Change) {
	wanted := make(map[string]bool, len(changes))
	for _, c := range changes {
		wanted[c.Key] = true
	}
	var others []string
	for n := range s.graph.Nodes() {
		if n.Base() == nil && !wanted[n.Key()] && (n.Want() != nil || n.Err() != nil) {
			others = append(others, n.Key())
		}
	}
	for _, key := range others {
		s.graph.Unwant(key)
	}
}

// finish runs all that can be run, and completes the record.
func (s *Scheduler) finish(ctx context.Context, r *run) *Record {
	s.printer.begin(r.rec)
	s.execute(ctx, r)
	for n := range s.graph.Touched() {
		s.note(r, n)
	}
	r.rec.Stop = time.Now()
	s.report(r)
	s.history.add(r.rec)
	s.printer.end(r.rec)
	return r.rec
}

// report logs the failures of a transaction that nobody waits for. A retry
// that fails as before says nothing new.
func (s *Scheduler) report(r *run) {
	if r.rec.Type == Northbound {
		return
	}
	for _, op := range r.rec.Executed {
		if op.NewErr != nil && (op.OldErr == nil || op.OldErr.Error() != op.NewErr.Error()) {
			s.log.Warn("operation failed", "key", op.Key, "operation", op.Verb, "state", op.NewState, "err", op.NewErr)
		}
	}
}

// execute runs what can be run until nothing can.
func (s *Scheduler) execute(ctx context.Context, r *run) {
	running := 0
	for {
		for ctx.Err() == nil {
			op, ok := s.graph.Next()
			if !ok {
				break
			}
			t := &task{op: op, d: kindOf(op)}
			if t.d == nil || t.d.passive() {
				s.done(r, t)
				continue
			}
			running++
			t.d.southbound.push(ctx, t)
		}
		if running == 0 {
			return
		}
		for _, t := range s.results.take() {
			running--
			s.done(r, t)
		}
	}
}

func kindOf(op graph.Op) *descriptor {
	v := op.New
	if v == nil {
		v = op.Old
	}
	d, _ := v.Kind.(*descriptor)
	return d
}

// done takes the result of an operation back and records it.
func (s *Scheduler) done(r *run, t *task) {
	n := t.op.Node
	o := Operation{
		Verb: verbs[t.op.Verb], Key: n.Key(), Old: message(t.op.Old), New: message(t.op.New),
		Noop: t.d == nil || t.d.passive(), Recreate: t.op.Recreate, NewErr: t.err,
	}
	old := s.board.at(n.Slot)
	if old != nil {
		o.OldState, o.OldErr = old.State, old.Err
	}
	o.Retry = r.retry && o.OldErr != nil
	if n.Base() != nil {
		o.Derived, o.Property = t.d != nil, t.d == nil
	}
	s.graph.Done(t.op, t.meta, t.err)
	if t.err != nil {
		s.scheduleRetry(r, n.Key(), t.err)
	} else {
		s.retries.drop(n.Key())
	}
	o.NewState = s.publish(r, n, old)
	r.rec.Executed = append(r.rec.Executed, o)
	if st := s.board.at(n.Slot); st != nil {
		st.txn = r.rec.Seq + 1
	}
}

// note records what became of a node for which nothing was executed.
func (s *Scheduler) note(r *run, n *graph.Node) {
	old := s.board.at(n.Slot)
	state := s.publish(r, n, old)
	if old != nil && old.txn == r.rec.Seq+1 {
		return
	}
	o := Operation{Verb: kvscheduler.TxnOperation_CREATE, Key: n.Key(), Noop: true, New: message(n.Want()), NewState: state, Derived: n.Base() != nil}
	if old != nil {
		o.OldState, o.OldErr = old.State, old.Err
	}
	switch state {
	case kvscheduler.ValueState_INVALID, kvscheduler.ValueState_UNIMPLEMENTED:
		o.NewErr = nil
		if rejected := n.Err(); old == nil || old.Err == nil || old.Err.Error() != rejected.Error() {
			o.Verb, o.NewErr = kvscheduler.TxnOperation_VALIDATE, rejected
			r.rec.Executed = append(r.rec.Executed, o)
		}
	case kvscheduler.ValueState_PENDING, kvscheduler.ValueState_CONFIGURED:
		if o.OldState != state {
			if state == kvscheduler.ValueState_CONFIGURED {
				o.Verb = kvscheduler.TxnOperation_UPDATE
				o.Old = message(n.Have())
			}
			r.rec.Executed = append(r.rec.Executed, o)
		}
	case kvscheduler.ValueState_NONEXISTENT:
		if old != nil {
			o.Verb, o.Old = kvscheduler.TxnOperation_DELETE, old.Want
			o.NewState = kvscheduler.ValueState_REMOVED
			r.rec.Executed = append(r.rec.Executed, o)
		}
	}
}

// publish shows what is known of n now, if that is anything new.
func (s *Scheduler) publish(r *run, n *graph.Node, old *Status) State {
	state := s.stateOf(n)
	d, _ := kind(n).(*descriptor)
	if d != nil {
		s.indexMeta(d, n)
	}
	if state == kvscheduler.ValueState_NONEXISTENT {
		if old != nil {
			s.board.drop(n.Slot)
			n.Slot = 0
			s.retries.drop(n.Key())
			return kvscheduler.ValueState_REMOVED
		}
		return state
	}
	st := &Status{
		Key: n.Key(), State: state, Err: n.Err(), Last: verbs[n.Last()], Details: details(n, state),
		Want: message(n.Want()), Have: message(n.Have()), Meta: n.Meta(), Since: r.rec.Start, slot: n.Slot,
	}
	if d != nil {
		st.Descriptor = d.name
	}
	if n.Base() != nil {
		st.Base = n.Base().Key()
	}
	if old != nil {
		st.txn = old.txn
		if old.State == state {
			st.Since = old.Since
		}
	}
	if rejected(state) {
		st.Last = kvscheduler.TxnOperation_VALIDATE
	}
	s.board.put(st)
	n.Slot = st.slot
	return state
}

func kind(n *graph.Node) graph.Kind {
	if v := n.Have(); v != nil {
		return v.Kind
	}
	if v := n.Want(); v != nil {
		return v.Kind
	}
	return nil
}

func (s *Scheduler) indexMeta(d *descriptor, n *graph.Node) {
	switch {
	case n.Have() != nil && n.Meta() != nil:
		d.index.set(d.nameIn(n.Key()), n.Meta())
	case n.Have() == nil:
		d.index.drop(d.nameIn(n.Key()))
	}
}

func rejected(state State) bool {
	return state == kvscheduler.ValueState_INVALID || state == kvscheduler.ValueState_UNIMPLEMENTED
}

func (s *Scheduler) stateOf(n *graph.Node) State {
	switch n.State() {
	case graph.Configured:
		return kvscheduler.ValueState_CONFIGURED
	case graph.Pending:
		if b := n.Base(); n.Have() == nil && b != nil && b.Have() == nil {
			return kvscheduler.ValueState_NONEXISTENT // shown once there is a base to derive it
		}
		return kvscheduler.ValueState_PENDING
	case graph.Missing:
		return kvscheduler.ValueState_MISSING
	case graph.Discovered:
		return kvscheduler.ValueState_DISCOVERED
	case graph.Obtained:
		return kvscheduler.ValueState_OBTAINED
	case graph.Failed:
		if s.retries.has(n.Key()) {
			return kvscheduler.ValueState_RETRYING
		}
		return kvscheduler.ValueState_FAILED
	case graph.Rejected:
		if errors.Is(n.Err(), ErrUnimplemented) {
			return kvscheduler.ValueState_UNIMPLEMENTED
		}
		return kvscheduler.ValueState_INVALID
	}
	return kvscheduler.ValueState_NONEXISTENT
}

func details(n *graph.Node, state State) []string {
	switch state {
	case kvscheduler.ValueState_PENDING:
		var out []string
		for _, d := range n.Unmet() {
			out = append(out, d.Label)
		}
		return out
	case kvscheduler.ValueState_INVALID:
		return models.Fields(n.Err())
	}
	return nil
}
