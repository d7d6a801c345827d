package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

var (
	// ErrNoAnswer is the error of an abandoned call.
	ErrNoAnswer = errors.New("no answer")
	// ErrStalled is the error of a call that does not begin because too many abandoned calls
	// of its descriptor are still running.
	ErrStalled = errors.New("descriptor is stalled")
	// ErrWithheld is the error of a verb that does not begin because of Task.Withheld.
	ErrWithheld = errors.New("not executed")
)

// NotBegun reports whether err says that a call did not begin.
func NotBegun(err error) bool { return errors.Is(err, ErrStalled) || errors.Is(err, ErrWithheld) }

// noEffect marks the error of a call that has changed nothing.
type noEffect struct{ error }

func (e noEffect) Unwrap() error { return e.error }

// NoEffect marks an error of a verb; see reading.Needless.
func NoEffect(err error) error {
	if err == nil {
		return nil
	}
	return noEffect{err}
}

// HasNoEffect reports whether err says that a call did not begin, or has changed nothing.
func HasNoEffect(err error) bool {
	var e noEffect
	return NotBegun(err) || errors.As(err, &e)
}

const (
	// maxHung is the number of abandoned calls of a descriptor that stalls it. So at most
	// maxHung-1 of its calls hang, and as many more as its connection runs at once. Some
	// hanging items do not stop the others, and the cost of their goroutines is small.
	maxHung = 8
	// maxGrace limits the grace of a call after its context has ended.
	maxGrace = time.Second
	// shutdownTimeout limits the wait for running verbs when the context ends.
	shutdownTimeout = 5 * time.Second
)

// grace returns how long a call may continue after its context has ended. A call that obeys
// its context returns a better error than ErrNoAnswer.
func grace(timeout time.Duration) time.Duration { return min(timeout/10, maxGrace) }

