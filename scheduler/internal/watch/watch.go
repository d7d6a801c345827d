// Package watch hands changes to any number of readers, which may be slow.
//
// A reader begins with the present content. Then it gets the newest item of each key, and
// misses none. The writer never waits for a reader. An [Index] is such content: the metadata of values by name.
package watch

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/keyplane/keyplane/internal/mailbox"
)

// A Hub has the open readers.
type Hub[T any] struct {
	key func(T) string

	mu      sync.RWMutex // guards readers and recents
	readers []*Reader[T]
	recents []*Recent[T]
}

// NewHub returns a Hub without readers. key is the key of an item.
func NewHub[T any](key func(T) string) *Hub[T] { return &Hub[T]{key: key} }

// A Reader gets items. One goroutine reads; any goroutine may close.
type Reader[T any] struct {
	hub    *Hub[T]
	prefix string
	box    *mailbox.Box[T]
}

// Open adds a reader of the keys with the prefix. content is called once the reader gets
// changes, so that no change is lost between both. If a change comes meanwhile, the content
// of its key is older and is not used.
func (h *Hub[T]) Open(prefix string, content iter.Seq[T]) *Reader[T] {
	r := &Reader[T]{hub: h, prefix: prefix, box: mailbox.New[T]()}
	h.mu.Lock()
	h.readers = append(h.readers, r)
	h.mu.Unlock()
	for item := range content {
		if key := h.key(item); strings.HasPrefix(key, prefix) {
			r.box.PutMissing(key, item)
		}
	}
	return r
}

// Publish hands a changed item to all readers of its key.
func (h *Hub[T]) Publish(item T) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, r := range h.readers {
		if key := h.key(item); strings.HasPrefix(key, r.prefix) {
			r.box.Put(key, item)
		}
	}
	for _, r := range h.recents {
		r.put(h.key(item), item)
	}
}

// Empty reports whether there is no reader.
func (h *Hub[T]) Empty() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.readers) == 0 && len(h.recents) == 0
}

// Next waits for items and returns them. It fails when ctx ends.
func (r *Reader[T]) Next(ctx context.Context) ([]T, error) { return r.box.Next(ctx) }

// Ready has a token when there are items since the last Take. A reader that waits for
// several things selects it and then calls Take.
func (r *Reader[T]) Ready() <-chan struct{} { return r.box.Ready() }

// Take returns the items that are there, without waiting.
func (r *Reader[T]) Take() []T { return r.box.Take() }

// Close removes the reader.
func (r *Reader[T]) Close() {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	r.hub.readers = slices.DeleteFunc(r.hub.readers, func(o *Reader[T]) bool { return o == r })
}
