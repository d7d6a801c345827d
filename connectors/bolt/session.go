package bolt

import (
	"context"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A session remembers its keys. Keys in a file do not expire, so they stay if the agent
// dies.
type session struct {
	*DB
	lost chan struct{}
	lose func() // closes lost, once
}

// Session implements kvdbsync.Publisher. It lasts until Close, or until the file is
// replaced by another one. ttl has no effect.
func (db *DB) Session(ctx context.Context, _ time.Duration) (kvdbsync.Session, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if err := db.open(ctx); err != nil {
		return nil, err
	}
	s := &session{DB: db, lost: make(chan struct{})}
	s.lose = sync.OnceFunc(func() { close(s.lost) })
	db.sessions[s] = struct{}{}
	return s, nil
}

// Apply implements kvdbsync.Session, in one transaction.
func (s *session) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(ctx); err != nil { // this may end the session
		return err
	}
	if _, lives := s.sessions[s]; !lives {
		return kvdbsync.ErrSessionOver
	}
	if err := s.writeLocked(ctx, func(b *bbolt.Bucket) ([]kvdbsync.Event, error) { return s.apply(b, changes) }); err != nil {
		return err
	}
	for _, c := range changes {
		s.owners[c.Key] = s
		if c.Value == nil {
			delete(s.owners, c.Key)
		}
	}
	return nil
}

// Lost implements kvdbsync.Session.
func (s *session) Lost() <-chan struct{} { return s.lost }

// Close implements kvdbsync.Session.
func (s *session) Close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.verify() // this may end the session; another file is not touched
	if _, lives := s.sessions[s]; !lives {
		return nil
	}
	var mine []kvdbsync.Pair
	for key, owner := range s.owners {
		if owner == s {
			mine = append(mine, kvdbsync.Pair{Key: key})
		}
	}
	s.endSession(s)
	return s.writeLocked(ctx, func(b *bbolt.Bucket) ([]kvdbsync.Event, error) { return s.apply(b, mine) })
}

// endSessions forgets the keys that sessions wrote into a file that is gone.
func (db *DB) endSessions() {
	for s := range db.sessions {
		db.endSession(s)
	}
}

// endSession forgets the session and its ownership of keys. The caller holds mu.
func (db *DB) endSession(s *session) {
	delete(db.sessions, s)
	for key, owner := range db.owners {
		if owner == s {
			delete(db.owners, key)
		}
	}
	s.lose()
}
