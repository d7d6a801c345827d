package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

var (
	errEmptyKey = errors.New("the key is empty")
	errSevered  = errors.New("the store cannot be reached")
)

// A memorySession lives until it is closed or revoked, or severed for too long. The
// fields are guarded by the Memory.
type memorySession struct {
	*Memory
	ttl  time.Duration
	keys map[string]bool // that it wrote last
	end  *time.Timer     // nil: it is not severed
	lost chan struct{}
}

// Session implements kvdbsync.Publisher.
func (m *Memory) Session(ctx context.Context, ttl time.Duration) (kvdbsync.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.severed {
		return nil, errSevered
	}
	s := &memorySession{Memory: m, ttl: ttl, keys: map[string]bool{}, lost: make(chan struct{})}
	if m.sessions == nil {
		m.sessions = map[*memorySession]bool{}
	}
	m.sessions[s] = true
	return s, ctx.Err()
}

// Sever keeps sessions from the store until restore is called; those that are
// severed for longer than their ttl are lost.
func (m *Memory) Sever() (restore func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.severed = true
	for s := range m.sessions {
		// Real stores expire a session that is not renewed; this one cannot be renewed
		// while severed.
		s.end = time.AfterFunc(s.ttl, func() { m.revoke(s) })
	}
	return m.restore
}

// restore ends Sever. Sessions that have not expired yet live on.
func (m *Memory) restore() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.severed = false
	for s := range m.sessions {
		s.end.Stop()
	}
}

// Revoke ends all sessions.
func (m *Memory) Revoke() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s := range m.sessions {
		m.endLocked(s)
	}
}

// revoke ends a session that has expired. A timer may fire just after restore, or after
// the session has ended, so it looks again under the lock.
func (m *Memory) revoke(s *memorySession) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.severed && m.sessions[s] {
		m.endLocked(s)
	}
}

// endLocked takes what a session wrote out of the store. The caller holds mu.
func (m *Memory) endLocked(s *memorySession) {
	delete(m.sessions, s)
	close(s.lost)
	var gone []kvdbsync.Event
	for key := range s.keys {
		gone = append(gone, kvdbsync.Event{Key: key})
	}
	if len(gone) > 0 {
		m.changeLocked(gone, true)
	}
}

// Apply implements kvdbsync.Session.
func (s *memorySession) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.severed:
		return errSevered
	case !s.sessions[s]:
		return kvdbsync.ErrSessionOver
	}
	return s.writeLocked(ctx, changes)
}

// List implements kvdbsync.Session.
func (s *memorySession) List(ctx context.Context, prefix string) ([]kvdbsync.Pair, error) {
	if s.isSevered() {
		return nil, errSevered
	}
	return s.Memory.List(ctx, prefix)
}

// Get implements kvdbsync.Session.
func (s *memorySession) Get(ctx context.Context, key string) ([]byte, error) {
	if s.isSevered() {
		return nil, errSevered
	}
	return s.Memory.Get(ctx, key)
}

func (s *memorySession) isSevered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.severed
}

// writeLocked makes the keys this session's. The caller holds mu.
func (s *memorySession) writeLocked(ctx context.Context, changes []kvdbsync.Pair) error {
	if err := s.applyLocked(ctx, changes); err != nil {
		return err
	}
	for _, c := range changes {
		if c.Value != nil {
			s.keys[c.Key] = true
		}
	}
	return nil
}

// Lost implements kvdbsync.Session.
func (s *memorySession) Lost() <-chan struct{} { return s.lost }

// Close implements kvdbsync.Session.
func (s *memorySession) Close(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[s] {
		s.endLocked(s)
	}
	return nil
}
