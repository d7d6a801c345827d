package watch_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/keyplane/keyplane/scheduler/internal/watch"
)

// taken returns what Take has, with the items in the order of their keys.
func taken(r *watch.Recent[item]) watch.News[item] {
	news := r.Take()
	slices.SortFunc(news.Items, func(a, b item) int { return cmp.Compare(a.key, b.key) })
	return news
}

func TestRecentKeepsTheNewestOfEachKey(t *testing.T) {
	h := watch.NewHub(func(i item) string { return i.key })
	h.Publish(item{"a", 1}) // before it was opened
	r := h.Recent(2)
	for _, i := range []item{{"a", 2}, {"b", 1}, {"a", 3}} {
		h.Publish(i)
	}
	h.Mark()
	h.Mark()
	<-r.Ready()
	if got := taken(r); got.Missed || got.Marks != 2 || !slices.Equal(got.Items, []item{{"a", 3}, {"b", 1}}) {
		t.Errorf("it has %+v", got)
	}
	if got := taken(r); got.Missed || got.Marks != 0 || got.Items != nil {
		t.Errorf("after everything was taken it has %+v", got)
	}
	r.Close()
	if !h.Empty() {
		t.Error("the hub has a reader after Close")
	}
	h.Publish(item{"a", 4})
	if got := taken(r); got.Items != nil {
		t.Errorf("after Close it has %+v", got)
	}
}

// TestRecentIsBounded publishes more keys than there is room for. The reader learns it, and
// goes on afterwards.
func TestRecentIsBounded(t *testing.T) {
	h := watch.NewHub(func(i item) string { return i.key })
	r := h.Recent(2)
	for _, key := range []string{"a", "b", "c", "a", "d"} {
		h.Publish(item{key, 1})
	}
	if got := taken(r); !got.Missed || got.Items != nil {
		t.Errorf("after too many changes it has %+v", got)
	}
	h.Publish(item{"d", 2})
	if got := taken(r); got.Missed || !slices.Equal(got.Items, []item{{"d", 2}}) {
		t.Errorf("afterwards it has %+v", got)
	}
}
