package consul

import (
	"errors"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A known records the keys of the last answer and their versions, without the values. Consul
// sends the keys in order, so most of them are found where the search for the last one ended.
type known struct {
	versions []version // by key
}

// A version tells whether a pair of an answer is news, without its value.
type version struct {
	key      string // Consul's form; it shares memory with that of the event
	modified uint64 // Consul's index of the last change
}

// pageSize is the number of pairs of a first listing that are emitted at a time.
const pageSize = 1000

// differing records an answer and returns its differences from the previous one. In a
// whole answer every pair counts, because its indexes may not be comparable. If page is
// set, differing passes each full page to it and returns the rest.
func (k *known) differing(a *answer, whole bool, page func([]kvdbsync.Event) error) (events []kvdbsync.Event, err error) {
	var added []version
	here := make([]bool, len(k.versions)) // whether the answer has the key
	next := 0
	err = a.each(func(p *pair) error {
		at, had := k.find(p.Key, next)
		if had {
			next, here[at] = at+1, true
			if k.versions[at].modified == p.ModifyIndex && !whole {
				return nil
			}
		}
		value, err := p.value(a.bounds)
		e := kvdbsync.Event{Key: "/" + p.Key, Value: value, Rev: int64(p.ModifyIndex)}
		if now := (version{e.Key[1:], p.ModifyIndex}); had {
			k.versions[at] = now
		} else {
			added = append(added, now)
		}
		if errors.Is(err, kvdbsync.ErrTooMuch) {
			e.Value, e.Err, err = nil, err, nil
		}
		events = append(events, e)
		if err == nil && page != nil && len(events) == pageSize {
			err, events = page(events), nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	events = append(events, k.vanished(here, int64(a.index), whole)...)
	k.add(added)
	return events, nil
}

// find returns the place of a key, which is likely to be the given one.
func (k *known) find(key string, likely int) (at int, had bool) {
	if likely < len(k.versions) && k.versions[likely].key == key {
		return likely, true
	}
	return slices.BinarySearchFunc(k.versions, key, func(v version, key string) int { return strings.Compare(v.key, key) })
}

// add records the keys that were not known.
func (k *known) add(added []version) {
	if len(added) == 0 {
		return
	}
	k.versions = slices.Concat(k.versions, added) // has no room to grow, so that it takes no more memory than it needs
	slices.SortFunc(k.versions, func(a, b version) int { return strings.Compare(a.key, b.key) })
}

// vanished removes the keys that the answer did not have. After a whole answer they are
// reported as absent, because Consul may have lost them. Otherwise they are reported as
// deleted.
func (k *known) vanished(here []bool, rev int64, whole bool) (events []kvdbsync.Event) {
	if !slices.Contains(here, false) {
		return nil
	}
	left := k.versions[:0]
	for i, v := range k.versions {
		if here[i] {
			left = append(left, v)
		} else {
			events = append(events, kvdbsync.Event{Key: "/" + v.key, Rev: rev, Absent: whole})
		}
	}
	clear(k.versions[len(left):])
	k.versions = left
	return events
}
