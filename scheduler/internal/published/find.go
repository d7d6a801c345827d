package published

import (
	"hash/maphash"
	"math/bits"
	"sync"
)

// find finds the slots of keys. It is filled when a reader asks, so that a writer whose
// entries nobody looks up pays almost nothing. A key takes 6 to 12 bytes: the entry in a
// slot has the key.
type find struct {
	mu    sync.Mutex
	seed  maphash.Seed
	slots []int32 // a slot is at the place of its key's hash, or at the next one that was free; 0: none; nil: never asked
	known int     // slots, also of keys that were dropped: they stay until all is filled again
}

// place returns the first place of a key.
func (f *find) place(key string) int {
	return int(maphash.String(f.seed, key) & uint64(len(f.slots)-1))
}

// next returns the place after a place.
func (f *find) next(i int) int { return (i + 1) & (len(f.slots) - 1) }

// clear forgets all keys and makes room for n and some more.
func (f *find) clear(n int) {
	f.seed, f.known = maphash.MakeSeed(), 0
	f.slots = make([]int32, 1<<bits.Len(uint(n+n/2)))
}

// isFull reports that n more keys need more room: a quarter of the places stays free.
func (f *find) isFull(n int) bool { return (f.known+n)*4 >= len(f.slots)*3 }

// add notes the slot of a key. There is room for it.
func (f *find) add(key string, slot int32) {
	i := f.place(key)
	for ; f.slots[i] != 0; i = f.next(i) {
		if f.slots[i] == slot {
			return
		}
	}
	f.slots[i] = slot
	f.known++
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
	for i := t.find.place(key); t.find.slots[i] != 0; i = t.find.next(i) {
		// The entry in a slot may have another key by now, or none.
		if e := t.At(t.find.slots[i]); e != nil && t.key(e) == key {
			return e
		}
	}
	return nil
}

// learn notes the slots that are new since the last call. The caller holds find.mu.
func (t *Table[E]) learn() {
	added, complete := t.takeRecent()
	if complete && !t.find.isFull(len(added)) {
		for slot, e := range added {
			t.find.add(t.key(e), slot)
		}
		return
	}
	most, all := t.slots()
	t.find.clear(most)
	for slot, e := range all {
		t.find.add(t.key(e), slot)
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
