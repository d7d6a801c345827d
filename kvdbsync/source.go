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

// Options are the choices of a Source. Name and Connector are required.
type Options struct {
	Name      string // for people, and in each Change: "etcd"
	Connector Connector

	// Root is cut off the keys handed on: "/vnf-agent/vpp1/". Defaults to nothing.
	Root string
	// Prefix, below Root, is what is watched: "config/". Defaults to all of Root.
	Prefix string

	// A watch that failed is begun again after a random time below a bound. The bound
	// starts at MinBackoff and doubles with each failure up to MaxBackoff. While the
	// store does not answer, it stays below one second for as long as MaxBackoff. It
	// starts over after a watch that was synced; but if that happens more than ten times
	// in a row within MaxBackoff, it does so once in ten times MaxBackoff, so
	// that a store that breaks after each listing is not listed all the time. They
	// default to 100 ms and 30 s.
	MinBackoff, MaxBackoff time.Duration
	// AntiEntropy is how often, give or take a quarter, the store is listed to
	// see whether the watch has lost anything. Defaults to 10 minutes; negative: never.
	AntiEntropy time.Duration
	// Grace is how long a change that such a listing shows may be on its way
	// through the watch before it counts as lost. Defaults to 5 seconds.
	Grace time.Duration

	Bounds Bounds // of what the store may hold

	// Decode decodes the events of the first listing while the rest is listed. Its result
	// goes into Event.Decoded, unless the key changes before it is taken. It is called on
	// several goroutines. Defaults to none.
	Decode func(Event) any

	Log *slog.Logger // Defaults to discarding
}

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
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// A Change is all that became different since the Change before it.
type Change struct {
	Source string
	// Events has the newest event of each key, with Root cut off; a nil Value
	// without Err says that the key is gone. Values are shared with the Source:
	// nobody changes them.
	Events []Event
	Rev    int64 // the store's revision as of this change; 0 where it has none
	// Synced says that the mirror has been complete at least once.
	Synced bool
	// Resynced says that a complete listing of the store went into this change, or
	// has confirmed what was there: at the first sync, after a gap, by anti-entropy.
	Resynced bool
	// Listing is the newest of these listings; only with Resynced.
	Listing Listing
	// Distrust is why the keys that are absent in Events may still be wanted: since the
	// Change before, a listing read another data set (ErrOtherStore) or an older
	// one (ErrWentBack), or the store lost keys by itself (ErrLostKeys). nil means
	// that nothing but the number of absent keys speaks against it.
	Distrust error
	// Problems are the faults of the store's content, as of this change, that
	// belong to no key.
	Problems []error
}

// A Source is one configured connector with a mirror of what its store holds.
// Run drives it; one consumer takes changes; anyone may ask for its health.
//
// The consumer pulls. What it has not taken is merged key by key, so memory is
// bounded by the number of keys, and since it always takes all there is, what
// the store changed at once is never torn apart. For the same reason a listing
// counts only once it is complete.
type Source struct {
	o      Options
	prefix string // Root and Prefix
	ready  wake.Signal
	relist wake.Signal
	health health

	mu          sync.Mutex // guards what follows
	mirror      *mirror
	rev         int64
	synced      bool
	listing     Listing // the newest complete one
	resynced    bool    // since the last Take
	distrust    error   // since the last Take
	problems    []error
	unannounced bool          // there is something to take besides pending events
	came        time.Time     // when the oldest pending event came; zero: none is
	waited      time.Duration // how long it had waited when last taken
}

// NewSource returns a Source that does nothing until it is run.
func NewSource(o Options) *Source {
	s := &Source{
		o:      o.withDefaults(),
		prefix: o.Root + o.Prefix,
		ready:  wake.New(),
		relist: wake.New(),
		mirror: newMirror(),
	}
	s.health.begin(o.Name)
	return s
}

// Ready yields a token when there may be something to take.
func (s *Source) Ready() <-chan struct{} { return s.ready.C() }

