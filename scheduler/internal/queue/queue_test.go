package queue_test

import (
	"slices"
	"testing"

	"github.com/keyplane/keyplane/scheduler/internal/queue"
)

func TestFirstInFirstOut(t *testing.T) {
	var q queue.Queue[int]
	q.Grow(2)
	for i := range 3 {
		q.Push(i + 1)
	}
	first := q.Pop()
	other := q.Clone()
	other.Push(9)
	if got := slices.Collect(other.All()); first != 1 || !slices.Equal(got, []int{2, 3, 9}) || other.Len() != 3 {
		t.Errorf("first %d, then %v; want 1, and 2, 3, 9", first, got)
	}
	if a, b, none := q.Pop(), q.Pop(), q.Pop(); a != 2 || b != 3 || none != 0 || q.Len() != 0 {
		t.Errorf("got %d, %d and %d from a queue of 2 and 3, which is a copy", a, b, none)
	}
}

// A list of usual length is used again; a long one is not kept for ever.
func TestCleared(t *testing.T) {
	short, long := make([]int, 10, 1000), make([]int, 10, 2000)
	short[3] = 7
	if got := queue.Cleared(short); len(got) != 0 || cap(got) != 1000 || short[3] != 0 {
		t.Errorf("a short list: length %d, room for %d, element %d remains", len(got), cap(got), short[3])
	}
	if got := queue.Cleared(long); got != nil {
		t.Errorf("a long list keeps room for %d", cap(got))
	}
}
