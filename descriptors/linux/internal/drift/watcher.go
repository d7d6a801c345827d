// Package drift records the objects that the agent has created in the kernel, and detects
// when another program removes or changes them.
//
//	caller                                calls
//	a verb before it creates an object    Clock
//	a verb that has created an object     Created
//	a verb before it changes or removes   Forget
//	Retrieve, for each object it finds    Retrieved
//	Retrieve, when it has found all       Unseen
//
// The record therefore never contains an object that the agent itself is changing, and
// events about the agent's own changes have no effect. A recorded object that vanishes or
// differs was changed by another program.
//
// An event is only a hint, because later events may not have been received yet. The
// Watcher waits some milliseconds, so that short flaps are ignored. Then it reads the
// actual state from the kernel and reports confirmed losses only.
//
// A Watcher keeps each namespace open that has recorded objects, and subscribes to its
// notifications. Created, Retrieved, Unseen, Forget and NamespacesGone may be called by any
// goroutine. Callbacks run on the goroutine of Run, or on the caller's goroutine of Unseen and
// NamespacesGone.
//
// The comparison of events with the record is pure and has a table test. The packages of
// the descriptors test the rest with the real kernel.
package drift

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/wake"
)

// Debounce is the minimum delay between an event and its check. Objects that are due
// within burst are checked together, since the removal of an interface causes a burst of
// events.
const (
	Debounce = 10 * time.Millisecond
	burst    = 2 * time.Millisecond
)

// Options configure a Watcher. All are required except Installation and Freed.
type Options struct {
	Spaces *netns.Set
	Log    *slog.Logger
	// Lost is called with the sorted keys of vanished objects.
	Lost func(keys []string)
	// Changed is called when attributes of interfaces differ from the record, and when another host has an address.
	Changed func()
	// Missed is called when notifications were lost, so any object may have vanished.
	Missed func()
	// Freed is called when something has gone that a failed value waits for; see Await. It must
	// not wait for the scheduler. Defaults to none.
	Freed func()
	// Installation is announced in each namespace with recorded objects, so that
	// another agent with the same label leaves them alone. Defaults to none.
	Installation string
	// Own receives the events of the agent's own namespace.
	Own Follower
}

// A Follower receives all events of a namespace. Only Run's goroutine calls it.
type Follower interface {
	// Reload is called at the start, and when events were lost.
	Reload(now time.Time)
	// Apply is called with each batch of events, in the order of the changes.
	Apply(events []kernel.Event, now time.Time)
	// Due performs the work that was deferred until now. It returns the next
	// deadline, or zero if there is none until the next event.
	Due(now time.Time) time.Time
}

// A Watcher holds the record and the subscriptions. New returns one.
type Watcher struct {
	opts          Options
	wake          wake.Signal // set when unread or fresh is not empty
	notifications chan notification
	presences     presences
	unmarked      func(ns kernel.ID, link int)
	gone          func(ns kernel.ID, link int)

	mu     sync.Mutex // guards the fields below
	own    kernel.ID  // the agent's own namespace; zero before Run
	record record
	spaces map[kernel.ID]*watched
	unread []*watched // subscriptions without a reader yet
	fresh  []Object   // objects that need a first check
	// lostAs are the keys of lost links: the message that says how a link has left may come after its loss was seen.
	lostAs map[Object]string
	// left are the keys of the links of which that message has come: whether another program has moved them to another
	// namespace.
	left map[string]bool
}

// watched is a namespace with a subscription. It keeps the namespace open.
type watched struct {
	space  *netns.Space
	events kernel.Events
	leave  func() // ends the announcement of the installation
}

// close ends the reader of the namespace.
func (w *watched) close() {
	w.leave()
	w.events.Close()
	w.space.Close()
}

// A notification is a batch of events, or an error, of one subscription.
type notification struct {
	from   *watched
	events []kernel.Event
	err    error
}

// New returns a Watcher. It records at once, and detects changes while Run runs.
func New(o Options) *Watcher {
	if o.Freed == nil {
		o.Freed = func() {}
	}
	return &Watcher{
		opts: o, unmarked: func(kernel.ID, int) {}, gone: func(kernel.ID, int) {}, wake: wake.New(), notifications: make(chan notification),
		presences: presences{installation: o.Installation, log: o.Log, open: map[kernel.ID]*presence{}},
		record:    newRecord(), spaces: map[kernel.ID]*watched{}, left: map[string]bool{}, lostAs: map[Object]string{},
	}
}

