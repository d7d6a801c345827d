package scheduler

import (
	"slices"
	"sync"
)

// history keeps the newest records within its bounds, and always the newest one.
type history struct {
	maxCount, maxBytes int

	mu    sync.Mutex
	list  []*Record
	sizes []int
	bytes int
}

// add adds a record that Record.kept has made.
func (h *history) add(r *Record) {
	size := r.size()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list, h.sizes = append(h.list, r), append(h.sizes, size)
	h.bytes += size
	old := 0
	for len(h.list)-old > 1 && (len(h.list)-old > h.maxCount || h.bytes > h.maxBytes) {
		h.bytes -= h.sizes[old]
		h.list[old] = nil
		old++
	}
	h.list, h.sizes = h.list[old:], h.sizes[old:]
}

// History returns the kept records, oldest first. Their errors have the text only. A text
// longer than 1 KiB or a key longer than 4 KiB is cut and ends with "… (N bytes)".
func (s *Scheduler) History() []*Record {
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	return slices.Clone(s.history.list)
}
