package conformance

import (
	"bytes"
	"context"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Get implements kvdbsync.Store.
func (m *Memory) Get(ctx context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.pairs[key]
	if !ok {
		return nil, kvdbsync.ErrNotFound
	}
	return e.Value, ctx.Err()
}

// List implements kvdbsync.Store.
func (m *Memory) List(ctx context.Context, prefix string) ([]kvdbsync.Pair, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var pairs []kvdbsync.Pair
	for _, e := range m.under(prefix) {
		pairs = append(pairs, kvdbsync.Pair{Key: e.Key, Value: e.Value})
	}
	return pairs, ctx.Err()
}

// Put implements kvdbsync.Store.
func (m *Memory) Put(ctx context.Context, key string, value []byte) error {
	return m.Apply(ctx, []kvdbsync.Pair{{Key: key, Value: append([]byte{}, value...)}})
}

// Delete implements kvdbsync.Store.
func (m *Memory) Delete(ctx context.Context, key string) (existed bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, existed = m.pairs[key]; !existed || ctx.Err() != nil {
		return existed, ctx.Err()
	}
	m.changeLocked([]kvdbsync.Event{{Key: key}}, true)
	return true, nil
}

// PutIfAbsent implements kvdbsync.Writer.
func (m *Memory) PutIfAbsent(ctx context.Context, key string, value []byte) (stored bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.pairs[key]; there || ctx.Err() != nil {
		return false, ctx.Err()
	}
	m.changeLocked([]kvdbsync.Event{{Key: key, Value: append([]byte{}, value...)}}, true)
	return true, nil
}

// PutIfSame implements kvdbsync.Writer.
func (m *Memory) PutIfSame(ctx context.Context, key string, old, value []byte) (stored bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, there := m.pairs[key]
	if !there || !bytes.Equal(now.Value, old) || ctx.Err() != nil {
		return false, ctx.Err()
	}
	m.changeLocked([]kvdbsync.Event{{Key: key, Value: append([]byte{}, value...)}}, true)
	return true, nil
}

// Apply implements kvdbsync.Writer. It takes any number of changes, of keys that are not empty.
func (m *Memory) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.applyLocked(ctx, changes)
}

// applyLocked checks all changes before it makes the first. The caller holds mu.
func (m *Memory) applyLocked(ctx context.Context, changes []kvdbsync.Pair) error {
	events := make([]kvdbsync.Event, len(changes))
	for i, c := range changes {
		if c.Key == "" {
			return errEmptyKey
		}
		events[i] = kvdbsync.Event{Key: c.Key, Value: c.Value}
	}
	if len(events) == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	m.changeLocked(events, true)
	return nil
}
