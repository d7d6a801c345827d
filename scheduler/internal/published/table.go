package published

import (
	"iter"
	"slices"
	"sync"
)

// A Table shows the newest entry of each key to readers that must not delay the writer.
//
// One goroutine writes: it calls Put, Drop and At, and remembers the slot of each
// key. Any goroutine reads: All sees one moment of the whole table, Find looks one
// key up. Neither side waits for the other longer than it takes to copy 256 pointers.
// Entries are immutable.
//
// The entries are in numbered slots, in chunks. A chunk is copied on the first
// write after a reader began, so a reader keeps the moment at which it began.
type Table[E any] struct {
	key func(*E) string

	mu     sync.Mutex // guards the fields below; the writer may read chunks without it
	chunks []*chunk[E]
	free   []int32
	reads  uint64 // readers so far; a chunk made before the newest one may still be read
	recent recent

	find find
}

const chunkSize = 256

type chunk[E any] struct {
	reads uint64
	slots [chunkSize]*E
}

// NewTable returns an empty table. key is the key of an entry.
func NewTable[E any](key func(*E) string) *Table[E] {
	return &Table[E]{key: key, recent: recent{overflow: true}}
}

// Put shows e in a slot and returns that slot. Slot 0 asks for a free one: e is the
// first entry of its key.
func (t *Table[E]) Put(slot int32, e *E) int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slot == 0 {
		slot = t.allocate()
		t.recent.add(slot)
	}
	c, i := t.writable(slot)
	c.slots[i] = e
	return slot
}

// Drop empties a slot. The slot may be given to another key afterwards.
func (t *Table[E]) Drop(slot int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, i := t.writable(slot)
	c.slots[i] = nil
	t.free = append(t.free, slot)
}

// At returns the entry in a slot, or nil. Slot 0 is always empty. Only the writer
// may call it.
func (t *Table[E]) At(slot int32) *E {
	if slot == 0 {
		return nil
	}
	return t.chunks[slot/chunkSize].slots[slot%chunkSize]
}

// All yields every entry, as of one moment, in no particular order.
func (t *Table[E]) All() iter.Seq[*E] {
	return func(yield func(*E) bool) {
		_, all := t.slots()
		for _, e := range all {
			if !yield(e) {
				return
			}
		}
	}
}

// slots returns the used slots and their entries, as of one moment, and how many there are at most.
func (t *Table[E]) slots() (most int, all iter.Seq2[int32, *E]) {
	t.mu.Lock()
	chunks := slices.Clone(t.chunks)
	t.reads++
	t.mu.Unlock()
	return len(chunks) * chunkSize, func(yield func(int32, *E) bool) {
		for n, c := range chunks {
			for i, e := range c.slots {
				if e != nil && !yield(int32(n*chunkSize+i), e) {
					return
				}
			}
		}
	}
}

// Len is the number of entries.
func (t *Table[E]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(0, len(t.chunks)*chunkSize-1-len(t.free)) // slot 0 of the first chunk is never used
}

// allocate returns a free slot; slot 0 is never used, so it can stand for none. Slots of
// dropped entries are used again, so the table is as large as the most entries that it
// ever had.
func (t *Table[E]) allocate() int32 {
	if n := len(t.free); n > 0 {
		slot := t.free[n-1]
		t.free = t.free[:n-1]
		return slot
	}
	first := int32(len(t.chunks) * chunkSize)
	t.chunks = append(t.chunks, &chunk[E]{reads: t.reads})
	for slot := first + chunkSize - 1; slot > first; slot-- {
		t.free = append(t.free, slot)
	}
	if first == 0 {
		return t.allocate()
	}
	return first
}

// writable returns the chunk of slot, as a copy if a reader may have the old one.
func (t *Table[E]) writable(slot int32) (*chunk[E], int32) {
	c := t.chunks[slot/chunkSize]
	if c.reads != t.reads {
		copied := *c
		copied.reads = t.reads
		c = &copied
		t.chunks[slot/chunkSize] = c
	}
	return c, slot % chunkSize
}
