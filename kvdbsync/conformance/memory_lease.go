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
