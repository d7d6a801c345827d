package scheduler

import (
	"context"
	"slices"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/executor"
	"github.com/keyplane/keyplane/scheduler/internal/graph"
	"github.com/keyplane/keyplane/scheduler/internal/kind"
)

// A runPhase says what a run does or waits for. The loop drives one run at a time. A run
// that waits longer than parkAfter is parked: the loop does other work, and resumes the run when it can go on.
// Before that, it looks for operations once more: some may begin beside its verbs that take so long. A run that makes progress
// for longer is parked, too, if other work waits. A run that was parked has turns without waits. A run that waits only for parked
// runs is parked at once.
//
//	phase          waits for                                      next
//	readingBack    other readers and verbs of its connections,    executing
//	               then Retrieve
//	executing      its verbs; read-backs of its values            readingFailed if verbs failed, else ended
//	readingFailed  as readingBack, for the values of the verbs    retrying
//	retrying       as executing                                   readingFailed if a value must be read back, else ended
//	ended
//
// A transaction that undoes its changes after a failure is never parked, nor is one that
// reads back and changes values: both begin when no run is parked, and end before any other
// begins.
type runPhase uint8

const (
	readingBack runPhase = iota
	executing
	readingFailed
	retrying
	ended
)

const (
	// parkAfter is the time without progress after which a run is parked, and the length of a turn. It is
	// long for a verb and short for a person.
	parkAfter = 100 * time.Millisecond
	// mostParked bounds the memory of parked runs. If there are as many, new transactions,
	// observations and retries wait, until a parked run has ended.
	mostParked = 256
)

// drive advances r until it ends or is parked.
func (s *Scheduler) drive(ctx context.Context, r *run) {
	begun := time.Now()
	if begun.Sub(s.looked) >= parkAfter {
		s.looked, s.graph.Look = begun, true
	}
	for s.advance(ctx, r); r.phase != ended; s.advance(ctx, r) {
		switch {
		case r.parked || len(s.parked) > 0 && waitsForOthers(r) || s.turnIsOver(r, begun):
			s.park(r)
			return
		case !s.await(ctx, r, true):
			s.park(r)
			s.resume(ctx, r) // more may be possible beside what it waits for
			return
		}
	}
}

// turnIsOver reports that other work goes first while r, which was driven since begun, waits. Each of many
// read-backs, or of many verbs, may end soon, so that r is never without progress for long.
func (s *Scheduler) turnIsOver(r *run, begun time.Time) bool {
	return r.yields || time.Since(begun) >= parkAfter && s.othersWait()
}

// othersWait reports that other work waits until no run is driven.
func (s *Scheduler) othersWait() bool {
	return s.counters.Waiting() > 0 || len(s.observations.Ready()) > 0 || len(s.inbox.Ready()) > 0 || len(s.executor.Late()) > 0 ||
		slices.ContainsFunc(s.parked, func(p *run) bool { return p.tasks.Ready() })
}

// waitsForOthers reports that r, which cannot go on, has no verb of its own that could end
// the wait: parked runs hold its values, and none of them goes on before r is parked. Waiting
// for parkAfter in vain would add up, since each of many parked runs may come to this point
// several times.
func waitsForOthers(r *run) bool {
	return (r.phase == executing || r.phase == retrying) && r.tasks.Running() == 0
}

