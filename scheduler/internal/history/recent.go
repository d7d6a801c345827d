package history

import (
	"sync"
	"weak"
)

// A Recent keeps a value that is made from others as long as somebody uses it. So readers at the
// same time share one, and it takes no memory afterwards. The zero Recent has none. Any goroutine
// may use it.
type Recent[T any] struct {
	mu   sync.Mutex
	kept weak.Pointer[T]
}

// Get returns the value that is in use, or makes one. Nobody may change it.
func (r *Recent[T]) Get(make func() *T) *T {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.kept.Value()
	if v == nil {
		v = make()
		r.kept = weak.Make(v)
	}
	return v
}
