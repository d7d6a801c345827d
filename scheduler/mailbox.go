package scheduler

import (
	"context"
	"sync"
)

// mailbox holds the newest of each key until it is taken. So it is bounded by
// the number of keys, whoever puts never waits, and nothing is lost.
type mailbox[T any] struct {
	ready chan struct{} // holds a token while there is something

	mu    sync.Mutex
	news  map[string]T
	order []string
}

func newMailbox[T any]() mailbox[T] { return mailbox[T]{ready: make(chan struct{}, 1)} }

func (m *mailbox[T]) put(key string, item T) {
	m.putAll(func(T) string { return key }, item)
}

// putAll puts items at once: whoever takes one of them takes all, or what has replaced them.
func (m *mailbox[T]) putAll(key func(T) string, items ...T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.news == nil {
		m.news = map[string]T{}
	}
	for _, item := range items {
		if _, ok := m.news[key(item)]; !ok {
			m.order = append(m.order, key(item))
		}
		m.news[key(item)] = item
	}
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// next waits until there is something, and takes it.
func (m *mailbox[T]) next(ctx context.Context) ([]T, error) {
	for {
		select {
		case <-m.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if out := m.take(); len(out) > 0 {
			return out, nil
		}
	}
}

// take empties the box, in the order in which keys first came.
func (m *mailbox[T]) take() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]T, len(m.order))
	for i, key := range m.order {
		out[i] = m.news[key]
	}
	m.news, m.order = nil, nil
	return out
}