// OnUnmarked has f called for each recorded link whose alias differs from the record. Call it before Run.
func (w *Watcher) OnUnmarked(f func(ns kernel.ID, link int)) { w.unmarked = f }

// OnGone has f called for each link of a watched namespace that is gone, recorded or not, and with 0 for each namespace that is:
// another one may get its number. Call it before Run.
func (w *Watcher) OnGone(f func(ns kernel.ID, link int)) { w.gone = f }

// Announce makes the installation visible to other agents in a namespace until leave is called.
// Verbs call it before they create the first object there. A namespace with recorded objects is
// announced anyway.
func (w *Watcher) Announce(space *netns.Space) (leave func()) { return w.presences.announce(space) }

// Created records that the agent has created t in the given namespace, in a verb that began when Clock returned began.
// What another program may have changed before it was recorded is checked.
func (w *Watcher) Created(space *netns.Space, t Object, e Entry, began uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.record.doubted, t)
	if t.Kind == KindInterface {
		delete(w.left, e.Key)
		maps.DeleteFunc(w.lostAs, func(_ Object, key string) bool { return key == e.Key })
	}
	if w.note(space, t, e) {
		w.recheck(w.record.missed(t, e, began)...)
	}
}

// noteLeft notes that a link which is or was recorded has left its namespace, and whether it is in another one now.
func (w *Watcher) noteLeft(o Object, moved bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if key := cmp.Or(w.record.key(o), w.lostAs[o]); key != "" {
		w.left[key] = moved
	}
}

// hasAddress reports whether an address in the network of o is recorded.
func (w *Watcher) hasAddress(o Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range w.record.in(o) {
		return true
	}
	return false
}

// vrfs returns the recorded VRFs of a namespace, by what they need of its rules.
func (w *Watcher) vrfs(ns kernel.ID) []Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.record.all(ns, KindVRFRules)
}

// noteEvent takes in an event when it comes. matters: it has to be checked. freed: it has freed something
// that a value waits for.
func (w *Watcher) noteEvent(ns kernel.ID, e kernel.Event) (matters, freed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	matters = true
	if _, route := e.What.(kernel.Route); route {
		matters = w.record.note(objectOf(ns, e.What), e)
	}
	w.record.remember(ns, e)
	return matters, w.freed(ns, e)
}

const (
	// mostLost bounds the links that lostAs remembers, and the keys in left.
	mostLost = 4096
	// mostLate is how long after the loss of a link was seen the kernel's message is expected that says how it has left. The kernel
	// sends it before; on a busy machine it is read later.
	mostLate = 5 * time.Second
)

// noteLost notes that the link of a key was lost. The namespace is watched until the message has come. The caller holds mu.
func (w *Watcher) noteLost(o Object, key string) {
	if len(w.lostAs) >= mostLost || len(w.left) >= mostLost {
		clear(w.lostAs)
		clear(w.left)
	}
	w.lostAs[o] = key
	time.AfterFunc(mostLate, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if _, told := w.left[key]; !told && w.lostAs[o] == key {
			w.left[key] = false
		}
		w.releaseUnused(o.NS)
	})
}

// untold reports that the message is still to come about a lost link that is selects. The caller holds mu.
func (w *Watcher) untold(is func(o Object, key string) bool) bool {
	for o, key := range w.lostAs {
		if _, told := w.left[key]; !told && w.spaces[o.NS] != nil && is(o, key) {
			return true
		}
	}
	return false
}

// MovedAway reports whether the link that was last recorded for key was moved to another namespace by another
// program, so that it is not lost. It first waits for the kernel's messages about what the caller has just seen.
func (w *Watcher) MovedAway(key string) bool {
	<-time.After(2 * Debounce)
	for {
		w.mu.Lock()
		moved, waits := w.left[key], w.untold(func(_ Object, lost string) bool { return lost == key })
		w.mu.Unlock()
		if !waits {
			return moved
		}
		<-time.After(Debounce)
	}
}

// Retrieved records that Retrieve has found t. Verbs may run at the same time,
// so an entry that they recorded is kept. A new entry is checked, since t may
// have vanished after it was read.
func (w *Watcher) Retrieved(space *netns.Space, t Object, e Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.record.objects[t]; one != nil && one.Key == e.Key && w.spaces[space.ID] != nil {
		w.record.saw(one)
	} else if w.note(space, t, e) {
		w.recheck(t)
	}
}

