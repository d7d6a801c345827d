package kvdbsync

import (
	"crypto/sha256"
	"math"
	"slices"

	"github.com/keyplane/keyplane/internal/keyset"
)

// A mirror is the content of a store, and the changes that the consumer has not taken yet.
// It knows no clock, lock or goroutine.
//
// From the first change until the consumer takes it, the consumer's state of the key is kept
// too. So at most one change per key is pending, and none if the key is back at that state.
// Memory is bounded by the number of keys. The bytes of a value are kept only until the consumer
// takes them, because it needs them in another form.
type mirror struct {
	items   *keyset.Set[item]
	pending []waiting           // in the order of their first change; without an item: of one that has come and gone
	empty   int                 // those of pending without an item
	live    int                 // items that are not deleted
	bytes   int64               // of live items; see PairCost
	listing uint32              // number of complete listings
	touched map[string]struct{} // keys that changes named since watchTouches; nil: not recorded
}

// An item is one key. A deleted item stays until the consumer has taken the deletion. There is one
// for each key of the store, so a test limits it to 48 bytes, a size class in which Go allocates.
type item struct {
	key     string
	now     state
	place   int32  // index in pending, plus 1; 0: the consumer has the present state
	listing uint32 // the last complete listing with this key
	absent  bool   // deleted, and the deletion is an inference; see Event.Absent
}

// A waiting item has a state that the consumer has not taken.
type waiting struct {
	*item
	had    state  // the consumer's state
	newest *Event // it has the present state, perhaps decoded
	rev    int64  // of the last event of the key, even if it did not change the state
}

// A state is what the mirror compares of a key. The zero state is a missing key.
type state struct {
	// digest is that of the value, or of the text of the error. Two values with one digest would
	// be taken for the same one, and a change would be lost. So it is a part of a cryptographic
	// hash, for which nobody can make such values.
	digest [16]byte
	size   int32 // of the value in bytes; noValue: an error
}

// noValue is the size of an error.
const noValue = -1

// stateOf returns the part of an event that the mirror compares. Neither the revision nor the
// origin is one: a key that was written again with the same value has not changed.
func stateOf(e *Event) state {
	switch {
	case e.Err != nil:
		return state{digestOf([]byte(e.Err.Error())), noValue}
	case e.Value != nil:
		return state{digestOf(e.Value), int32(min(len(e.Value), math.MaxInt32))}
	}
	return state{}
}

// statesOf returns the state of each event. It takes time for large values, so no lock is held.
func statesOf(events []Event) []state {
	out := make([]state, len(events))
	for i := range events {
		out[i] = stateOf(&events[i])
	}
	return out
}

// digestOf returns the digest of a content.
func digestOf(content []byte) (digest [16]byte) {
	whole := sha256.Sum256(content)
	copy(digest[:], whole[:])
	return digest
}

// gone reports whether the key does not exist. A key with an error exists.
func (s state) gone() bool { return s == state{} }

// newMirror returns an empty mirror.
func newMirror() *mirror {
	return &mirror{items: keyset.New(func(it *item) string { return it.key })}
}

// set puts one event with its state into the mirror. It keeps e until the consumer takes the
// change, and does not read Decoded, which a predecoder may still write. It returns nil for a
// missing key that stays missing.
func (m *mirror) set(e *Event, now state) *item {
	if m.touched != nil {
		m.touched[e.Key] = struct{}{}
	}
	it := m.items.Get(e.Key)
	if it == nil {
		if now.gone() {
			return nil
		}
		it = &item{key: e.Key}
		m.items.Put(it)
	}
	if it.now == now {
		it.absent = it.absent && e.Absent // an explicit deletion replaces the inference
		if it.place != 0 {
			m.pending[it.place-1].rev = e.Rev
		}
		return it
	}
	it.absent = e.Absent && now.gone()
	m.queue(it)
	m.live += count(now) - count(it.now)
	m.bytes += cost(e.Key, now) - cost(e.Key, it.now)
	it.now = now
	w := &m.pending[it.place-1]
	w.newest, w.rev = e, e.Rev
	if now.gone() && w.had.gone() {
		m.drop(it)
	}
	return it
}

