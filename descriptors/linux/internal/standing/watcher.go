// Package standing keeps account of what the agent has made in the kernel, and
// notices when somebody else takes it away.
//
// A verb that has made something calls Made; one that is about to remove or
// change it calls Unmade before; one that reads what stands calls Saw. So what the kernel tells of our own doings finds
// nothing in the book. What is in the book and gone, or looks other than it
// should, was somebody else's doing. An event is only a hint, since others may have
// followed it that were not heard yet: it counts after some milliseconds, so that
// what bounces is let be, and then the kernel is asked what is so.
//
// A Watcher holds each namespace in which something stands open, and subscribes
// to it. Made, Saw, Unmade and NamespacesGone may be called from any goroutine; the
// callbacks are called on Run's, or on the caller's of NamespacesGone.
//
// What events mean is a pure function of the book and is tested as such; the rest
// is tested with the real kernel by the packages of the descriptors.
package standing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
)

// Settle is how long an event waits for another of the same thing, at least. What
// falls due a little later is judged with it: an interface goes with a burst of
// events.
const (
	Settle = 10 * time.Millisecond
	burst  = 2 * time.Millisecond
)

// Options are those of a Watcher. All are needed, but for Installation.
type Options struct {
	Spaces *netns.Set
	Log    *slog.Logger
	// Lost is called with the keys of what is gone.
	Lost func(keys []string)
	// Changed is called when interfaces look other than they should.
	Changed func()
	// Missed is called when notifications were lost: anything may be gone.
	Missed func()
	// Installation is announced in each namespace where something stands. Defaults to none.
	Installation string
	// Own follows the agent's own namespace.
	Own Follower
}

// A Follower is told all events of a namespace. Only Run's goroutine calls it.
type Follower interface {
	// Reload is called at the start, and when events were lost.
	Reload(now time.Time)
	Apply(events []kernel.Event, now time.Time)
	// Due does what was put off until now, and tells when to come back (zero: not
	// before there are events).
	Due(now time.Time) time.Time
}

// A Watcher keeps the account.
type Watcher struct {
	opts Options
	wake chan struct{} // holds a token when something is unread or fresh
	news chan news

	mu     sync.Mutex // guards what follows
	book   book
	spaces map[kernel.ID]*watched
	unread []*watched
	fresh  []Thing // to be looked at once
}

// watched is a namespace that is held open and subscribed to.
type watched struct {
	space    *netns.Space
	events   kernel.Events
	presence io.Closer // nil: it is not announced
}

func (w *watched) close() {
	if w.presence != nil {
		w.presence.Close()
	}
	w.events.Close()
	w.space.Close()
}

// news is what one subscription says.
type news struct {
	from   *watched
	events []kernel.Event
	err    error
}

// New returns a Watcher that watches once Run is called.
func New(o Options) *Watcher {
	return &Watcher{
		opts: o, wake: make(chan struct{}, 1), news: make(chan news),
		book: newBook(), spaces: map[kernel.ID]*watched{},
	}
}

// Enter has other agents of the label see that this one is about to make something in a
// namespace.
func (w *Watcher) Enter(space *netns.Space) {
	if w.opts.Installation == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.watch(space.ID) // Made reports the error
}

// Made notes that t stands, in the given space.
func (w *Watcher) Made(space *netns.Space, t Thing, e Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.note(space, t, e) && t.Sort == AnInterface { // somebody may have changed it before it was in the book
		w.doubt(t)
	}
}

// Saw notes that t was read to stand. Verbs may be at work meanwhile: what they
// said of t counts more, and what is news may have gone since, so it is looked at.
func (w *Watcher) Saw(space *netns.Space, t Thing, e Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.spaces[space.ID] != nil && w.book.things[t].Key == e.Key
	if !known && w.note(space, t, e) {
		w.doubt(t)
	}
}

func (w *Watcher) note(space *netns.Space, t Thing, e Entry) bool {
	if err := w.watch(space.ID); err != nil {
		w.opts.Log.Warn("what others remove from a network namespace will go unnoticed", "key", e.Key, "err", err)
		return false
	}
	w.book.add(t, e)
	return true
}

// doubt has t looked at in a while.
func (w *Watcher) doubt(t Thing) {
	w.fresh = append(w.fresh, t)
	w.poke()
}

// Unmade notes that t is about to be removed or changed by us.
func (w *Watcher) Unmade(t Thing) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.book.remove(t)
}

// Taken tells whether somebody put another route in the place of one that was made
// for key: whoever makes that again may take the place back.
func (w *Watcher) Taken(t Thing, key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	of, taken := w.book.taken[t]
	return taken && of == key
}

// watch subscribes to a namespace that is open.
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
	one := &watched{space: space, events: events}
	if w.opts.Installation != "" {
		if one.presence, err = space.Announce(w.opts.Installation); err != nil {
			w.opts.Log.Warn("another agent of this label may take what stands in a network namespace", "err", err)
			one.presence = nil
		}
	}
	w.spaces[ns] = one
	w.unread = append(w.unread, one)
	w.poke()
	return nil
}

func (w *Watcher) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// NamespacesGone says that namespaces have lost their names. What stands in them
// counts as gone, and they are let go.
func (w *Watcher) NamespacesGone(ids []kernel.ID) {
	w.mu.Lock()
	var lost []string
	for _, ns := range ids {
		lost = append(lost, w.book.lose(w.book.interfaces(ns))...)
		if one := w.spaces[ns]; one != nil {
			delete(w.spaces, ns)
			one.close()
		}
		w.opts.Spaces.Drop(ns)
	}
	w.mu.Unlock()
	w.lost(lost)
}

func (w *Watcher) lost(keys []string) {
	if len(keys) > 0 {
		slices.Sort(keys)
		w.opts.Lost(keys)
	}
}

// Run watches until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	own, err := w.opts.Spaces.Own()
	if err != nil {
		return fmt.Errorf("watching links: %w", err)
	}
	defer own.Close()
	w.mu.Lock()
	err = w.watch(own.ID)
	w.mu.Unlock()
	if err != nil {
		return fmt.Errorf("watching links: %w", err)
	}
	readers, ctx := errgroup.WithContext(ctx)
	defer func() { _ = readers.Wait() }()
	defer w.closeAll()
	l := loop{w: w, own: own.ID, last: map[Thing]kernel.Event{}}
	return l.run(ctx, readers)
}

// read passes on what one subscription says, until it ends.
func (w *Watcher) read(ctx context.Context, one *watched) {
	for {
		events, err := one.events.Next()
		select {
		case w.news <- news{one, events, err}:
		case <-ctx.Done():
			return
		}
		if err != nil && !errors.Is(err, kernel.ErrLost) {
			return
		}
	}
}

// unwatch gives up a subscription that has ended, unless it was given up before.
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

// release lets namespaces go in which nothing stands any more.
func (w *Watcher) release(own kernel.ID) {
	for ns, one := range w.spaces {
		if w.book.in[ns] == 0 && ns != own {
			delete(w.spaces, ns)
			one.close()
		}
	}
}

func (w *Watcher) closeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.spaces {
		one.close()
	}
	clear(w.spaces)
}
