package drift

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

// A loop is the state of Run's goroutine. No other goroutine accesses it.
//
// An event passes these steps:
//
//	receive   queue its object; keep the last event per object
//	checkDue  after Debounce, compare the last event with the record; suspect
//	          the routes that the kernel may have removed silently
//	verify    read the suspects from the kernel; report confirmed losses
type loop struct {
	w    *Watcher
	own  kernel.ID
	back time.Time // next deadline of the follower; zero: none

	last  map[Object]kernel.Event // last event of each object in queue
	queue []waiting               // ordered by due
}

// waiting is an object with an event that is checked at the due time.
type waiting struct {
	object Object
	due    time.Time
}

// run handles notifications, namespaces and timers on one goroutine, until ctx ends.
func (l *loop) run(ctx context.Context, readers *errgroup.Group) error {
	l.w.opts.Own.Reload(time.Now())
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.w.wake.C():
			l.wake(ctx, readers, time.Now())
		case n := <-l.w.notifications:
			l.receive(n, time.Now())
		case <-timer.C:
			l.checkDue(time.Now())
		}
		timer.Stop()
		if next := l.next(); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// receive queues the objects of a notification. Events of the own namespace go
// to the follower at once.
func (l *loop) receive(n notification, now time.Time) {
	if n.err != nil {
		l.receiveError(n, now)
		return
	}
	ns := n.from.space.ID
	if ns == l.own {
		l.w.opts.Own.Apply(n.events, now)
		l.back = l.w.opts.Own.Due(now)
	}
	freed := false
	for _, e := range n.events {
		if _, rule := e.What.(kernel.VRFRule); rule { // several rules change at once, so the last event says nothing
			for _, o := range l.w.vrfs(ns) {
				l.enqueue(o, o.gone(), now)
			}
			continue
		}
		if o := objectOf(ns, e.What); e.Gone && o.Kind == KindInterface {
			l.w.noteLeft(o, e.Moved)
			l.w.gone(ns, o.Link)
		}
		matters, free := l.w.noteEvent(ns, e)
		freed = freed || free
		if matters {
			l.enqueue(objectOf(ns, e.What), e, now)
		}
		if o, ok := flushed(ns, e); ok {
			l.enqueue(o, e, now)
		}
		if o, ok := disconnected(ns, e); ok && l.w.hasAddress(o) {
			l.enqueue(o, e, now)
		}
	}
	if freed {
		l.w.opts.Freed()
	}
}

// enqueue schedules a check of o. Later events of o do not move its deadline,
// so an object that changes all the time is still checked.
func (l *loop) enqueue(o Object, e kernel.Event, now time.Time) {
	before, waits := l.last[o]
	if !waits {
		l.queue = append(l.queue, waiting{o, now.Add(Debounce + burst)})
	}
	e.Features = e.Features || before.Features // the later message does not tell them either
	l.last[o] = e
}

// wake starts a reader for each new subscription and queues the objects that
// need a first check. These count as gone until the kernel was read, so that
// the check never skips the read.
func (l *loop) wake(ctx context.Context, readers *errgroup.Group, now time.Time) {
	l.w.mu.Lock()
	unread, fresh := l.w.unread, l.w.fresh
	l.w.unread, l.w.fresh = nil, nil
	l.w.mu.Unlock()
	for _, one := range unread {
		readers.Go(func() error { l.w.forward(ctx, one); return nil })
	}
	for _, o := range fresh {
		l.enqueue(o, o.gone(), now)
	}
}

// receiveError handles lost events and ended subscriptions. A subscription
// usually ends because its namespace was closed; that is not reported.
func (l *loop) receiveError(n notification, now time.Time) {
	if !errors.Is(n.err, kernel.ErrLost) && !l.w.unwatch(n.from) {
		return
	}
	l.w.opts.Log.Warn("reading the state of the kernel again", "err", n.err)
	if n.from.space.ID == l.own {
		l.w.opts.Own.Reload(now)
	}
	l.forgetVanished()
	l.w.opts.Missed()
}

