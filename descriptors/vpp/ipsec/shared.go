package ipsec

import (
	"context"
	"sync"
)

// shared shares the results of an expensive read among callers that wait at the same time. Each
// gets the result of a read that began after its call, so it never gets an older state.
type shared[T any] struct {
	turn chan struct{} // holds one token; its holder may read

	mu   *sync.Mutex // guards next
	next *reading[T] // has not begun; nil: nobody waits for one
}

// A reading is one read and its result, which is there when done is closed.
type reading[T any] struct {
	done   chan struct{}
	result T
	err    error
}

func newShared[T any]() shared[T] {
	s := shared[T]{turn: make(chan struct{}, 1), mu: &sync.Mutex{}}
	s.turn <- struct{}{}
	return s
}

// get returns the result of read. The first of several callers that wait calls it, with its own
// context; so the others fail if that one's ends.
func (s *shared[T]) get(ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	s.mu.Lock()
	mine := s.next == nil
	if mine {
		s.next = &reading[T]{done: make(chan struct{})}
	}
	one := s.next
	s.mu.Unlock()
	if !mine {
		select {
		case <-one.done:
		case <-ctx.Done():
			return one.result, ctx.Err()
		}
		return one.result, one.err
	}
	defer close(one.done)
	var begun bool
	select {
	case <-s.turn:
		begun = true
		defer func() { s.turn <- struct{}{} }()
	case <-ctx.Done():
		one.err = ctx.Err()
	}
	s.mu.Lock()
	s.next = nil // those who come from now on need a newer one
	s.mu.Unlock()
	if begun {
		one.result, one.err = read(ctx)
	}
	return one.result, one.err
}
