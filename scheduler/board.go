package scheduler

import (
	"hash/maphash"
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
	reads  uint64 // chunks made before the newest one may be being read

	hash   func(key string) uint32
	byHash map[uint32]int32 // slots, by the hash of their key
	hidden int              // slots that are not in byHash: others of the same hash are
}

func newBoard() board {
	seed := maphash.MakeSeed()
	return board{
		hash:   func(key string) uint32 { return uint32(maphash.String(seed, key)) },
		byHash: map[uint32]int32{},
	}
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
		b.enter(st)
	}
	c, i := b.own(st.slot)
	c.slots[i] = st
}

// drop empties a slot.
func (b *board) drop(slot int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, i := b.own(slot)
	b.leave(c.slots[i])
	c.slots[i] = nil
	b.free = append(b.free, slot)
}

func (b *board) enter(st *Status) {
	hash := b.hash(st.Key)
	if _, taken := b.byHash[hash]; taken {
		b.hidden++
		return
	}
	b.byHash[hash] = st.slot
}

func (b *board) leave(st *Status) {
	hash := b.hash(st.Key)
	if b.byHash[hash] != st.slot {
		b.hidden--
		return
	}
	delete(b.byHash, hash)
}

// find returns what is shown of key, or nil.
func (b *board) find(key string) (found *Status) {
	st, sure := b.lookUp(key)
	if sure {
		return st
	}
	b.each(func(st *Status) {
		if st.Key == key {
			found = st
		}
	})
	return found
}

// lookUp finds key by its hash; not sure: it may be hidden.
func (b *board) lookUp(key string) (st *Status, sure bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if st := b.at(b.byHash[b.hash(key)]); st != nil && st.Key == key {
		return st, true
	}
	return nil, b.hidden == 0
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
