// Package history makes and keeps the records of transactions: an [Outline] puts changes without a verb where they arose,
// [Recreations] mark what is deleted to be created again, and a [History] keeps the newest records within bounds of their number
// and memory.
package history

import (
	"slices"
	"sync"

	"github.com/keyplane/keyplane/internal/printable"
)

// A History keeps the newest items within its bounds, and always the newest one. Any
// goroutine may use it.
type History[T any] struct {
	maxCount, maxBytes int

	mu      sync.Mutex
	list    []T
	removed uint64 // number of items that came before those in list
	sizes   []int
	bytes   int
}

// New returns an empty history with bounds.
func New[T any](maxCount, maxBytes int) *History[T] {
	return &History[T]{maxCount: maxCount, maxBytes: maxBytes}
}

// Add adds an item with the size in bytes, and removes old ones that exceed the bounds.
func (h *History[T]) Add(item T, size int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list, h.sizes = append(h.list, item), append(h.sizes, size)
	h.bytes += size
	h.trim()
}

// trim removes old items that exceed the bounds. The caller holds mu.
func (h *History[T]) trim() {
	old := 0
	for len(h.list)-old > 1 && (len(h.list)-old > h.maxCount || h.bytes > h.maxBytes) {
		h.bytes -= h.sizes[old]
		clear(h.list[old : old+1]) // the array still refers to it
		old++
	}
	h.list, h.sizes = h.list[old:], h.sizes[old:]
	h.removed += uint64(old)
}

// Since returns the kept items in the order in which they were added, without the first n of all that were ever added. It
// returns how many were added until now, which is the next n.
func (h *History[T]) Since(n uint64) (items []T, all uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all = h.removed + uint64(len(h.list))
	return slices.Clone(h.list[min(max(n, h.removed), all)-h.removed:]), all
}

// MaxText is the maximum length of the text of a kept error, in bytes.
const MaxText = 1 << 10

// errorText is the text of an error.
type errorText string

func (e errorText) Error() string { return string(e) }

// Texts returns Text for errors in a row: those with equal texts are one error. A fault that many values share has one text.
func Texts() func(error) error {
	var last error
	return func(err error) error {
		if err == nil {
			return nil
		}
		if last == nil || err.Error() != last.Error() {
			last = Text(err)
		}
		return last
	}
}

// Text returns an error that has only the text of err, cut to MaxText: an error may hold any
// memory. It returns nil for nil.
func Text(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if len(text) <= MaxText {
		return errorText(text) // a failed value has this text too, so it is not copied
	}
	return errorText(printable.Cut(text, MaxText))
}
