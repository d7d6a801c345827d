package kvdbsync

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/keyplane/keyplane/internal/wake"
)

// Options configure a Source. Name and Connector are required.
type Options struct {
	Name      string // unique; in logs and in each Change, such as "etcd"
	Connector Connector

	// Root is cut off all keys, such as "/vnf-agent/vpp1/". Defaults to nothing.
	Root string
	// Prefix is the watched prefix below Root, such as "config/". Defaults to all of Root.
	Prefix string

	// After a failure, a watch begins again after a random time below a bound. The bound
	// starts at MinBackoff and doubles with each failure up to MaxBackoff. While the store
	// does not answer, it stays below one second for as long as MaxBackoff. It starts over
	// after a watch that was synced. If that happens more than ten times in a row within
	// MaxBackoff, it starts over only once in ten times MaxBackoff. So a store that breaks
	// after each listing is not listed all the time. Default to 100 ms and 30 s.
	MinBackoff, MaxBackoff time.Duration
	// AntiEntropy is the period, give or take a quarter, of listings that detect changes
	// which the watch has lost. Defaults to 10 minutes; negative: never.
	AntiEntropy time.Duration
	// Grace is the time that the watch may need to deliver a change that such a listing
	// shows. Defaults to 5 seconds.
	Grace time.Duration

	Bounds Bounds // of the store's content

	// Browser names the keys of the store beside the watched ones. After each listing the
	// source warns once about each folder of them. Defaults to none.
	Browser Browser
	// Known are folders and keys below Root that are not read and not warned about, such as
	// "config-status/". Defaults to none.
	Known []string

	// Decode decodes the events with a value that change the mirror, before the consumer can
	// take them; those of the first listing while the rest is listed. So the consumer, which
	// has several sources, does not wait for the large values of one. Its result is
	// Event.Decoded; that is nil where too many bytes were not taken yet. Several goroutines
	// call it. Defaults to none.
	Decode func(Event) any

	// Listed is called, on the goroutine of Run, after each listing of a watch but the first: the store
	// may be an older one now, or may have lost changes. Whoever keeps other keys there then compares
	// them. It must not block. Defaults to doing nothing.
	Listed func()

	// Withhold returns why nothing may be taken from the source now, although the store answers; nil: it may. It is asked
	// before each Take, and must not block. When the answer may have become nil, call Recheck. Defaults to nil.
	Withhold func() error

	Log *slog.Logger // Defaults to discarding
}

