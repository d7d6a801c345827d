package skeleton

import (
	"context"
	"maps"
	"sync"
)

// memory is a Device that is nowhere. Where your system can run in a test, use it
// instead.
type memory struct {
	mu      sync.Mutex
	entries map[uint32]Entry
	last    uint32
}

func newMemory(others ...Entry) *memory {
	m := &memory{entries: map[uint32]Entry{}}
	for _, e := range others {
		m.last++
		m.entries[m.last] = e
	}
	return m
}

func (m *memory) Add(_ context.Context, e Entry) (uint32, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, have := range m.entries {
		if have.Tag == e.Tag {
			return 0, ErrTagTaken
		}
	}
	m.last++
	m.entries[m.last] = e
	return m.last, nil
}

func (m *memory) Set(_ context.Context, id uint32, e Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	have, ok := m.entries[id]
	if !ok {
		return ErrNoPolicer
	}
	have.RateKbps, have.Burst = e.RateKbps, e.Burst
	m.entries[id] = have
	return nil
}

func (m *memory) Remove(_ context.Context, id uint32) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.entries[id]; !ok {
		return ErrNoPolicer
	}
	delete(m.entries, id)
	return nil
}

func (m *memory) List(context.Context) (map[uint32]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.entries), nil
}
