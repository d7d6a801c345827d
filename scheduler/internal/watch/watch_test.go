package watch_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/keyplane/keyplane/scheduler/internal/watch"
)

type item struct {
	key     string
	version int
}

func TestAChangeIsNewerThanTheContent(t *testing.T) {
	h := watch.NewHub(func(i item) string { return i.key })
	r := h.Open("a/", func(yield func(item) bool) {
		h.Publish(item{"a/1", 2}) // the content was read before
		_ = yield(item{"a/1", 1}) && yield(item{"a/2", 1}) && yield(item{"b/1", 1})
	})
	h.Publish(item{"b/2", 1})
	if got, want := r.Take(), []item{{"a/1", 2}, {"a/2", 1}}; !slices.Equal(got, want) {
		t.Errorf("the reader gets %v, want %v", got, want)
	}
	if h.Empty() {
		t.Error("the hub has no reader before Close")
	}
	r.Close()
	if !h.Empty() {
		t.Error("the hub has a reader after Close")
	}
}

// TestNoChangeIsLost opens readers while a writer counts. Each reader must end with the last
// number, although it may have missed numbers in between.
func TestNoChangeIsLost(t *testing.T) {
	const last = 2000
	h := watch.NewHub(func(i item) string { return i.key })
	var mu sync.Mutex
	var now item
	var all sync.WaitGroup
	all.Go(func() {
		for v := range last {
			mu.Lock()
			now = item{"k", v + 1}
			mu.Unlock()
			h.Publish(item{"k", v + 1})
		}
	})
	for range 20 {
		all.Go(func() {
			r := h.Open("", func(yield func(item) bool) {
				mu.Lock()
				content := now
				mu.Unlock()
				if content.key != "" {
					yield(content)
				}
			})
			defer r.Close()
			for seen := 0; seen < last; {
				got, err := r.Next(t.Context())
				if err != nil || got[0].version < seen {
					t.Errorf("after %d: %v, %v", seen, got, err)
					return
				}
				seen = got[0].version
			}
		})
	}
	all.Wait()
}