// withDefaults returns the options with the documented defaults.
func (o Options) withDefaults() Options {
	if o.MinBackoff <= 0 {
		o.MinBackoff = 100 * time.Millisecond
	}
	if o.MaxBackoff <= 0 {
		o.MaxBackoff = 30 * time.Second
	}
	if o.AntiEntropy == 0 {
		o.AntiEntropy = 10 * time.Minute
	}
	if o.Grace <= 0 {
		o.Grace = 5 * time.Second
	}
	o.Bounds = o.Bounds.WithDefaults()
	if o.Listed == nil {
		o.Listed = func() {}
	}
	if o.Withhold == nil {
		o.Withhold = func() error { return nil }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// A Change is everything that changed since the Change before it.
type Change struct {
	Source string
	// Events has the newest event of each key, with Root cut off. A nil Value without Err
	// means that the key is deleted.
	Events []Event
	Rev    int64 // the store's revision at this change; 0 if it has none
	// Synced says that the mirror has been complete at least once.
	Synced bool
	// Resynced says that this change contains a complete listing of the store, or that a
	// listing has confirmed the mirror: at the first sync, after a gap, or by anti-
	// entropy.
	Resynced bool
	// Listing is the newest of these listings; only with Resynced.
	Listing Listing
	// Distrust is the reason why the absent keys in Events may still be wanted. Since the
	// last Change, a listing read another data set (ErrOtherStore) or an older one
	// (ErrWentBack), or the store lost keys by itself (ErrLostKeys). nil means that only
	// the number of absent keys may raise doubt.
	Distrust error
	// Problems are the present errors in the store's content that belong to no key.
	Problems []error
}

// A Source is one configured connector with a mirror of its store. Run drives it, and one
// consumer takes changes. Any goroutine may ask for its health.
//
// The consumer pulls. Changes that it has not taken are merged key by key, so memory is
// bounded by the number of keys. It always takes all changes, so changes that the store
// made at once stay together. For the same reason a listing has no effect until it is
// complete.
type Source struct {
	o      Options
	prefix string // Root and Prefix
	ready  wake.Signal
	relist wake.Signal
	health health
	places *places         // for keys
	warned map[string]bool // names beside the watched keys; owned by the goroutine of check

	mu          sync.Mutex // guards the fields below
	mirror      *mirror
	rev         int64
	synced      bool
	listing     Listing // the newest complete one
	resynced    bool    // since the last Take
	distrust    error   // since the last Take
	problems    []error
	ignored     ignored
	crowded     bool          // keys were ignored because there was no room
	unannounced bool          // Take has something besides pending events
	decoded     int64         // bytes of values that predecode has decoded since the last Take
	came        time.Time     // time of the oldest pending event; zero: none is pending
	waited      time.Duration // age of the oldest pending event at the last Take
}

// NewSource returns a Source that does nothing until it is run.
func NewSource(o Options) *Source {
	s := &Source{
		o:      o.withDefaults(),
		prefix: o.Root + o.Prefix,
		ready:  wake.New(),
		relist: wake.New(),
		mirror: newMirror(),
		places: o.Bounds.Room.share(),
		warned: map[string]bool{},
	}
	s.health.begin(o.Name)
	return s
}

// Ready receives a token when Take may have something.
func (s *Source) Ready() <-chan struct{} { return s.ready.C() }

// Take returns everything that changed since the last Take. It returns false if nothing
// changed, or if the changes are withheld.
func (s *Source) Take() (Change, bool) {
	if s.o.Withhold() != nil {
		return Change{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.mirror.take()
	s.decoded = 0
	if !s.came.IsZero() {
		s.waited, s.came = s.lag(), time.Time{}
	}
	if len(events) == 0 && !s.unannounced {
		return Change{}, false
	}
	c := Change{
		Source: s.o.Name, Events: events, Rev: s.rev,
		Synced: s.synced, Resynced: s.resynced, Distrust: s.distrust, Problems: s.allProblems(),
	}
	if c.Resynced {
		c.Listing = s.listing
	}
	s.resynced, s.distrust, s.unannounced = false, nil, false
	return c, true
}

// Relist requests an anti-entropy listing now. A Change with Resynced follows when it is
// complete and the watch has delivered all that the listing shows. While the store is not
// synced, the next sync replaces it.
func (s *Source) Relist() {
	s.relist.Set()
}

// Withheld returns why nothing may be taken or applied now, although the store answers; nil: it may. See Options.Withhold.
func (s *Source) Withheld() error { return s.o.Withhold() }

// Recheck wakes the consumer, because changes that were withheld may be taken now.
func (s *Source) Recheck() { s.signal() }

// Health returns the present state.
func (s *Source) Health() Health {
	h := s.health.get()
	if h.State == Syncing || h.State == Synced {
		if why := s.o.Withhold(); why != nil {
			h.State, h.Err = Withheld, why
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.Waiting, h.Lag, h.Waited = s.mirror.waiting(), s.lag(), s.waited
	return h
}

// lag returns the age of the oldest pending event. The caller holds mu.
func (s *Source) lag() time.Duration {
	if s.came.IsZero() {
		return 0
	}
	return time.Since(s.came)
}

// clock records since when events are pending. The caller holds mu.
func (s *Source) clock() {
	switch {
	case s.mirror.waiting() == 0:
		s.came = time.Time{}
	case s.came.IsZero():
		s.came = time.Now()
	}
}

// replace takes over a complete listing.
func (s *Source) replace(l *listing) {
	first := newMirror()
	if l.first {
		first.replace(l) // while its events are still being decoded
		l.decoder.finish()
	} else {
		for _, part := range l.parts {
			s.predecode(part.events, part.states)
		}
	}
	s.mu.Lock()
	before := s.mirror.live
	if l.first {
		s.mirror = first
	} else {
		s.mirror.replace(l)
	}
	s.places.give(l.places + before - s.mirror.live)
	s.clock()
	s.follow(l.about)
	if l.lost {
		s.distrust = cmp.Or(s.distrust, ErrLostKeys)
	}
	s.rev = l.about.Rev
	s.problems, s.ignored, s.crowded = l.problems, l.ignored, l.crowded
	problems := len(s.allProblems())
	s.synced, s.resynced, s.unannounced = true, true, true
	keys := s.mirror.live
	s.mu.Unlock()
	s.health.update(l.about.Rev, keys, problems)
	s.health.synced()
	s.signal()
}

// follow records the newest listing, and whether it can be a later state of the one
// before. The caller holds mu.
func (s *Source) follow(now Listing) {
	before := s.listing
	before.Rev = max(before.Rev, s.rev)
	s.distrust = cmp.Or(s.distrust, now.Succeeds(before))
	if now.Identity == "" {
		now.Identity = before.Identity
	}
	now.Keys = s.mirror.live
	s.listing = now
}

// apply takes over one batch. It returns an error if the store then exceeds the bounds.
func (s *Source) apply(b Batch) error {
	events, places := s.sift(b)
	states := statesOf(events)
	s.predecode(events, states)
	s.mu.Lock()
	before := s.mirror.live
	for i, e := range events { // e is a copy: while it waits, the other values of the batch can go
		if it := s.mirror.set(&e, states[i]); it != nil && it.absent && e.Absent {
			s.distrust = cmp.Or(s.distrust, ErrLostKeys)
		}
	}
	s.places.give(places + before - s.mirror.live)
	s.clock()
	s.rev = max(s.rev, b.Rev)
	rev, keys, problems := s.rev, s.mirror.live, len(s.allProblems())
	bytes := s.mirror.bytes
	signal := s.unannounced || s.mirror.waiting() > 0
	relist := s.crowded && s.places.plenty()
	s.crowded = s.crowded && !relist
	s.mu.Unlock()
	s.health.update(rev, keys, problems)
	if signal {
		s.signal()
	}
	if relist { // for the keys that are ignored
		s.Relist()
	}
	if limit := s.o.Bounds.Listing; bytes > limit {
		return fmt.Errorf("%w: the store has more bytes than max-listing-size allows, %d, in %d keys", ErrTooMuch, limit, keys)
	}
	return nil
}

// sift takes over the problems of a batch, and returns the events of keys that are not ignored, with the places that
// they have taken.
func (s *Source) sift(b Batch) (events []Event, places int) {
	events = b.Events[:0] // the batch belongs to the source
	var bad []Event
	for _, e := range b.Events {
		e, watched := s.relative(s.bounded(e))
		switch {
		case !watched:
		case CheckKey(e.Key) != nil:
			bad = append(bad, e)
		default:
			events = append(events, e)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before, ignored := s.allProblems(), len(s.ignored.digests)
	if b.Problems != nil {
		s.problems = allShort(b.Problems)
	}
	for _, e := range bad {
		s.ignored.note(e, CheckKey(e.Key))
	}
	events, places = s.admit(events, &s.ignored, func(Event) { s.crowded = true })
	if b.Problems != nil || bad != nil || ignored != len(s.ignored.digests) {
		s.unannounced = s.unannounced || !slices.EqualFunc(before, s.allProblems(), sameText)
	}
	return events, places
}

// allProblems returns those that the connector reported, and that of bad keys. The caller holds mu.
func (s *Source) allProblems() []error { return s.ignored.problems(s.problems) }

// mostDecoded is the number of bytes of values that a source decodes until its consumer
// takes them. A decoded value takes up to ten times its bytes. The consumer decodes the
// others: it is busy, or it would have taken some.
const mostDecoded = 256 << 10

// predecode decodes those of the events that will change the mirror, up to mostDecoded. Only
// the goroutine of Run changes the mirror, so it is the same when the events are put into it.
func (s *Source) predecode(events []Event, states []state) {
	if s.o.Decode == nil {
		return
	}
	var changed []Event
	var at []int
	s.mu.Lock()
	for i := range events {
		size := int64(len(events[i].Value))
		if s.decoded+size <= mostDecoded && s.mirror.changes(events[i].Key, states[i]) {
			s.decoded += size
			changed, at = append(changed, events[i]), append(at, i)
		}
	}
	s.mu.Unlock()
	decodeAll(s.o.Decode, changed)
	for i := range changed {
		events[at[i]].Decoded = changed[i].Decoded
	}
}

// bounded replaces a value that is too large by an error, and cuts the text of an error.
func (s *Source) bounded(e Event) Event {
	if err := s.o.Bounds.CheckValue(int64(len(e.Value))); err != nil {
		e.Value, e.Err = nil, err
	}
	e.Err = short(e.Err)
	return e
}

// confirm records that a complete listing equals the mirror.
func (s *Source) confirm(l Listing) {
	s.mu.Lock()
	l.Keys = s.mirror.live
	l.Identity = cmp.Or(l.Identity, s.listing.Identity)
	s.listing, s.resynced, s.unannounced = l, true, true
	s.mu.Unlock()
	s.signal()
}

// signal wakes the consumer. It never blocks, and several calls wake it once.
func (s *Source) signal() {
	s.ready.Set()
}

// sameText compares errors as people see them.
func sameText(a, b error) bool { return a.Error() == b.Error() }
