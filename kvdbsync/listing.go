package kvdbsync

import (
	"context"
	"slices"
	"strings"
)

// A listing gathers what a watch yields until it is synced. Nothing of it counts
// before that: a watch that ends too early says nothing about the keys it did
// not get to, nor has it seen all of a transaction made while it was listing.
type listing struct {
	events   []Event // in order, with relative keys; a key may come more than once
	rev      int64
	problems []error
}

func (s *Source) gather(l *listing, b Batch) {
	s.health.yielded(b)
	l.events = slices.Grow(l.events, len(b.Events))
	for _, e := range b.Events {
		if e, ok := s.relative(e); ok {
			l.events = append(l.events, e)
		}
	}
	l.rev = max(l.rev, b.Rev)
	if b.Problems != nil {
		l.problems = b.Problems
	}
}

// states is the listing by key.
func (l *listing) states() map[string]state {
	states := make(map[string]state, len(l.events))
	for _, e := range l.events {
		states[e.Key] = stateOf(e)
	}
	return states
}

// list reads the store once, by a watch that ends as soon as it is complete.
func (s *Source) list(ctx context.Context) (listing, error) {
	var l listing
	for b, err := range s.o.Connector.Watch(ctx, s.prefix) {
		if err != nil {
			return listing{}, err
		}
		s.gather(&l, b)
		if b.Synced {
			return l, nil
		}
	}
	return listing{}, endedBy(ctx)
}

// relative cuts Root off the key; false: the key is none that is watched.
func (s *Source) relative(e Event) (Event, bool) {
	if !strings.HasPrefix(e.Key, s.prefix) {
		return Event{}, false
	}
	e.Key = e.Key[len(s.o.Root):]
	return e, true
}

// endedBy is why a watch ended that did not say why.
func endedBy(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return ErrEnded
}
