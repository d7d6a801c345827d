package table

import "sync"

// find maps keys to slots. It is filled when a reader asks, so that a writer whose
// entries nobody looks up pays almost nothing. A key that was dropped stays in the
// map until it is rebuilt; the entry in its slot tells that it is gone.
type find struct {
	mu    sync.Mutex
	slots map[string]int32 // nil: never asked
}

// recent are the slots that were allocated since find asked last.
type recent struct {
	slots    []int32
	overflow bool // there were too many to list: find reads the whole table
}

// maxRecent bounds the list in recent, and how many dropped keys find keeps.
const maxRecent = 4096

// add lists a slot that was allocated, or records that there are too many to list. So a
// writer pays the same for each entry, however long nobody reads.
func (r *recent) add(slot int32) {
	if r.overflow = r.overflow || len(r.slots) >= maxRecent; r.overflow {
		r.slots = nil
		return
	}
	r.slots = append(r.slots, slot)
}

// Find returns the entry of key, or nil.
func (t *Table[E]) Find(key string) *E {
	t.find.mu.Lock()
	defer t.find.mu.Unlock()
	t.learn()
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.At(t.find.slots[key]); e != nil && t.key(e) == key {
		return e
	}
	return nil
}

// learn brings the map of keys up to date. The caller holds find.mu.
func (t *Table[E]) learn() {
	added, complete := t.takeRecent()
	if t.find.slots == nil || !complete || len(t.find.slots) > 2*t.Len()+maxRecent {
		t.find.slots = map[string]int32{}
		for slot, e := range t.slots() {
			t.find.slots[t.key(e)] = slot
		}
		return
	}
	for slot, e := range added {
		t.find.slots[t.key(e)] = slot
	}
}

// takeRecent returns the entries in the slots that were allocated since the last
// call, by slot. complete is false if there were too many to list.
func (t *Table[E]) takeRecent() (added map[int32]*E, complete bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	added = make(map[int32]*E, len(t.recent.slots))
	for _, slot := range t.recent.slots {
		if e := t.At(slot); e != nil {
			added[slot] = e
		}
	}
	complete = !t.recent.overflow
	t.recent = recent{}
	return added, complete
}
