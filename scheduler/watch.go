package scheduler

import (
	"context"

	"github.com/keyplane/keyplane/scheduler/internal/watch"
)

// A Watch yields the present content, and then its changes. If its reader is slow, it
// yields the newest item of each key and misses none. One goroutine reads it; Close ends
// it. A Watch that is not closed keeps one item per changed key in memory.
type Watch[T any] struct {
	next  func(context.Context) ([]T, error)
	take  func() []T
	ready <-chan struct{}
	close func()
}

// newWatch returns a Watch over r, with items in their public form.
func newWatch[U, T any](r *watch.Reader[U], public func(U) T) *Watch[T] {
	all := func(items []U) []T {
		var out []T
		for _, item := range items {
			out = append(out, public(item))
		}
		return out
	}
	next := func(ctx context.Context) ([]T, error) {
		items, err := r.Next(ctx)
		return all(items), err
	}
	return &Watch[T]{next: next, take: func() []T { return all(r.Take()) }, ready: r.Ready(), close: r.Close}
}

// Watch watches the statuses of the values with the key prefix. It begins with their present
// statuses, in no order. A removed value is REMOVED.
func (s *Scheduler) Watch(prefix string) *Watch[*Status] {
	return newWatch(s.watchers.Open(prefix, s.statuses.All()), statusOf)
}

// Next waits for changes and returns them, in the order of the first change of each key. It
// returns the error of ctx when ctx ends.
func (w *Watch[T]) Next(ctx context.Context) ([]T, error) { return w.next(ctx) }

// Take returns the changes that Next would return now, without waiting: none if there are
// none. After Watch it returns the content.
func (w *Watch[T]) Take() []T { return w.take() }

// Ready has a token when Take may return changes, for a reader that also waits for something
// else.
func (w *Watch[T]) Ready() <-chan struct{} { return w.ready }

// Close ends the watch and drops changes that it has not yielded.
func (w *Watch[T]) Close() { w.close() }