// forgetVanished removes vanished objects from the record before Missed makes
// the scheduler read them again. Otherwise a stale event could delete an object
// that the scheduler has re-created meanwhile.
func (l *loop) forgetVanished() {
	l.w.mu.Lock()
	generations := make(map[Object]uint64, len(l.w.record.objects))
	for o, e := range l.w.record.objects {
		generations[o] = e.generation
	}
	l.w.mu.Unlock()
	actual, err := readState(l.w.opts.Spaces, slices.Collect(maps.Keys(generations)))
	if err != nil {
		l.w.opts.Log.Warn("reading the state of the kernel again", "err", err)
		return
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	for o, generation := range generations {
		if l.w.record.generation(o) == generation {
			l.w.record.confirm(o, actual[o])
		}
	}
}

// next returns the next deadline; zero means that there is none.
func (l *loop) next() time.Time {
	next := l.back
	if len(l.queue) > 0 && (next.IsZero() || l.queue[0].due.Before(next)) {
		next = l.queue[0].due
	}
	return next
}

// checkDue checks the objects whose deadline has passed, interfaces first:
// a lost interface takes the objects on it along.
func (l *loop) checkDue(now time.Time) {
	l.back = l.w.opts.Own.Due(now)
	due := l.takeDue(now.Add(burst))
	slices.SortStableFunc(due, func(a, b Object) int { return cmp.Compare(a.Kind, b.Kind) })
	var suspects, disconnected []Object
	generations := map[Object]uint64{}
	suspect := func(o Object) {
		if _, twice := generations[o]; !twice {
			suspects = append(suspects, o)
			generations[o] = l.w.record.generation(o)
		}
	}
	l.w.mu.Lock()
	for _, o := range due {
		if o.Kind == kindConnected {
			disconnected = append(disconnected, o)
		} else if o.Kind == kindSilentRoutes {
			l.w.record.routes(o, suspect)
		} else if o.Kind == KindRoute || !l.w.record.check(o, l.last[o]).clean() {
			suspect(o)
		}
		delete(l.last, o)
	}
	l.w.releaseAllUnused()
	l.w.mu.Unlock()
	// Addresses first: routes need the connected route of their gateway.
	l.reportBare(disconnected)
	if len(suspects) > 0 {
		l.verify(suspects, generations)
	}
}

// reportBare reports the recorded addresses in these networks that lack a route that the kernel adds with them. The verb
// that creates them adds it. A link that is down has none, and gets them when it is up again.
func (l *loop) reportBare(networks []Object) {
	var lost []string
	read := map[kernel.ID]bool{}
	for _, o := range networks {
		space, ok := l.w.opts.Spaces.ByID(o.NS)
		if !ok || read[o.NS] {
			continue
		}
		read[o.NS] = true
		bare, err := space.Bare()
		space.Close()
		if err != nil {
			l.w.opts.Log.Warn("cannot read routes to the networks of addresses; removed ones stay so until the next resync", "err", err)
			continue
		}
		l.w.mu.Lock()
		for _, a := range bare {
			lost = append(lost, l.w.record.removeLost([]Object{Address(o.NS, a)})...)
		}
		l.w.mu.Unlock()
	}
	l.w.lost(lost)
}

// verify reads the suspects from the kernel and reports the confirmed losses
// and changes. The kernel is read without the mutex held, so an object may be
// re-created meanwhile; its generation differs then, and it is skipped.
func (l *loop) verify(suspects []Object, generations map[Object]uint64) {
	actual, err := readState(l.w.opts.Spaces, suspects)
	if err != nil {
		l.w.opts.Log.Warn("reading the state of the kernel again", "err", err)
		l.w.opts.Missed()
		return
	}
	var lost []string
	var changed bool
	var unmarked []Object
	l.w.mu.Lock()
	for _, o := range suspects {
		if l.w.record.generation(o) != generations[o] {
			continue
		}
		key := l.w.record.key(o)
		keys, other := l.w.record.confirm(o, actual[o])
		if o.Kind == KindInterface && len(keys) > 0 {
			l.w.noteLost(o, key)
		}
		lost = append(lost, keys...)
		changed = changed || other.changed
		if other.unmarked {
			unmarked = append(unmarked, o)
		}
	}
	l.w.releaseAllUnused()
	l.w.mu.Unlock()
	l.w.lost(lost)
	for _, o := range unmarked {
		l.w.unmarked(o.NS, o.Link)
	}
	if changed {
		l.w.opts.Changed()
	}
}

// takeDue removes the objects from the queue that are due until the given time.
// It takes none unless the first was due burst earlier: one check covers a burst.
func (l *loop) takeDue(until time.Time) (due []Object) {
	if len(l.queue) == 0 || l.queue[0].due.After(until.Add(-burst)) {
		return nil
	}
	n := 0
	for n < len(l.queue) && !l.queue[n].due.After(until) {
		due = append(due, l.queue[n].object)
		n++
	}
	l.queue = slices.Delete(l.queue, 0, n)
	return due
}
