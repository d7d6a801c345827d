// Package budget bounds the memory that several parts of a program hold at once for a
// short time: texts that are parsed, answers that are written, pages that are read.
//
// Each part knows the most that it can need. Without a common bound the sum of these
// needs decides how much memory the program takes. A [Budget] is that bound:
//
//	leave, err := b.Enter(ctx, bytes)
//	if err != nil { ... }
//	defer leave()
//
// Order: those who wait enter in the order of their calls, so a large need is not starved
// by small ones. A need above the whole budget waits until nobody else is inside, and then
// enters alone. So each need is met at some time, if those inside leave.
//
// No deadlock: nobody who is inside may wait for a budget again, nor for somebody who
// waits for it. Work that others wait for, such as a transaction's, calls [Budget.Press].
// It never waits. Those who come later wait for it.
//
// Where memory is scarce, [Budget.Tighten] lets the needs in one by one. Otherwise the highest memory
// would be that of the moment when all budgets are full.
//
// Small needs never wait and are not counted. There can be many of them, but their number
// has other bounds, such as the number of connections.
//
// Tests: a model, by random calls in virtual time.
package budget

import (
	"container/list"
	"context"
	"sync"
)

// Small is the largest need, in bytes, that never waits.
const Small = 256 << 10

// A Budget is a number of bytes that its users share. A nil Budget has no bound. Any
// goroutine may call the methods.
type Budget struct {
	total int64

	mu      sync.Mutex // guards the fields below
	inside  int64      // bytes; more than total after Press, or while one is alone inside
	waiting list.List  // of *need, the oldest first
	tight   bool       // a need enters only if nobody is inside
}

// A need waits to enter.
type need struct {
	bytes   int64
	entered chan struct{} // closed when it has entered
}

// New returns a budget of so many bytes, which is above zero.
func New(total int64) *Budget { return &Budget{total: total} }

// Enter waits until so many bytes are free, and takes them. leave gives them back; it is
// called once. The error is that of ctx. It says that nothing was taken.
func (b *Budget) Enter(ctx context.Context, bytes int64) (leave func(), err error) {
	if b == nil || bytes <= Small {
		return func() {}, nil
	}
	b.mu.Lock()
	if b.waiting.Len() == 0 && b.fits(bytes) {
		b.inside += bytes
		b.mu.Unlock()
		return b.leaving(bytes), nil
	}
	n := &need{bytes, make(chan struct{})}
	place := b.waiting.PushBack(n)
	b.mu.Unlock()
	select {
	case <-n.entered:
		return b.leaving(bytes), nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-n.entered: // at the same moment
		b.inside -= bytes
	default:
		b.waiting.Remove(place)
	}
	b.admit() // those behind it may fit
	return nil, ctx.Err()
}

// Press takes so many bytes at once, also if they are not free. It is for work that others
// wait for, which bounds its needs by itself.
func (b *Budget) Press(bytes int64) (leave func()) {
	if b == nil || bytes <= Small {
		return func() {}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inside += bytes
	return b.leaving(bytes)
}

// Tighten begins or ends a time in which each need enters alone. Those who are inside stay.
func (b *Budget) Tighten(tight bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tight = tight
	b.admit()
}

// leaving returns the function that gives bytes back.
func (b *Budget) leaving(bytes int64) func() {
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.inside -= bytes
		b.admit()
	})
}

// fits reports whether a need may enter now. The caller holds mu.
func (b *Budget) fits(bytes int64) bool {
	return b.inside == 0 || !b.tight && b.inside+bytes <= b.total
}

// admit lets those enter that have waited longest, as far as they fit. The caller holds mu.
func (b *Budget) admit() {
	for first := b.waiting.Front(); first != nil; first = b.waiting.Front() {
		n := first.Value.(*need)
		if !b.fits(n.bytes) {
			return
		}
		b.inside += n.bytes
		b.waiting.Remove(first)
		close(n.entered)
	}
}

// Inside returns the bytes that are taken, and the number of needs that wait.
func (b *Budget) Inside() (bytes int64, waiting int) {
	if b == nil {
		return 0, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inside, b.waiting.Len()
}