// Clock returns the time for Created and Unseen, in a count of its own.
func (w *Watcher) Clock() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.record.clock
}

// Unseen removes the interfaces from the record that were neither created nor retrieved since
// the given time, with the objects on them, and reports them as lost. A Retrieve calls it after it has found all: nobody
// tells when the process ends that a namespace belongs to, and the record would keep its links
// for as long as the agent runs. A Retrieve may be asked for other values, and events about what has left the record say nothing.
func (w *Watcher) Unseen(since uint64) {
	w.mu.Lock()
	var lost []string
	for _, o := range w.record.unseen(since) {
		key := w.record.key(o)
		if keys := w.record.removeLost([]Object{o}); len(keys) > 0 {
			w.noteLost(o, key)
			lost = append(lost, keys...)
		}
		w.releaseUnused(o.NS)
	}
	w.mu.Unlock()
	w.lost(lost)
}

// note records t and reports success. Without a subscription it records
// nothing, because a record that is not updated would report false losses.
func (w *Watcher) note(space *netns.Space, t Object, e Entry) bool {
	if err := w.watch(space.ID); err != nil {
		w.opts.Log.Warn("cannot watch a network namespace; removals by others will not be noticed", "key", e.Key, "err", err)
		return false
	}
	w.record.add(t, e)
	return true
}

// recheck queues a check of objects.
func (w *Watcher) recheck(objects ...Object) {
	if len(objects) > 0 {
		w.fresh = append(w.fresh, objects...)
		w.wake.Set()
	}
}

// Forget removes t from the record. Verbs call it before they change or remove t.
func (w *Watcher) Forget(t Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.record.remove(t)
	delete(w.record.doubted, t)
}

// ForgetAs is Forget, unless t was recorded for another key since.
func (w *Watcher) ForgetAs(t Object, key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.record.key(t) == key {
		w.record.remove(t)
	}
}

// Renamed says that what was created for one key belongs to another key from now on.
func (w *Watcher) Renamed(from, to string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.record.newest[from]; one != nil {
		delete(w.record.newest, from)
		one.Key, w.record.newest[to] = to, one
	}
}

// Lost reports whether the route or neighbour in the place t that was created for key was lost, and how, or is being
// lost. The descriptor may then add a route beside the others there, and remove what has replaced it.
func (w *Watcher) Lost(t Object, key string) (Loss, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.record.loss(t, key)
}

// Await has Freed called once, when t goes or changes. A verb calls it after it has failed because something
// of another program, or of another value, is there, or because the MTU of the link t is too small for IPv6.
func (w *Watcher) Await(t Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watch(t.NS) == nil {
		w.record.awaited[t] = true
	}
}

// Left says that the agent itself has removed t. The kernel does not report that.
func (w *Watcher) Left(t Object) {
	w.mu.Lock()
	awaited := w.record.awaited[t]
	delete(w.record.awaited, t)
	w.mu.Unlock()
	if awaited {
		w.opts.Freed()
	}
}

// Doubt says that the kernel does not use the address t, since another host has it. The doubt ends when the kernel
// has tested it again and uses it; Freed is called then. It is also called when the address goes from another link that
// is watched, so that it is tested again. Forget and the loss of the link end the doubt too.
func (w *Watcher) Doubt(t Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.record.doubted[t] = doubt{tested: time.Now()}
}

// testPause is the least time between two tests of an address, during which it is in no state that people can see.
const testPause = 10 * time.Second

// TestAgain reports whether the kernel is to test a doubted address again now: from time to time, and at once when it
// has gone from another link. The caller then adds it again.
func (w *Watcher) TestAgain(t Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	one, doubted := w.record.doubted[t]
	now := time.Now()
	if !doubted || !one.free && now.Sub(one.tested) < testPause {
		return false
	}
	w.record.doubted[t] = doubt{tested: now}
	return true
}

// Doubted reports whether the kernel has not used the address t since Doubt.
func (w *Watcher) Doubted(t Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, doubted := w.record.doubted[t]
	return doubted
}

