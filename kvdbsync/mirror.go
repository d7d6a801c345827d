package kvdbsync

import (
	"bytes"
	"slices"
)

// A mirror is the content of a store, and the changes that the consumer has not taken yet.
// It knows no clock, lock or goroutine.
//
// From the first change until the consumer takes it, each item keeps the consumer's state
// of the key. So at most one change per key is pending, and none if the key is back at
// that state. Memory is bounded by the number of keys.
type mirror struct {
	items   map[string]*item
	pending []waiting           // in the order of their first change
	live    int                 // items that are not deleted
	bytes   int64               // of live items; see PairCost
	listing uint32              // number of complete listings
	touched map[string]struct{} // keys that changes named since watchTouches; nil: not recorded
	nothing state               // the consumer's state of a key that is new to it
}

// An item is one key. A deleted item stays until the consumer has taken the deletion. There is one
// for each key of the store, so a test limits it to 80 bytes, a size class in which Go allocates.
type item struct {
	key     string
	now     state
	rev     int64
	place   int32  // index in pending, plus 1; 0: the consumer has the present state
	listing uint32 // the last complete listing with this key
	absent  bool   // deleted, and the deletion is an inference; see Event.Absent
}

// A waiting item has a state that the consumer has not taken.
type waiting struct {
	*item
	had    *state // the consumer's state
	newest *Event // it has the present state, perhaps decoded
}

// A state is the content of a key. The zero state is a missing key.
type state struct {
	value []byte
	err   error
}

// stateOf returns the part of an event that the mirror compares. Neither the revision nor the
// origin is one: a key that was written again with the same value has not changed.
func stateOf(e *Event) state { return state{value: e.Value, err: e.Err} }

// gone reports whether the key does not exist. A key with an error exists.
func (s state) gone() bool { return s.value == nil && s.err == nil }

// same compares everything that matters to a consumer.
func (s state) same(o state) bool {
	if s.err != nil && o.err != nil {
		return s.err.Error() == o.err.Error()
	}
	return s.err == nil && o.err == nil &&
		(s.value == nil) == (o.value == nil) && bytes.Equal(s.value, o.value)
}

// newMirror returns an empty mirror.
func newMirror() *mirror { return &mirror{items: map[string]*item{}} }

// set puts one event into the mirror. It keeps e until the consumer takes the change, and
// does not read Decoded, which a predecoder may still write. It returns nil for a missing
// key that stays missing.
func (m *mirror) set(e *Event) *item {
	now := stateOf(e)
	if m.touched != nil {
		m.touched[e.Key] = struct{}{}
	}
	it := m.items[e.Key]
	if it == nil {
		if now.gone() {
			return nil
		}
		it = &item{key: e.Key}
		m.items[e.Key] = it
	}
	it.rev = e.Rev
	if it.now.same(now) {
		it.absent = it.absent && e.Absent // an explicit deletion replaces the inference
		return it                         // keeps the bytes that the consumer has
	}
	it.absent = e.Absent && now.gone()
	m.queue(it)
	m.live += count(now) - count(it.now)
	m.bytes += cost(e.Key, now) - cost(e.Key, it.now)
	it.now = now
	m.pending[it.place-1].newest = e
	return it
}

// changes reports whether set of an event with a value would change the mirror.
func (m *mirror) changes(e *Event) bool {
	it := m.items[e.Key]
	return e.Value != nil && e.Err == nil && (it == nil || !it.now.same(stateOf(e)))
}

// cost returns the bytes of a pair, counted like those of a Tally.
func cost(key string, s state) int64 {
	if s.gone() {
		return 0
	}
	return int64(len(key)+len(s.value)) + PairCost
}

// count returns 1 for a key that exists.
func count(s state) int {
	if s.gone() {
		return 0
	}
	return 1
}

// queue saves the consumer's state of an item that is about to change.
func (m *mirror) queue(it *item) {
	if it.place != 0 {
		return
	}
	had := &m.nothing
	if !it.now.gone() {
		present := it.now
		had = &present
	}
	m.pending = append(m.pending, waiting{item: it, had: had})
	it.place = int32(len(m.pending))
}

// replace makes the mirror equal to a complete listing.
func (m *mirror) replace(l *listing) {
	m.listing++
	fresh := len(m.items) == 0
	if fresh {
		m.items = make(map[string]*item, l.len())
		m.pending = slices.Grow(m.pending, l.len())
	}
	for _, part := range l.parts {
		for i := range part {
			if it := m.set(&part[i]); it != nil {
				it.listing = m.listing
			}
		}
	}
	if !fresh {
		m.vanish(l.about.Rev)
	}
}

// vanish removes the keys that the newest listing lacks.
func (m *mirror) vanish(rev int64) {
	var vanished []string
	for key, it := range m.items {
		if it.listing != m.listing {
			vanished = append(vanished, key)
		}
	}
	slices.Sort(vanished)
	for _, key := range vanished {
		m.set(&Event{Key: key, Rev: rev, Absent: true})
	}
}

// take returns the newest event of each key that differs from the consumer's state.
func (m *mirror) take() []Event {
	if len(m.pending) == 0 {
		return nil
	}
	events := make([]Event, 0, len(m.pending))
	for _, it := range m.pending {
		it.place = 0
		if it.now.gone() {
			delete(m.items, it.key)
		}
		if it.now.same(*it.had) {
			it.now = *it.had
			continue
		}
		e := *it.newest
		e.Key, e.Rev, e.Absent = it.key, it.rev, it.absent
		events = append(events, e)
	}
	m.pending = nil
	return events
}

// watchTouches starts to record the keys that changes name.
func (m *mirror) watchTouches() { m.touched = map[string]struct{}{} }

// forgetTouches stops the record.
func (m *mirror) forgetTouches() { m.touched = nil }

// differing returns the keys that differ from the listing, without those that changes have
// named since watchTouches.
func (m *mirror) differing(listed map[string]state) []string {
	var keys []string
	both := 0
	for key, want := range listed {
		var now state
		if it := m.items[key]; it != nil {
			now = it.now
		}
		both += count(now)
		if !now.same(want) && !m.isTouched(key) {
			keys = append(keys, key)
		}
	}
	if both == m.live {
		return keys // no live key is missing from the listing
	}
	for key, it := range m.items {
		if _, ok := listed[key]; !ok && !it.now.gone() && !m.isTouched(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// lacking returns those of the keys that still differ from the listing, and that no change has
// named since watchTouches.
func (m *mirror) lacking(keys []string, listed map[string]state) []string {
	return slices.DeleteFunc(keys, func(key string) bool {
		var now state
		if it := m.items[key]; it != nil {
			now = it.now
		}
		return now.same(listed[key]) || m.isTouched(key)
	})
}

// isTouched reports whether the key has changed since the listing began.
func (m *mirror) isTouched(key string) bool {
	_, ok := m.touched[key]
	return ok
}