// drop forgets an item that has come and gone, and that the consumer has never known. It may take nothing for months.
func (m *mirror) drop(it *item) {
	m.pending[it.place-1] = waiting{}
	m.items.Delete(it.key)
	if m.empty++; m.empty <= len(m.pending)/2 {
		return
	}
	m.pending, m.empty = slices.DeleteFunc(m.pending, func(w waiting) bool { return w.item == nil }), 0
	for i := range m.pending {
		m.pending[i].place = int32(i + 1)
	}
}

// waiting is the number of keys that the consumer may take.
func (m *mirror) waiting() int { return len(m.pending) - m.empty }

// changes reports whether set of a key with a value would change the mirror.
func (m *mirror) changes(key string, now state) bool {
	it := m.items.Get(key)
	return !now.gone() && now.size != noValue && (it == nil || it.now != now)
}

// taken reports whether the consumer has this state of a key, and will not get it again.
func (m *mirror) taken(key string, now state) bool {
	it := m.items.Get(key)
	return it != nil && it.now == now && it.place == 0
}

// cost returns the bytes of a pair, counted like those of a Tally.
func cost(key string, s state) int64 {
	if s.gone() {
		return 0
	}
	return int64(len(key)) + int64(max(s.size, 0)) + PairCost
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
	if it.place == 0 {
		m.pending = append(m.pending, waiting{item: it, had: it.now})
		it.place = int32(len(m.pending))
	}
}

// replace makes the mirror equal to a complete listing.
func (m *mirror) replace(l *listing) {
	m.listing++
	fresh := m.items.Len() == 0
	if fresh {
		m.items.Grow(l.len())
		m.pending = slices.Grow(m.pending, l.len())
	}
	for _, part := range l.parts {
		for i := range part.events {
			if it := m.set(&part.events[i], part.states[i]); it != nil {
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
	for it := range m.items.All() {
		if it.listing != m.listing {
			vanished = append(vanished, it.key)
		}
	}
	slices.Sort(vanished)
	for _, key := range vanished {
		m.set(&Event{Key: key, Rev: rev, Absent: true}, state{})
	}
}

// take returns the newest event of each key that differs from the consumer's state.
func (m *mirror) take() []Event {
	if len(m.pending) == 0 {
		return nil
	}
	events := make([]Event, 0, len(m.pending))
	for _, it := range m.pending {
		if it.item == nil {
			continue
		}
		it.place = 0
		if it.now.gone() {
			m.items.Delete(it.key)
		}
		if it.now == it.had {
			continue
		}
		e := *it.newest
		e.Key, e.Rev, e.Absent = it.key, it.rev, it.absent
		events = append(events, e)
	}
	m.pending, m.empty = nil, 0
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
		now := m.stateOf(key)
		both += count(now)
		if now != want && !m.isTouched(key) {
			keys = append(keys, key)
		}
	}
	if both == m.live {
		return keys // no live key is missing from the listing
	}
	for it := range m.items.All() {
		if _, ok := listed[it.key]; !ok && !it.now.gone() && !m.isTouched(it.key) {
			keys = append(keys, it.key)
		}
	}
	return keys
}

// lacking returns those of the keys that still differ from the listing, and that no change has
// named since watchTouches.
func (m *mirror) lacking(keys []string, listed map[string]state) []string {
	return slices.DeleteFunc(keys, func(key string) bool {
		return m.stateOf(key) == listed[key] || m.isTouched(key)
	})
}

// stateOf returns the state of a key.
func (m *mirror) stateOf(key string) state {
	if it := m.items.Get(key); it != nil {
		return it.now
	}
	return state{}
}

// isTouched reports whether the key has changed since the listing began.
func (m *mirror) isTouched(key string) bool {
	_, ok := m.touched[key]
	return ok
}
