package scheduler

import "sync"

// finder finds statuses on a board by key. It learns of keys only when somebody
// asks, so that writers pay next to nothing for it; what it knows of keys that
// are gone is told by what stands in their slot.
type finder struct {
	mu    sync.Mutex
	slots map[string]int32 // nil: it knows nothing yet
}

// mostTaken is how many slots a board lists for a finder, before it has to read
// the whole board.
const mostTaken = 4096

func (b *board) note(slot int32) {
	if b.missed = b.missed || len(b.taken) >= mostTaken; b.missed {
		b.taken = nil
		return
	}
	b.taken = append(b.taken, slot)
}

// news are the statuses in slots taken since the last call; not all: some were missed.
func (b *board) news() (out []*Status, all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, slot := range b.taken {
		if st := b.at(slot); st != nil {
			out = append(out, st)
		}
	}
	all = !b.missed
	b.taken, b.missed = nil, false
	return out, all
}

// find returns what b shows of key, or nil.
func (f *finder) find(b *board, key string) *Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	news, all := b.news()
	if f.slots == nil || !all || len(f.slots) > 2*b.len()+mostTaken {
		f.slots = map[string]int32{}
		b.each(func(st *Status) { f.slots[st.Key] = st.slot })
	}
	for _, st := range news {
		f.slots[st.Key] = st.slot
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if st := b.at(f.slots[key]); st != nil && st.Key == key {
		return st
	}
	return nil
}

// len is how many statuses b shows.
func (b *board) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(0, len(b.chunks)*chunkSize-1-len(b.free))
}
