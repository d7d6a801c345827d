package scheduler

import (
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/scheduler/internal/graph"
)

// A Status is what is known of one value at one time. It is immutable.
type Status struct {
	Key        string
	State      State
	Last       Verb // the last operation done, VALIDATE if the newest intent was refused
	Err        error
	Details    []string  // PENDING: labels of unmet dependencies; INVALID: paths of invalid fields
	Since      time.Time // of State
	Want, Have proto.Message
	Waits      []Dependency // PENDING: the unmet dependencies
	Base       string       // of a derived value: the key it is derived from
	Descriptor string       // empty: none
	Meta       any

	value *graph.Value // what is wanted, else what stands
	txn   uint64       // the last transaction that did something to it
	slot  int32
}

// Dependencies are those of the value.
func (st *Status) Dependencies() []Dependency {
	if st.value == nil {
		return nil
	}
	return st.value.Deps
}

// Derived are the keys of the values that are derived from it while it stands.
func (st *Status) Derived() []string {
	if st.value == nil {
		return nil
	}
	out := make([]string, len(st.value.Derived))
	for i, d := range st.value.Derived {
		out[i] = d.Key
	}
	return out
}

// Statuses returns the status of each value whose key has the prefix, sorted by
// key, all as of one moment. No transaction waits for it.
func (s *Scheduler) Statuses(prefix string) []*Status {
	var out []*Status
	s.board.each(func(st *Status) {
		if strings.HasPrefix(st.Key, prefix) {
			out = append(out, st)
		}
	})
	slices.SortFunc(out, func(a, b *Status) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// Status returns the status of the value under key, and whether there is any.
func (s *Scheduler) Status(key string) (*Status, bool) {
	var out *Status
	s.board.each(func(st *Status) {
		if st.Key == key {
			out = st
		}
	})
	return out, out != nil
}

// board holds the newest status of each value in numbered slots, in chunks that
// are copied on the first write after someone began to read. So a reader sees
// one moment and neither side waits for the other.
type board struct {
	mu     sync.Mutex
	chunks []*chunk
	free   []int32
	reads  uint64 // chunks made before the newest one may be being read
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
// writes may call it.
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