// advance lets r go on until it ends or must wait.
func (s *Scheduler) advance(ctx context.Context, r *run) {
	r.yields = false
	for r.phase != ended {
		switch r.phase {
		case readingBack, readingFailed:
			if !s.readBack(ctx, r) {
				return
			}
			if r.phase == readingBack {
				s.beginExecution(r)
			}
			r.phase++
		case executing, retrying:
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
	if r.afterReading != nil {
		r.afterReading()
	}
	if s.opts.Simulate || r.simulate || r.retry {
		s.simulateRun(r)
	}
	if !r.retry { // a retry begins with its first operation
		s.logBegin(r.rec)
	}
}

// endExecution reads back the values whose verbs failed, because a failed verb may have been
// partly effective. Without them, it completes r.
func (s *Scheduler) endExecution(ctx context.Context, r *run) {
	unclear := r.unclear
	if r.phase == executing {
		unclear = slices.Concat(r.failed, unclear)
	}
	if len(unclear) > 0 && ctx.Err() == nil {
		r.unclear = nil
		s.reader.Want(&r.reading, s.reader.For(unclear), nil)
		r.phase = readingFailed
		return
	}
	r.phase = ended
	s.complete(r)
}

// park lets other runs begin while r waits. Its running operations are detached from the
// graph's view of the next run, which must neither wait for them nor begin others of the
// same keys.
func (s *Scheduler) park(r *run) {
	for _, t := range r.tasks.List() {
		if !t.Ended && !t.Op.Node.Hung() {
			s.graph.Detach(t.Op)
		}
	}
	for n := range s.graph.Touched() {
		s.noteWhileParked(r, n)
	}
	r.known, r.parked = 0, true
	s.parked = append(s.parked, r)
}

// noteWhileParked is note for a run that has not ended. The record of an operation that has
// not ended follows later.
func (s *Scheduler) noteWhileParked(r *run, n *graph.Node) {
	switch {
	case !n.Detached() && !n.Held():
		s.note(r, n)
	case n.News && n.Desired() != nil:
		s.publish(r.rec.Start, n, s.statuses.At(n.Slot))
	}
}

// resume drives a parked run.
func (s *Scheduler) resume(ctx context.Context, r *run) {
	s.parked = slices.DeleteFunc(s.parked, func(p *run) bool { return p == r })
	s.drive(ctx, r)
}

// readyRun returns the oldest parked run that can go on, or nil.
func (s *Scheduler) readyRun(ctx context.Context) *run {
	for _, r := range s.parked {
		if s.isReady(ctx, r) {
			return r
		}
	}
	return nil
}

// isReady reports whether r, which waits, can go on.
func (s *Scheduler) isReady(ctx context.Context, r *run) bool {
	switch r.phase {
	case readingBack, readingFailed:
		return s.reader.CanGo(&r.reading)
	case executing, retrying:
		return r.tasks.Ready() || r.tasks.Running() == 0 && !(s.graph.Awaiting() && s.obstructed(ctx, r))
	case ended:
	}
	return true
}

// deliver gives finished tasks to their runs. The owner of a task may be a parked run:
// then the loop resumes it.
func (s *Scheduler) deliver(tasks []*executor.Task) {
	s.pulse.Work()
	for _, t := range tasks {
		kind.OfOp(t.Op).Connection.End(t.Generation)
		t.Owner.(*run).tasks.Finish(t)
	}
}

// awaitParked waits until no run is parked. Transactions that must run alone call it first. It
// ends, because each parked run ends when its verbs have returned or were abandoned.
func (s *Scheduler) awaitParked(ctx context.Context) {
	for len(s.parked) > 0 {
		if r := s.readyRun(ctx); r != nil {
			s.resume(ctx, r)
		} else {
			s.pulse.Rest()
			tasks, _ := s.executor.Await(ctx, s.reader.Ready(), nil)
			s.deliver(tasks)
		}
	}
}

// await waits until r can go on. If impatient is true, it returns false after parkAfter. Parked runs do not go on
// meanwhile. So only a run that begins when none is parked may wait without limit: another one might wait for a parked run.
func (s *Scheduler) await(ctx context.Context, r *run, impatient bool) bool {
	var limit <-chan time.Time
	for !s.isReady(ctx, r) {
		if impatient && limit == nil {
			s.parking.Reset(parkAfter)
			limit = s.parking.C
		}
		s.pulse.Rest()
		tasks, late := s.executor.Await(ctx, s.reader.Ready(), limit)
		s.deliver(tasks)
		if late { // no clock is asked: for one that is behind the timer, the wait would begin again without a limit
			return s.isReady(ctx, r)
		}
	}
	return true
}

// ownerOf returns the run to which an operation of n belongs, if r found that it can run:
// the newest run that declares or retries the value, else r. So the record of a
// transaction has the operations of its values, even if the end of another transaction
// made them possible.
func (s *Scheduler) ownerOf(r *run, n *graph.Node) *run {
	owner, concerned := r, r.scope.Concerns(n)
	for _, p := range s.parked {
		if (!concerned || p.rec.Seq > owner.rec.Seq) && p.scope.Concerns(n) {
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
	return slices.ContainsFunc(s.parked, func(p *run) bool {
		return slices.ContainsFunc(p.tasks.List(), func(t *executor.Task) bool { return r.scope.Concerns(t.Op.Node) && waits(t.Op.Node) })
	})
}
