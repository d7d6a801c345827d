package watch

import (
	"slices"
	"sync"

	"github.com/keyplane/keyplane/internal/wake"
)

// A Recent has the newest item of each key that has changed since the last Take. Unlike a
// Reader it is bounded: if more keys than most change in the meantime, it drops all items and
// says so. Its reader then reads everything again. It begins without the present content.
//
// One goroutine takes; any goroutine may close.
type Recent[T any] struct {
	hub   *Hub[T]
	most  int
	ready wake.Signal

	mu     sync.Mutex // guards the fields below
	items  map[string]T
	missed bool // more than most keys have changed; items is empty
	marks  uint64
}

// News are the changes since the last Take.
type News[T any] struct {
	Items  []T    // the newest of each key, in no order
	Missed bool   // more keys have changed than there is room for; Items is empty
	Marks  uint64 // calls of Hub.Mark
}

// Recent adds a reader of the changes of up to most keys.
func (h *Hub[T]) Recent(most int) *Recent[T] {
	r := &Recent[T]{hub: h, most: most, ready: wake.New()}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recents = append(h.recents, r)
	return r
}

// Mark counts an event that belongs to no key: the end of a transaction. Items that were
// published before it are taken with it or earlier.
func (h *Hub[T]) Mark() {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, r := range h.recents {
		r.mark()
	}
}

// mark counts one event.
func (r *Recent[T]) mark() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks++
	r.ready.Set()
}

// put adds a changed item, if there is room.
func (r *Recent[T]) put(key string, item T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.ready.Set()
	if r.missed {
		return
	}
	if _, known := r.items[key]; !known && len(r.items) == r.most {
		r.items, r.missed = nil, true
		return
	}
	if r.items == nil {
		r.items = map[string]T{}
	}
	r.items[key] = item
}

// Ready has a token when there are changes since the last Take.
func (r *Recent[T]) Ready() <-chan struct{} { return r.ready.C() }

// Take returns the changes since the last call, without waiting.
func (r *Recent[T]) Take() News[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := News[T]{Missed: r.missed, Marks: r.marks}
	for _, item := range r.items {
		out.Items = append(out.Items, item)
	}
	r.items, r.missed, r.marks = nil, false, 0
	return out
}

// Close removes the reader.
func (r *Recent[T]) Close() {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	r.hub.recents = slices.DeleteFunc(r.hub.recents, func(o *Recent[T]) bool { return o == r })
}
