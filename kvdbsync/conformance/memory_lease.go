package conformance

import (
	"bytes"
	"context"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// Lease implements kvdbsync.Leaser.
func (m *Memory) Lease(ctx context.Context, ttl time.Duration) (kvdbsync.Lease, error) {
	s, err := m.Session(ctx, ttl)
	if err != nil {
		return nil, err
	}
	return s.(*memorySession), nil
}

// TTL implements kvdbsync.Lease.
func (s *memorySession) TTL() time.Duration { return s.ttl }

// Over implements kvdbsync.Lease.
func (s *memorySession) Over() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.sessions[s] {
		return kvdbsync.ErrSessionOver
	}
	return nil
}

// Left implements kvdbsync.Lease.
func (s *memorySession) Left(_ context.Context, key string) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch _, exists := s.pairs[key]; {
	case s.severed:
		return 0, errSevered
	case !exists:
		return 0, nil
	}
	for holder := range s.sessions {
		if holder.keys[key] {
			return holder.ttl, nil
		}
	}
	return kvdbsync.Forever, nil
}

// Claim implements kvdbsync.Lease.
func (s *memorySession) Claim(ctx context.Context, key string, old, value []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.pairs[key].Value
	switch {
	case s.severed:
		return nil, errSevered
	case !s.sessions[s]:
		return nil, kvdbsync.ErrSessionOver
	case (now == nil) != (old == nil) || !bytes.Equal(now, old):
		return now, nil
	}
	return value, s.writeLocked(ctx, []kvdbsync.Pair{{Key: key, Value: value}})
}
