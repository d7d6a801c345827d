package kvdbsync

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Listing describes a complete listing of a store: its time and its data set.
type Listing struct {
	// Began is the time at which the listing began: it shows nothing that is older.
	Began time.Time
	// Identity and Former are those of the store; see Batch.
	Identity, Former string
	// Rev is the store's revision; 0 where it has none.
	Rev int64
	// Keys is the number of keys in the listing.
	Keys int
}

// Succeeds returns nil if the listing can be a later state of the data that before
// describes. Otherwise it returns ErrOtherStore or ErrWentBack, wrapped.
func (l Listing) Succeeds(before Listing) error {
	known := append(strings.Fields(l.Identity), strings.Fields(l.Former)...)
	if l.Identity != "" {
		for part := range strings.FieldsSeq(before.Identity) {
			if !slices.Contains(known, part) {
				return fmt.Errorf("%w from %s to %s", ErrOtherStore, before.Identity, l.Identity)
			}
		}
	}
	if l.Rev != 0 && l.Rev < before.Rev {
		return fmt.Errorf("%w from %d to %d", ErrWentBack, before.Rev, l.Rev)
	}
	return nil
}

// A listing gathers the batches of a watch until it is synced. It has no effect before
// that. A watch that ends too early has not seen all keys, and may have seen a part of a
// transaction.
type listing struct {
	about    Listing
	lost     bool   // the store lost keys by itself meanwhile
	first    bool   // the first listing of the Source
	parts    []part // in order; a key may come more than once
	problems []error
	ignored  ignored
	crowded  bool        // some keys are ignored because there was no room
	places   int         // taken in Bounds.Room until the listing ends
	decoder  *predecoder // of the first listing
	tally    Tally
}

// A part of a listing is a batch of it, with relative keys.
type part struct {
	events []Event
	states []state // of the events
}

// gather adds a batch. It returns an error once the listing exceeds the bounds.
func (s *Source) gather(l *listing, b Batch) error {
	s.health.yielded(b)
	if err := l.tally.Page(); err != nil {
		return err
	}
	events := b.Events[:0]
	for _, e := range b.Events {
		e = s.bounded(e)
		if err := l.tally.Pair(e.Key, len(e.Value)); err != nil {
			return err
		}
		e, watched := s.relative(e)
		switch {
		case !watched:
		case CheckKey(e.Key) != nil:
			l.ignored.note(e, CheckKey(e.Key))
		default:
			events = append(events, e)
			l.lost = l.lost || e.Absent
		}
	}
	s.locked(func() {
		var taken int
		events, taken = s.admit(events, &l.ignored, func(e Event) {
			l.crowded = true
			l.tally.ignored(e.Key, len(e.Value))
		})
		l.places += taken
	})
	states := statesOf(events)
	if !l.first {
		s.dropTaken(events, states)
	}
	l.parts = append(l.parts, part{events, states})
	if l.first && s.o.Decode != nil {
		l.decoder.add(events)
	}
	l.lost = l.lost || b.LostKeys
	l.about.Rev = max(l.about.Rev, b.Rev)
	if b.Identity != "" {
		l.about.Identity, l.about.Former = b.Identity, b.Former
	}
	if b.Problems != nil {
		l.problems = allShort(b.Problems)
	}
	return nil
}

// dropTaken drops the bytes of values that the consumer has taken and that did not change since. So
// a later listing of a store with large values holds only those that differ.
func (s *Source) dropTaken(events []Event, states []state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range events {
		if e := &events[i]; s.mirror.taken(e.Key, states[i]) {
			e.Value = nil
		}
	}
}

// len returns the number of listed keys.
func (l *listing) len() (n int) {
	for _, part := range l.parts {
		n += len(part.events)
	}
	return n
}

// states returns the listing by key.
func (l *listing) states() map[string]state {
	states := make(map[string]state, l.len())
	for _, part := range l.parts {
		for i := range part.events {
			states[part.events[i].Key] = part.states[i]
		}
	}
	return states
}

// list reads the store once, by a watch that ends as soon as it is complete.
func (s *Source) list(ctx context.Context) (*listing, error) {
	l := &listing{about: Listing{Began: time.Now()}, tally: NewTally(s.o.Bounds)}
	defer func() { s.places.give(l.places) }()
	for b, err := range s.o.Connector.Watch(ctx, s.prefix) {
		if err != nil {
			return nil, err
		}
		if err := s.gather(l, b); err != nil {
			return nil, err
		}
		if b.Synced {
			return l, nil
		}
	}
	return nil, endedBy(ctx)
}

// relative cuts Root off the key, and off its memory: the key is kept, in several places. It returns
// false for a key that is not watched.
func (s *Source) relative(e Event) (Event, bool) {
	if !strings.HasPrefix(e.Key, s.prefix) {
		return Event{}, false
	}
	if s.o.Root != "" {
		e.Key = strings.Clone(e.Key[len(s.o.Root):])
	}
	return e, true
}

// endedBy returns the reason for a watch that ended without an error.
func endedBy(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return ErrEnded
}
