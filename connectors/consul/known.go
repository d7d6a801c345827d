package consul

import (
	"errors"
	"slices"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A known records the keys of the last answer and their versions, without the values.
type known struct {
	versions map[string]version // by Consul key; the strings share memory with those of the event
	answer   uint64             // number of answers
}

// A version tells whether a pair of an answer is news, without its value.
type version struct {
	modified uint64 // Consul's index of the last change
	answer   uint64 // number of the last answer that had the key
}

// newKnown returns the knowledge of a watch that has seen nothing.
func newKnown() known { return known{versions: map[string]version{}} }

// pageSize is the number of pairs of a first listing that are emitted at a time.
const pageSize = 1000

// differing records an answer and returns its differences from the previous one. In a
// whole answer every pair counts, because its indexes may not be comparable. If page is
// set, differing passes each full page to it and returns the rest.
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

// vanished removes the keys that the answer did not have. After a whole answer they are
// reported as absent, because Consul may have lost them. Otherwise they are reported as
// deleted.
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
