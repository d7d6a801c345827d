package scheduler

import (
	"context"
	"slices"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// A runPhase says what a run does or waits for. Any number of runs are open at once. The loop never waits for one: it drives a run
// that can go on, or begins the next one.
//
//	phase      waits for                                                 next
//	reading    other readers and verbs of its connections, then          executing
//	           Retrieve: of what a transaction or a notification asks
//	           for, or of values whose verbs failed
//	executing  its verbs; read-backs of its values                       reading if verbs failed since, else ended
//	ended
//
// What a run that is all or nothing has changed is undone after the read-back of its failed values.
//
// Nothing else begins while operations of a run are in flight, for 100 ms: most have ended by then. Then they land, when something
// else begins, or when none of them has ended for as long.
type runPhase uint8

const (
	reading runPhase = iota
	executing
	ended
)

const (
	// landAfter is how long others wait for a run whose operations are in flight. It is long for a verb and short for a person.
	landAfter = 100 * time.Millisecond
	// mostOpen bounds the memory of open runs. If there are as many, new transactions, observations and retries wait, until one
	// has ended.
	mostOpen = 256
)

// isYoung reports that operations of the run that was driven last are in flight, and nothing else may come between.
func (s *Scheduler) isYoung() bool { return s.graph.Flying() && !s.driven.slow }

// mayBegin reports whether a run may begin.
func (s *Scheduler) mayBegin() bool {
	alone := s.alone != nil || len(s.open) > 0 && s.open[0].alone
	return !alone && !s.isYoung()
}

// proceed has an open run go on, or waits until one can.
func (s *Scheduler) proceed(ctx context.Context) {
	r := s.driven
	if !s.isYoung() {
		r = s.readyRun(ctx)
	} else if !s.isReady(ctx, r) {
		r = nil
	}
	if r != nil {
		s.drive(ctx, r)
		return
	}
	s.pulse.Rest()
	tasks, late := s.executor.Await(ctx, s.reader.Ready(), s.landing.C)
	s.deliver(tasks)
	if late {
		s.landSlow(ctx)
	}
}

// drive advances r until it ends or must wait.
func (s *Scheduler) drive(ctx context.Context, r *run) {
	now := time.Now()
	if now.Sub(s.looked) >= landAfter {
		s.looked, s.graph.Look = now, true
	}
	if s.driven != r {
		s.land()
		s.driven, s.since = r, now
	}
	s.advance(ctx, r)
	switch {
	case r.phase == ended:
		s.driven = nil
		s.landing.Stop()
	case r.landed:
		s.land()
	default:
		r.slow = time.Since(s.since) >= landAfter
		s.landing.Reset(landAfter)
	}
}

// land ends the flight of the operations of the run that was driven last: other work neither waits for them nor begins others of the
// same keys. It publishes what the run has changed.
func (s *Scheduler) land() {
	r := s.driven
	if r == nil {
		return
	}
	s.driven = nil
	s.landing.Stop()
	for _, t := range r.tasks.List() {
		if !t.Ended && !t.Op.Node.Hung() {
			s.graph.Detach(t.Op)
			r.looks = true
		}
	}
	r.landed = r.phase == executing
	for n := range s.graph.Touched() {
		s.noteWhileOpen(r, n)
	}
	r.known = 0
}

// landSlow lands operations of which none has ended for landAfter, and looks for others that can begin beside them.
func (s *Scheduler) landSlow(ctx context.Context) {
	r := s.driven
	if r == nil || r.alone {
		return
	}
	s.deliver(s.executor.TakeFinished())
	if !r.tasks.Ready() {
		s.land()
	}
	if r.looks || r.tasks.Ready() {
		s.drive(ctx, r)
	}
}

// advance lets r go on until it ends or must wait.
func (s *Scheduler) advance(ctx context.Context, r *run) {
	for r.phase != ended {
		switch r.phase {
		case reading:
			if !s.readBack(ctx, r) {
				return
			}
			s.since = time.Now()
			switch {
			case r.executing.IsZero():
				s.beginExecution(r)
			case r.broken():
				s.undo(r)
			default:
				r.phase = executing
			}
		case executing:
			if !s.execute(ctx, r) {
				return
			}
			s.endExecution(ctx, r)
		case ended:
		}
	}
}

// beginExecution is called when the actual state is known.
func (s *Scheduler) beginExecution(r *run) {
	r.phase = executing
	r.reading.Coming, r.reading.Nobody = nil, nil // what fails is read back for others too
	if r.before != nil {
		r.before()
	}
	if r.phase == ended { // it was refused
		return
	}
	if s.opts.Simulate || r.simulate || r.retries() {
		s.simulateRun(r)
	}
	if !r.quiet { // a quiet one begins with its first operation
		s.logBegin(r.rec)
	}
}

// endExecution reads back the values whose verbs have failed since the last time, because a failed verb may have been
// partly effective. Without them, it completes r.
func (s *Scheduler) endExecution(ctx context.Context, r *run) {
	unclear := slices.Concat(r.failed[r.readBack:], r.unclear)
	r.unclear, r.readBack = nil, len(r.failed)
	if parts := s.reader.For(unclear); len(parts) > 0 && ctx.Err() == nil || r.broken() {
		r.phase = reading
		s.reader.Want(&r.reading, parts, nil)
		return
	}
	if r.rec.Revert && !r.reverting {
		s.graph.Keep()
	}
	s.complete(r)
}

// executeFreed begins what the read-back of a connection has let go, while its run reads back the next one.
func (s *Scheduler) executeFreed(ctx context.Context) {
	r := s.begin(Notification)
	r.rec.Description, r.quiet = "a read-back has ended", true
	s.finish(ctx, r)
}

// noteWhileOpen is note for a run that has not ended. The record of an operation that has
// not ended follows later.
func (s *Scheduler) noteWhileOpen(r *run, n *graph.Node) {
	switch {
	case !n.Detached() && !n.Held():
		s.note(r, n)
	case n.News && n.Desired() != nil:
		s.publish(r.rec.Start, n, s.statuses.At(n.Slot))
	}
}

// readyRun returns an open run that can go on, or nil. They take turns.
func (s *Scheduler) readyRun(ctx context.Context) *run {
	for i, r := range s.open {
		if s.isReady(ctx, r) {
			s.open = append(slices.Delete(s.open, i, i+1), r)
			return r
		}
	}
	return nil
}

// isReady reports whether r, which waits, can go on.
func (s *Scheduler) isReady(ctx context.Context, r *run) bool {
	switch r.phase {
	case reading:
		return s.reader.CanGo(&r.reading)
	case executing:
		return r.looks || r.tasks.Ready() || r.tasks.Running() == 0 && !(s.graph.Awaiting() && s.obstructed(ctx, r))
	case ended:
	}
	return true
}

// deliver gives finished tasks to their runs, which can go on then.
func (s *Scheduler) deliver(tasks []*executor.Task) {
	s.pulse.Work()
	for _, t := range tasks {
		kind.OfOp(t.Op).Connection.End(t.Generation)
		t.Owner.(*run).tasks.Finish(t)
	}
}

// ownerOf returns the run to which an operation of n belongs, if r found that it can run:
// the newest one that is executing and declares or retries the value, else r. So the record of a
// transaction has the operations of its values, even if the end of another transaction
// made them possible. A run that reads back would take no result.
func (s *Scheduler) ownerOf(r *run, n *graph.Node) *run {
	owner, concerned := r, r.scope.Concerns(n)
	for _, p := range s.open {
		if p.phase == executing && (!concerned || p.rec.Seq > owner.rec.Seq) && p.scope.Concerns(n) {
			owner, concerned = p, true
		}
	}
	return owner
}

// obstructed reports whether operations of values that r declares wait for a read-back, or
// for operations of other runs. That is possible only while the graph is awaiting.
func (s *Scheduler) obstructed(ctx context.Context, r *run) bool {
	if r.rec.Type == Notification || ctx.Err() != nil {
		return false
	}
	waits := func(n *graph.Node) bool { return (n.Held() || n.Detached()) && s.ownerOf(r, n) == r }
	return r.scope.Any(s.graph, waits) || r.rec.Replace && s.obstructsReplace(r, waits)
}

// obstructsReplace is obstructed for the values that r removes because it does not name them.
func (s *Scheduler) obstructsReplace(r *run, waits func(*graph.Node) bool) bool {
	for _, l := range s.links {
		for n := range l.AllHeld {
			if r.scope.Concerns(n) && waits(n) {
				return true
			}
		}
	}
	return slices.ContainsFunc(s.open, func(p *run) bool {
		return slices.ContainsFunc(p.tasks.List(), func(t *executor.Task) bool { return r.scope.Concerns(t.Op.Node) && waits(t.Op.Node) })
	})
}