// freed ends the waits for what an event has freed, and reports whether there were any.
func (w *Watcher) freed(ns kernel.ID, e kernel.Event) bool {
	if a, address := e.What.(kernel.Addr); address && w.record.settles(objectOf(ns, a), a, e.Gone) {
		return true
	}
	if len(w.record.awaited) == 0 {
		return false
	}
	before, o := len(w.record.awaited), objectOf(ns, e.What)
	l, link := e.What.(kernel.Link)
	if e.Gone || e.Replaces || link && l.MTU >= kernel.MinMTUIPv6 {
		delete(w.record.awaited, o)
	}
	// The kernel removes routes without a word.
	if _, silent := flushed(ns, e); silent {
		maps.DeleteFunc(w.record.awaited, func(o Object, _ bool) bool { return o.NS == ns })
	}
	return len(w.record.awaited) < before
}

// watch subscribes to an open namespace, if it is not watched yet.
func (w *Watcher) watch(ns kernel.ID) error {
	if w.spaces[ns] != nil {
		return nil
	}
	space, ok := w.opts.Spaces.ByID(ns)
	if !ok {
		return netns.ErrNotFound
	}
	events, err := space.Subscribe()
	if err != nil {
		space.Close()
		return err
	}
	one := &watched{space: space, events: events, leave: w.Announce(space)}
	w.spaces[ns] = one
	w.unread = append(w.unread, one)
	w.wake.Set()
	return nil
}

// NamespacesGone reports that namespaces have lost their names. Their objects
// count as lost, and the namespaces are closed.
func (w *Watcher) NamespacesGone(ids []kernel.ID) {
	w.mu.Lock()
	var lost []string
	for _, ns := range ids {
		maps.DeleteFunc(w.record.awaited, func(o Object, _ bool) bool { return o.NS == ns })
		lost = append(lost, w.record.removeLost(w.record.all(ns, KindInterface))...)
		if one := w.spaces[ns]; one != nil {
			delete(w.spaces, ns)
			one.close()
		}
		w.opts.Spaces.Drop(ns)
	}
	w.mu.Unlock()
	for _, ns := range ids {
		w.gone(ns, 0)
	}
	w.lost(lost)
}

// lost reports lost keys. The mutex must not be held, since callbacks may call
// the Watcher.
func (w *Watcher) lost(keys []string) {
	if len(keys) > 0 {
		slices.Sort(keys)
		w.opts.Lost(keys)
	}
}

// Run detects changes until ctx ends. It fails only if the agent's own namespace
// cannot be watched.
func (w *Watcher) Run(ctx context.Context) error {
	own, err := w.opts.Spaces.Own()
	if err != nil {
		return fmt.Errorf("watching links: %w", err)
	}
	defer own.Close()
	w.mu.Lock()
	w.own = own.ID
	err = w.watch(own.ID)
	w.mu.Unlock()
	if err != nil {
		return fmt.Errorf("watching links: %w", err)
	}
	readers, ctx := errgroup.WithContext(ctx)
	defer func() { _ = readers.Wait() }()
	defer w.closeAll()
	l := loop{w: w, own: own.ID, last: map[Object]kernel.Event{}}
	return l.run(ctx, readers)
}

// forward passes the notifications of one subscription to the loop until it ends.
func (w *Watcher) forward(ctx context.Context, one *watched) {
	for {
		events, err := one.events.Next()
		select {
		case w.notifications <- notification{one, events, err}:
		case <-ctx.Done():
			return
		}
		if err != nil && !errors.Is(err, kernel.ErrLost) {
			return
		}
	}
}

// unwatch closes a subscription that has ended. It reports false if the
// subscription was closed before.
func (w *Watcher) unwatch(one *watched) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.spaces[one.space.ID] != one {
		return false
	}
	delete(w.spaces, one.space.ID)
	one.close()
	return true
}

// releaseAllUnused closes the namespaces without recorded objects, except the own one. An
// open namespace would outlive its deletion.
func (w *Watcher) releaseAllUnused() {
	for ns := range w.spaces {
		w.releaseUnused(ns)
	}
}

// releaseUnused is releaseAllUnused for one namespace.
func (w *Watcher) releaseUnused(ns kernel.ID) {
	inside := func(o Object, _ string) bool { return o.NS == ns }
	if one := w.spaces[ns]; one != nil && w.record.count[ns] == 0 && ns != w.own && !w.record.awaits(ns) && !w.untold(inside) {
		delete(w.spaces, ns)
		one.close()
	}
}

// closeAll ends all subscriptions, and with them the readers.
func (w *Watcher) closeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.spaces {
		one.close()
	}
	clear(w.spaces)
}