// Seconds renders d for people.
func Seconds(d time.Duration) string {
	if d > 0 && d < time.Second {
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	return strconv.FormatFloat(d.Round(time.Millisecond).Seconds(), 'f', -1, 64) + " s"
}

// A watchdog determines when Await looks for overdue verbs.
type watchdog struct {
	timer *time.Timer
	set   bool
	stop  time.Time // end of the shutdown; zero: no shutdown
}

// Await returns finished tasks. Overdue verbs are abandoned and count as finished. It
// returns none when other has a token, which is taken, or when limit fires; late says that. After ctx has ended, Await waits at most
// shutdownTimeout.
func (e *Executor) Await(ctx context.Context, other <-chan struct{}, limit <-chan time.Time) (tasks []*Task, late bool) {
	for {
		e.Watch()
		ended := ctx.Done()
		if !e.watchdog.stop.IsZero() {
			ended = nil
		}
		select {
		case <-e.finished.ready.C():
			return e.finished.take(), false
		case <-other:
			return nil, false
		case <-limit:
			return nil, true
		case <-ended:
			e.watchdog.stop = time.Now().Add(min(e.abandonAfter, shutdownTimeout))
			e.watch(time.Until(e.watchdog.stop))
		case <-e.watchdog.timer.C:
			if out := e.TakeOverdue(ctx); len(out) > 0 {
				return out, false
			}
		}
	}
}

// Watch has overdue verbs abandoned from now on, until Idle. It is called when a verb begins.
func (e *Executor) Watch() {
	if !e.watchdog.set {
		e.watch(e.abandonAfter)
	}
}

// watch sets the timer of Await. There is one timer for all verbs: the next verb to be
// abandoned decides when it fires.
func (e *Executor) watch(after time.Duration) {
	if e.watchdog.timer == nil {
		e.watchdog.timer = time.NewTimer(after)
	} else {
		e.watchdog.timer.Reset(after)
	}
	e.watchdog.set = true
}

// Idle is the inverse of Watch. It is called when no verb is running.
func (e *Executor) Idle() {
	if e.watchdog.set {
		e.watchdog.timer.Stop()
		e.watchdog.set = false
	}
}

// abandonOverdue abandons overdue verbs and returns the finished tasks of their workers. A
// verb that begins later is checked at the next timer.
func (e *Executor) abandonOverdue(ctx context.Context) (out []*Task) {
	now := time.Now()
	next := e.abandonAfter
	for _, p := range e.pools {
		abandoned, remaining := p.abandonOverdue(now, e.abandonAfter, e.watchdog.stop)
		next = min(next, remaining)
		for _, w := range abandoned {
			out = append(out, e.abandon(w)...)
		}
		out = append(out, p.requeue(ctx, abandoned)...)
	}
	e.watch(next)
	return out
}

// abandonedWork has the tasks of a worker with an abandoned verb.
type abandonedWork struct{ done, hung, waiting []*Task }

// abandonOverdue abandons the verbs that have run longer than limit, or are still running at
// the time stop (zero: never). It returns the shortest remaining time of the others.
func (p *Pool) abandonOverdue(now time.Time, limit time.Duration, stop time.Time) (abandoned []abandonedWork, remaining time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	remaining = limit
	for w := range p.workers {
		work, left := w.abandonIfOverdue(now, limit, stop)
		remaining = min(remaining, left)
		if work.hung == nil {
			continue
		}
		abandoned = append(abandoned, work)
		delete(p.workers, w)
		p.hung[w] = struct{}{}
	}
	return abandoned, remaining
}

// abandonIfOverdue takes the tasks of w if its verb is overdue. Otherwise it returns the
// remaining time of the verb.
func (w *worker) abandonIfOverdue(now time.Time, limit time.Duration, stop time.Time) (work abandonedWork, remaining time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.active == 0 {
		return abandonedWork{}, limit
	}
	deadline := w.begun.Add(limit)
	if !stop.IsZero() && stop.Before(deadline) {
		deadline = stop
	}
	remaining = deadline.Sub(now)
	if remaining > 0 {
		return abandonedWork{}, remaining
	}
	w.abandoned = true
	end := w.done + w.active
	return abandonedWork{w.chunk[:w.done], w.chunk[w.done:end], w.chunk[end:]}, limit
}

// abandon returns the results of a worker with an abandoned verb.
func (e *Executor) abandon(work abandonedWork) []*Task {
	first := work.hung[0]
	first.Verbs.hung++
	err := fmt.Errorf("%w in %s", ErrNoAnswer, Seconds(e.timeout))
	if !e.watchdog.stop.IsZero() {
		err = fmt.Errorf("%w before the scheduler stopped", ErrNoAnswer)
	}
	e.log.Error("verb does not return; it is abandoned", "descriptor", first.Verbs.Descriptor, "key", first.Op.Node.Key(),
		"operation", first.Op.Verb, "values", len(work.hung), "err", err)
	out := work.done
	for _, t := range work.hung { // the verb owns t until it returns
		out = append(slices.Clip(out), &Task{Op: t.Op, Verbs: t.Verbs, Index: t.Index, Owner: t.Owner, Generation: t.Generation, Err: err, Abandoned: true})
	}
	return out
}

// requeue gives the waiting tasks of abandoned workers to others. Tasks of stalled descriptors
// fail instead and are returned.
func (p *Pool) requeue(ctx context.Context, abandoned []abandonedWork) (failed []*Task) {
	if len(abandoned) == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var queue []*Task
	for _, work := range abandoned {
		queue = append(queue, work.waiting...)
	}
	queue = append(queue, p.queue...)
	p.queue = nil
	for _, t := range queue {
		t.Err = t.Verbs.Stalled()
		if t.Err != nil {
			failed = append(failed, t)
		} else {
			p.queue = append(p.queue, t)
		}
	}
	for range min(len(p.queue), len(abandoned)) {
		p.start(ctx)
	}
	return failed
}

// Stalled returns the reason why no verb may begin; nil: one may.
func (v *Verbs) Stalled() error {
	if v.hung < maxHung {
		return nil
	}
	return fmt.Errorf("%w: %d calls of %s were abandoned and still run; others begin when fewer than %d do", ErrStalled, v.hung, v.Descriptor, maxHung)
}
