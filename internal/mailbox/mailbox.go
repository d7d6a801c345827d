// Package mailbox hands the newest item of each key to a reader that may be slow. It is
// the bounded alternative to a channel where only the last state of each key matters: a
// full channel would either block the writer or lose the newest item, which is the only
// one that counts.
package mailbox

import (
	"context"
	"sync"

	"github.com/keyplane/keyplane/internal/wake"
)

// A Box holds the newest item of each key until the reader takes it. A newer item
// replaces an older one that was not taken. So the box is bounded by the number of
// keys, the writer never waits, and the reader always gets the last state of a key.
//
// Any goroutine may write. One goroutine reads.
type Box[T any] struct {
	ready wake.Signal

	mu    sync.Mutex
	items map[string]T
	order []string // keys of items, in the order in which they came
}

// New returns an empty box.
func New[T any]() *Box[T] { return &Box[T]{ready: wake.New()} }

// Put stores one item.
func (b *Box[T]) Put(key string, item T) {
	b.PutAll(func(T) string { return key }, item)
}

// PutAll stores items together: a reader that takes one of them takes all of them,
// or the newer items that replaced them.
func (b *Box[T]) PutAll(key func(T) string, items ...T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, item := range items {
		b.put(key(item), item)
	}
	b.ready.Set()
}

// put stores one item. The caller holds mu.
func (b *Box[T]) put(key string, item T) {
	if b.items == nil {
		b.items = map[string]T{}
	}
	if _, ok := b.items[key]; !ok {
		b.order = append(b.order, key)
	}
	b.items[key] = item
}

// PutMissing stores an item unless the box has one of the key already. A box that is filled
// with a snapshot while others write so keeps the items that are newer than the snapshot.
func (b *Box[T]) PutMissing(key string, item T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, newer := b.items[key]; !newer {
		b.put(key, item)
		b.ready.Set()
	}
}

// Has reports whether the box has an item of the key.
func (b *Box[T]) Has(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, has := b.items[key]
	return has
}

// Ready is the channel on which the reader waits before it calls Take.
func (b *Box[T]) Ready() <-chan struct{} { return b.ready.C() }

// Next waits until there are items, and takes all of them. It fails when ctx ends.
func (b *Box[T]) Next(ctx context.Context) ([]T, error) {
	for {
		select {
		case <-b.ready.C():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if out := b.Take(); len(out) > 0 {
			return out, nil
		}
	}
}

// Take empties the box without waiting. Items come in the order in which their keys
// came first.
func (b *Box[T]) Take() []T {
	items, order := b.empty()
	// Without the lock: memory may have to wait for the garbage collector, and a writer never waits.
	out := make([]T, len(order))
	for i, key := range order {
		out[i] = items[key]
	}
	return out
}

func (b *Box[T]) empty() (items map[string]T, order []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	items, order = b.items, b.order
	b.items, b.order = nil, nil
	return items, order
}
