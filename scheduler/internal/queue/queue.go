// Package queue has a queue whose memory follows its use: a long one that was emptied gives its
// memory back, and a short one keeps it for the next elements.
package queue

import (
	"iter"
	"slices"
)

// A Queue is first in, first out. The zero value is empty. One goroutine uses it.
type Queue[E any] struct {
	list []E
	head int
}

// Len returns the number of elements.
func (q *Queue[E]) Len() int { return len(q.list) - q.head }

// All yields the elements, the first one first.
func (q *Queue[E]) All() iter.Seq[E] { return slices.Values(q.list[q.head:]) }

// Clone returns a copy, which shares no memory with q.
func (q *Queue[E]) Clone() Queue[E] { return Queue[E]{slices.Clone(q.list), q.head} }

// Grow makes room for n more elements.
func (q *Queue[E]) Grow(n int) { q.list = slices.Grow(q.list, n) }

// Push appends an element.
func (q *Queue[E]) Push(e E) { q.list = append(Doubled(q.list), e) }

// Pop removes the first element and returns it, or the zero value if the queue is empty.
func (q *Queue[E]) Pop() (first E) {
	if q.Len() == 0 {
		return first
	}
	var none E
	first, q.list[q.head] = q.list[q.head], none
	if q.head++; q.head == len(q.list) {
		q.list, q.head = Cleared(q.list), 0
	}
	return first
}

// Cleared returns a list without elements, for reuse. It drops a large backing array, so that
// one large transaction does not determine the memory of all later ones.
func Cleared[E any](list []E) []E {
	const much = 1024
	if cap(list) > much {
		return nil
	}
	clear(list)
	return list[:0]
}

// Doubled doubles the capacity of a full list. append alone enlarges a long list by a quarter, and so
// copies 100,000 elements several times.
func Doubled[T any](list []T) []T {
	if len(list) < cap(list) {
		return list
	}
	return slices.Grow(list, len(list))
}
