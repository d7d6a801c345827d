package consul

import (
	"errors"
	"slices"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A known is what the last answer held: not the values, but their versions.
type known struct {
	versions map[string]version // by key as Consul has it, sharing memory with that of the event
	answer   uint64             // number of answers
}

type version struct {
	modified uint64 // Consul's index of the last change
	answer   uint64 // the last one with the key
}

func newKnown() known { return known{versions: map[string]version{}} }

// pageSize is how many pairs of a first listing are handed on at a time.
const pageSize = 1000

// differing takes over an answer and returns what is not as in the one before.
// Of a whole one every pair counts: its indexes may not be comparable.
// With page, it hands on what there is whenever that makes a page, and returns the rest.
func (k *known) differing(a *answer, whole bool, page func([]kvdbsync.Event) error) (events []kvdbsync.Event, err error) {
	k.answer++
	here := 0
	err = a.each(func(p *pair) error {
		here++
		old, had := k.versions[p.Key]
		now := version{p.ModifyIndex, k.answer}
		if had && old.modified == p.ModifyIndex && !whole {
			k.versions[p.Key] = now
			return nil
		}
		value, err := p.value(a.bounds)
		key := "/" + p.Key
		k.versions[key[1:]] = now
		e := kvdbsync.Event{Key: key, Value: value, Rev: int64(p.ModifyIndex)}
		if errors.Is(err, kvdbsync.ErrTooMuch) {
			e.Value, e.Err, err = nil, err, nil
		}
		events = append(events, e)
		if err == nil && page != nil && len(events) == pageSize {
			err, events = page(events), nil
		}
		return err
	})
	if err != nil || here == len(k.versions) {
		return events, err
	}
	return append(events, k.vanished(int64(a.index), whole)...), nil
}

// vanished forgets the keys that the answer did not have. In a whole answer they are
// absent: Consul may have lost them. Otherwise somebody deleted them.
func (k *known) vanished(rev int64, whole bool) (events []kvdbsync.Event) {
	var gone []string
	for key, v := range k.versions {
		if v.answer != k.answer {
			gone = append(gone, key)
			delete(k.versions, key)
		}
	}
	slices.Sort(gone)
	for _, key := range gone {
		events = append(events, kvdbsync.Event{Key: "/" + key, Rev: rev, Absent: whole})
	}
	return events
}