// Take returns everything that changed since the last Take, and whether there
// was anything.
func (s *Source) Take() (Change, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.mirror.take()
	if !s.came.IsZero() {
		s.waited, s.came = s.lag(), time.Time{}
	}
	if len(events) == 0 && !s.unannounced {
		return Change{}, false
	}
	c := Change{
		Source: s.o.Name, Events: events, Rev: s.rev,
		Synced: s.synced, Resynced: s.resynced, Distrust: s.distrust, Problems: s.problems,
	}
	if c.Resynced {
		c.Listing = s.listing
	}
	s.resynced, s.distrust, s.unannounced = false, nil, false
	return c, true
}

// Relist asks for an anti-entropy listing now. A Change with Resynced follows
// once it is complete. While the store is not synced, the next sync is the answer.
func (s *Source) Relist() {
	s.relist.Set()
}

// Health returns how the source is.
func (s *Source) Health() Health {
	h := s.health.get()
	s.mu.Lock()
	defer s.mu.Unlock()
	h.Waiting, h.Lag, h.Waited = len(s.mirror.pending), s.lag(), s.waited
	return h
}

// lag is how long the oldest pending event has waited. The caller holds mu.
func (s *Source) lag() time.Duration {
	if s.came.IsZero() {
		return 0
	}
	return time.Since(s.came)
}

// clock notes since when events are pending. The caller holds mu.
func (s *Source) clock() {
	if s.came.IsZero() && len(s.mirror.pending) > 0 {
		s.came = time.Now()
	}
}

// replace takes over a complete listing.
func (s *Source) replace(l *listing) {
	first := newMirror()
	if l.first {
		first.replace(l) // while its events are still being looked at
		l.decoder.finish()
	}
	s.mu.Lock()
	if l.first {
		s.mirror = first
	} else {
		s.mirror.replace(l)
	}
	s.clock()
	s.follow(l.about)
	if l.lost {
		s.distrust = cmp.Or(s.distrust, ErrLostKeys)
	}
	s.rev = l.about.Rev
	s.problems = l.problems
	s.synced, s.resynced, s.unannounced = true, true, true
	keys := s.mirror.live
	s.mu.Unlock()
	s.health.update(l.about.Rev, keys, len(l.problems))
	s.health.synced()
	s.signal()
}

// follow notes the newest listing, and whether it can succeed what was known before.
// The caller holds mu.
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

// apply takes over one change of the store. It returns an error if the store then
// holds more than the bounds allow.
func (s *Source) apply(b Batch) error {
	s.mu.Lock()
	for _, e := range b.Events {
		if e, ok := s.relative(s.bounded(e)); ok {
			if it := s.mirror.set(&e); it != nil && it.absent && e.Absent {
				s.distrust = cmp.Or(s.distrust, ErrLostKeys)
			}
		}
	}
	s.clock()
	s.rev = max(s.rev, b.Rev)
	if b.Problems != nil && !slices.EqualFunc(s.problems, b.Problems, sameText) {
		s.problems, s.unannounced = b.Problems, true
	}
	rev, keys, problems := s.rev, s.mirror.live, len(s.problems)
	bytes := s.mirror.bytes
	signal := s.unannounced || len(s.mirror.pending) > 0
	s.mu.Unlock()
	s.health.update(rev, keys, problems)
	if signal {
		s.signal()
	}
	if limit := s.o.Bounds.Listing; bytes > limit {
		return fmt.Errorf("%w: the store has more bytes than max-listing-size allows, %d, in %d keys", ErrTooMuch, limit, keys)
	}
	return nil
}

// bounded replaces a value that is too large by an error.
func (s *Source) bounded(e Event) Event {
	if err := s.o.Bounds.CheckValue(int64(len(e.Value))); err != nil {
		e.Value, e.Err = nil, err
	}
	return e
}

// confirm notes that a complete listing found the mirror as it should be.
func (s *Source) confirm(l Listing) {
	s.mu.Lock()
	l.Keys = s.mirror.live
	l.Identity = cmp.Or(l.Identity, s.listing.Identity)
	s.listing, s.resynced, s.unannounced = l, true, true
	s.mu.Unlock()
	s.signal()
}

func (s *Source) signal() {
	s.ready.Set()
}

func sameText(a, b error) bool { return a.Error() == b.Error() }
