package scheduler

import (
	"slices"
	"sync"
)

// history keeps the newest records, as many as fit its bounds.
type history struct {
	maxCount, maxBytes int

	mu    sync.Mutex
	list  []*Record
	bytes int
}

func (h *history) add(r *Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, r)
	h.bytes += r.size()
	old := 0
	for len(h.list)-old > 1 && (len(h.list)-old > h.maxCount || h.bytes > h.maxBytes) {
		h.bytes -= h.list[old].size()
		h.list[old] = nil
		old++
	}
	h.list = h.list[old:]
}

// size estimates the bytes that a record keeps.
func (r *Record) size() int {
	const record, value, operation = 256, 64, 128
	return record + value*len(r.Values) + operation*len(r.Executed)
}

// History returns the records that are kept, oldest first.
func (s *Scheduler) History() []*Record {
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	return slices.Clone(s.history.list)
}
