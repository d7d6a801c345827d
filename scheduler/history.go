package scheduler

import (
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"
)

// history keeps the newest records, as many as fit its bounds.
type history struct {
	maxCount, maxBytes int

	mu    sync.Mutex
	list  []*Record
	sizes []int
	bytes int
}

func (h *history) add(r *Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	size := r.size()
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

// size estimates the bytes that a record keeps: its own, and those of the
// messages that were wanted or replaced in it.
func (r *Record) size() int {
	const record, value, operation = 256, 64, 128
	n := record + value*len(r.Values) + operation*(len(r.Executed)+len(r.Planned))
	for _, c := range r.Values {
		if c.Value != nil {
			n += proto.Size(c.Value.Message())
		}
	}
	for i := range r.Executed {
		if old := r.Executed[i].Old; old != nil {
			n += proto.Size(old)
		}
	}
	return n
}

// History returns the records that are kept, oldest first.
func (s *Scheduler) History() []*Record {
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	return slices.Clone(s.history.list)
}
