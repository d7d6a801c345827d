// Package history makes and keeps the records of transactions: an [Outline] puts changes without a verb where they arose,
// [Recreations] mark what is deleted to be created again, and a [History] keeps the newest records within bounds of their number
// and memory.
package history

import (
	"slices"
	"strings"
	"sync"

	"github.com/keyplane/keyplane/internal/printable"
)

// A History keeps the newest items within its bounds, and always the newest one. Any
// goroutine may use it, except that one goroutine calls Replace and Wait.
type History[T comparable] struct {
	maxCount, maxBytes int
	replacing          sync.WaitGroup

	mu      sync.Mutex
	list    []T
	removed uint64 // number of items that came before those in list
	sizes   []int
	bytes   int
}

// New returns an empty history with bounds.
func New[T comparable](maxCount, maxBytes int) *History[T] {
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

// Replace has another form of an item made by a goroutine of its own, and puts it into the place of the item, if
// that is still kept. Until then the item does not count, so that it is not removed for a size that it will not have.
// Replace waits for the end of an earlier one.
func (h *History[T]) Replace(item T, form func() (other T, size int)) {
	h.replacing.Wait()
	h.put(item, item, 0)
	h.replacing.Go(func() {
		other, size := form()
		h.put(item, other, size)
	})
}

// Wait waits for the end of the last Replace.
func (h *History[T]) Wait() { h.replacing.Wait() }

// put puts another form of an item into its place, if it is still kept.
func (h *History[T]) put(item, other T, size int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.list) - 1; i >= 0; i-- { // the newest ones are replaced
		if h.list[i] == item {
			h.bytes += size - h.sizes[i]
			h.list[i], h.sizes[i] = other, size
			h.trim()
			return
		}
	}
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

// Text returns an error that has only the text of err, cut to MaxText: an error may hold any
// memory. It returns nil for nil.
func Text(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if len(text) <= MaxText {
		return errorText(strings.Clone(text)) // it may share the memory of a longer text
	}
	return errorText(printable.Cut(text, MaxText))
}
