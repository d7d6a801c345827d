package standing

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
)

// loop is the state of Run's goroutine.
type loop struct {
	w    *Watcher
	own  kernel.ID
	back time.Time // when the follower has something to do; zero: not of itself

	last  map[Thing]kernel.Event // of each thing in queue
	queue []waiting              // in the order of due
}

// waiting is a thing of which something was heard, and when that counts.
type waiting struct {
	thing Thing
	due   time.Time
}

func (l *loop) run(ctx context.Context, readers *errgroup.Group) error {
	l.w.opts.Own.Reload(time.Now())
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.w.wake:
			l.awake(ctx, readers, time.Now())
		case n := <-l.w.news:
			l.heard(n, time.Now())
		case <-timer.C:
			l.settle(time.Now())
		}
		timer.Stop()
		if next := l.next(); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

func (l *loop) heard(n news, now time.Time) {
	if n.err != nil {
		l.failed(n, now)
		return
	}
	ns := n.from.space.ID
	if ns == l.own {
		l.w.opts.Own.Apply(n.events, now)
		l.back = l.w.opts.Own.Due(now)
	}
	for _, e := range n.events {
		l.hint(thingOf(ns, e.What), e, now)
	}
}

// hint has a thing judged in a while.
func (l *loop) hint(t Thing, e kernel.Event, now time.Time) {
	if _, waits := l.last[t]; !waits {
		l.queue = append(l.queue, waiting{t, now.Add(Settle + burst)})
	}
	l.last[t] = e
}

// awake begins to read new subscriptions, and doubts what is fresh.
func (l *loop) awake(ctx context.Context, readers *errgroup.Group, now time.Time) {
	l.w.mu.Lock()
	unread, fresh := l.w.unread, l.w.fresh
	l.w.unread, l.w.fresh = nil, nil
	l.w.mu.Unlock()
	for _, one := range unread {
		readers.Go(func() error { l.w.read(ctx, one); return nil })
	}
	for _, t := range fresh {
		l.hint(t, t.gone(), now)
	}
}

// failed: some events were lost, or the subscription has ended, mostly because
// the namespace was let go.
func (l *loop) failed(n news, now time.Time) {
	if !errors.Is(n.err, kernel.ErrLost) && !l.w.unwatch(n.from) {
		return
	}
	l.w.opts.Log.Warn("reading again what stands in the kernel", "err", n.err)
	if n.from.space.ID == l.own {
		l.w.opts.Own.Reload(now)
	}
	l.forget()
	l.w.opts.Missed()
}

// forget takes out of the book what is gone. Whoever reads again what stands will
// notice too: what was heard of it before is not to undo what is made in its place.
func (l *loop) forget() {
	l.w.mu.Lock()
	made := make(map[Thing]uint64, len(l.w.book.things))
	for t, e := range l.w.book.things {
		made[t] = e.made
	}
	l.w.mu.Unlock()
	seen, err := look(l.w.opts.Spaces, slices.Collect(maps.Keys(made)))
	if err != nil {
		l.w.opts.Log.Warn("reading again what stands in the kernel", "err", err)
		return
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	for t, was := range made {
		if l.w.book.things[t].made == was {
			l.w.book.convict(t, seen[t])
		}
	}
}

// next is when there is something to do, if nothing is heard before; zero: never.
func (l *loop) next() time.Time {
	next := l.back
	if len(l.queue) > 0 && (next.IsZero() || l.queue[0].due.Before(next)) {
		next = l.queue[0].due
	}
	return next
}

// settle judges what has waited long enough, interfaces before what is on them.
func (l *loop) settle(now time.Time) {
	l.back = l.w.opts.Own.Due(now)
	due := l.take(now.Add(burst))
	slices.SortStableFunc(due, func(a, b Thing) int { return cmp.Compare(a.Sort, b.Sort) })
	var suspects []Thing
	made := map[Thing]uint64{}
	l.w.mu.Lock()
	for _, t := range due {
		if !l.w.book.judge(t, l.last[t]).fine() {
			suspects = append(suspects, t)
			made[t] = l.w.book.things[t].made
		}
		delete(l.last, t)
	}
	l.w.release(l.own)
	l.w.mu.Unlock()
	if len(suspects) > 0 {
		l.convict(suspects, made)
	}
}

// convict asks the kernel whether what is suspected is so.
func (l *loop) convict(suspects []Thing, made map[Thing]uint64) {
	seen, err := look(l.w.opts.Spaces, suspects)
	if err != nil {
		l.w.opts.Log.Warn("reading again what stands in the kernel", "err", err)
		l.w.opts.Missed()
		return
	}
	var lost []string
	var changed bool
	l.w.mu.Lock()
	for _, t := range suspects {
		if l.w.book.things[t].made != made[t] {
			continue // it was made again meanwhile
		}
		keys, other := l.w.book.convict(t, seen[t])
		lost = append(lost, keys...)
		changed = changed || other
	}
	l.w.release(l.own)
	l.w.mu.Unlock()
	l.w.lost(lost)
	if changed {
		l.w.opts.Changed()
	}
}

// take takes out of the queue what is due, unless nothing was due at the burst
// before that.
func (l *loop) take(until time.Time) (due []Thing) {
	if len(l.queue) == 0 || l.queue[0].due.After(until.Add(-burst)) {
		return nil
	}
	n := 0
	for n < len(l.queue) && !l.queue[n].due.After(until) {
		due = append(due, l.queue[n].thing)
		n++
	}
	l.queue = slices.Delete(l.queue, 0, n)
	return due
}
