package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

var (
	// ErrNoAnswer is the error of a verb that was abandoned: it has not returned within
	// Options.VerbTimeout. The value is FAILED, and no other verb of its key is called until
	// the verb returns.
	ErrNoAnswer = errors.New("no answer")
	// ErrStalled is the error of a verb that is not called because too many calls of its
	// descriptor were abandoned and still run. It is tried again like any other failure.
	ErrStalled = errors.New("descriptor is stalled")
)

const (
	// mostHung is how many abandoned calls of a descriptor may still run while others of it
	// begin. So each descriptor has at most mostHung-1 of them and as many as its southbound
	// runs at once: enough that single items that hang do not stop the others, few enough that
	// their goroutines, and what they hold, count little.
	mostHung = 8
	// mostGrace is the most by which a verb may return after its context has ended.
	mostGrace = time.Second
	// mostFarewell is for how long verbs in flight are waited for when the scheduler stops.
	mostFarewell = 5 * time.Second
)

// grace is for how long a verb is waited for after its context has ended: who heeds it can say
// more about the reason than that there was no answer.
func grace(timeout time.Duration) time.Duration { return min(timeout/10, mostGrace) }

// seconds is d as people read it.
func seconds(d time.Duration) string {
	if d > 0 && d < time.Second {
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	return strconv.FormatFloat(d.Round(time.Millisecond).Seconds(), 'f', -1, 64) + " s"
}

// A watchdog says when to look for verbs that take too long. Run's goroutine owns it.
type watchdog struct {
	timer *time.Timer
	set   bool
	stop  time.Time // when nothing is waited for any more; zero: the scheduler does not stop
}

// await waits for results. A verb that takes too long counts as one.
func (s *Scheduler) await(ctx context.Context) []*task {
	for {
		select {
		case <-s.results.ready:
			return s.results.take()
		default:
		}
		if !s.watchdog.set {
			s.watch(s.patience())
		}
		ended := ctx.Done()
		if !s.watchdog.stop.IsZero() {
			ended = nil
		}
		select {
		case <-s.results.ready:
			return s.results.take()
		case <-ended:
			s.watchdog.stop = time.Now().Add(min(s.patience(), mostFarewell))
			s.watch(time.Until(s.watchdog.stop))
		case <-s.watchdog.timer.C:
			s.watchdog.set = false
			if out := s.abandonOverdue(ctx); len(out) > 0 {
				return out
			}
		}
	}
}

// patience is how long a verb may take until it is abandoned.
func (s *Scheduler) patience() time.Duration { return s.opts.VerbTimeout + grace(s.opts.VerbTimeout) }

func (s *Scheduler) watch(after time.Duration) {
	if s.watchdog.timer == nil {
		s.watchdog.timer = time.NewTimer(after)
	} else {
		s.watchdog.timer.Reset(after)
	}
	s.watchdog.set = true
}

// unwatch is called when no verb runs any more.
func (s *Scheduler) unwatch() {
	if s.watchdog.set {
		s.watchdog.timer.Stop()
		s.watchdog.set = false
	}
}

// abandonOverdue abandons the verbs that take too long, and returns what is known of their
// workers' tasks. A verb that begins later is not overdue before the next look.
func (s *Scheduler) abandonOverdue(ctx context.Context) (out []*task) {
	now := time.Now()
	next := s.patience()
	for _, b := range s.bounds {
		lost, left := b.leaveOverdue(now, s.patience(), s.watchdog.stop)
		next = min(next, left)
		for _, l := range lost {
			out = append(out, s.abandon(l)...)
		}
		out = append(out, b.goOn(ctx, lost)...)
	}
	s.watch(next)
	return out
}

// A loss is what a worker had to do whose verb was abandoned.
type loss struct{ done, hung, rest []*task }

// leaveOverdue leaves the workers whose verbs have run for longer than patience, or still run
// at the time stop (zero: never), and returns how long the others have.
func (b *southbound) leaveOverdue(now time.Time, patience time.Duration, stop time.Time) (lost []loss, left time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left = patience
	for w := range b.workers {
		l, more := w.leave(now, patience, stop)
		if left = min(left, more); l.hung == nil {
			continue
		}
		lost = append(lost, l)
		delete(b.workers, w)
		b.hung[w] = struct{}{}
	}
	return lost, left
}

// leave takes the tasks of w away if its verb is overdue; else left is how long it has.
func (w *worker) leave(now time.Time, patience time.Duration, stop time.Time) (l loss, left time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at == 0 {
		return loss{}, patience
	}
	deadline := w.begun.Add(patience)
	if !stop.IsZero() && stop.Before(deadline) {
		deadline = stop
	}
	if left = deadline.Sub(now); left > 0 {
		return loss{}, left
	}
	w.left = true
	end := w.done + w.at
	return loss{w.chunk[:w.done], w.chunk[w.done:end], w.chunk[end:]}, patience
}

// abandon returns what is known of the tasks of a worker that was left.
func (s *Scheduler) abandon(l loss) []*task {
	first := l.hung[0]
	first.d.hung++
	err := fmt.Errorf("%w in %s", ErrNoAnswer, seconds(s.opts.VerbTimeout))
	if !s.watchdog.stop.IsZero() {
		err = fmt.Errorf("%w before the scheduler stopped", ErrNoAnswer)
	}
	s.log.Error("verb does not return; it is abandoned", "descriptor", first.d.name, "key", first.op.Node.Key(),
		"operation", verbs[first.op.Verb], "values", len(l.hung), "err", err)
	out := l.done
	for _, t := range l.hung { // the task itself is the verb's until it returns
		out = append(out[:len(out):len(out)], &task{op: t.op, d: t.d, index: t.index, err: err, abandoned: true})
	}
	return out
}

// goOn has others do what those that were left have not begun. Tasks of stalled descriptors
// fail instead, and are returned.
func (b *southbound) goOn(ctx context.Context, lost []loss) (failed []*task) {
	if len(lost) == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var queue []*task
	for _, l := range lost {
		queue = append(queue, l.rest...)
	}
	queue = append(queue, b.queue...)
	b.queue = nil
	for _, t := range queue {
		if t.err = t.d.stalled(); t.err != nil {
			failed = append(failed, t)
		} else {
			b.queue = append(b.queue, t)
		}
	}
	for range min(len(b.queue), len(lost)) {
		b.start(ctx)
	}
	return failed
}

// stalled says why no verb of d may begin; nil: one may.
func (d *descriptor) stalled() error {
	if d.hung < mostHung {
		return nil
	}
	return fmt.Errorf("%w: %d calls of %s were abandoned and still run; others begin when fewer than %d do", ErrStalled, d.hung, d.name, mostHung)
}

// returned follows what abandoned verbs have done, now that they have returned: it reads that
// back, where that can be read, and brings what is wanted and what stands together again.
func (s *Scheduler) handleLateResults(ctx context.Context, tasks []*task) {
	r := s.begin(Notification)
	r.rec.Description = "abandoned operations have returned"
	var nodes []*graph.Node
	for _, t := range tasks {
		n := t.op.Node
		if t.leads {
			t.d.hung--
		}
		s.log.Info("an abandoned verb has returned", "descriptor", t.d.name, "key", n.Key(), "operation", verbs[t.op.Verb], "took", t.took, "err", t.err)
		o := operation(t.op, t.d, s.statuses.At(n.Slot).shown())
		o.NewErr = t.err
		s.graph.Returned(t.op, t.meta, t.err)
		s.retries.resume(r, n, t.err, s.opts.Retry)
		old := s.statuses.At(n.Slot)
		o.NewState = s.publish(r.rec.Start, n, old)
		if st := s.statuses.At(n.Slot); st != nil {
			st.txn = r.mark()
		}
		r.rec.Executed = append(r.rec.Executed, o)
		nodes = append(nodes, n)
	}
	s.refresh(ctx, r, s.readingsFor(nodes), nil)
	s.finish(ctx, r)
}
