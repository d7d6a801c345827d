package scheduler

import (
	"slices"
	"sync"
)

// board holds the newest status of each value in numbered slots, in chunks that
// are copied on the first write after someone began to read. So a reader sees
// one moment and neither side waits for the other.
type board struct {
	mu     sync.Mutex
	chunks []*chunk
	free   []int32
	reads  uint64  // chunks made before the newest one may be being read
	taken  []int32 // since finder last asked, unless it missed some
	missed bool
}

const chunkSize = 256

type chunk struct {
	reads uint64
	slots [chunkSize]*Status
}

// put shows st in its slot, or takes the slot of one that has none yet.
func (b *board) put(st *Status) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if st.slot == 0 {
		st.slot = b.take()
		b.note(st.slot)
	}
	c, i := b.own(st.slot)
	c.slots[i] = st
}

// drop empties a slot.
func (b *board) drop(slot int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, i := b.own(slot)
	c.slots[i] = nil
	b.free = append(b.free, slot)
}

// at returns what is in a slot; slot 0 is never taken. Only the goroutine that
// writes may call it, or who holds mu.
func (b *board) at(slot int32) *Status {
	if slot == 0 {
		return nil
	}
	return b.chunks[slot/chunkSize].slots[slot%chunkSize]
}

func (b *board) take() int32 {
	if n := len(b.free); n > 0 {
		slot := b.free[n-1]
		b.free = b.free[:n-1]
		return slot
	}
	first := int32(len(b.chunks) * chunkSize)
	b.chunks = append(b.chunks, &chunk{reads: b.reads})
	for slot := first + chunkSize - 1; slot > first; slot-- {
		b.free = append(b.free, slot)
	}
	if first == 0 {
		return b.take()
	}
	return first
}

// own returns the chunk of slot, as a copy of its own if it may be being read.
func (b *board) own(slot int32) (*chunk, int32) {
	c := b.chunks[slot/chunkSize]
	if c.reads != b.reads {
		copied := *c
		copied.reads = b.reads
		c = &copied
		b.chunks[slot/chunkSize] = c
	}
	return c, slot % chunkSize
}

func (b *board) each(f func(*Status)) {
	b.mu.Lock()
	chunks := slices.Clone(b.chunks)
	b.reads++
	b.mu.Unlock()
	for _, c := range chunks {
		for _, st := range c.slots {
			if st != nil {
				f(st)
			}
		}
	}
}
