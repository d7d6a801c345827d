package bolt

import (
	"context"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A session remembers what it wrote. A file has no keys that vanish by themselves,
// so if the agent dies they stay.
type session struct {
	*DB
	lost chan struct{}
	lose func() // closes lost, once
}

// Session implements kvdbsync.Publisher. It lasts until Close, or until another file
// is found in the place of this one; ttl does not count.
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
	if err := s.open(ctx); err != nil { // which may find that the session is lost
		return err
	}
	if _, lives := s.sessions[s]; !lives {
		return kvdbsync.ErrSessionOver
	}
	if err := s.writeLocked(ctx, func(b *bbolt.Bucket) ([]kvdbsync.Event, error) { return s.apply(b, changes) }); err != nil {
		return err
	}
	for _, c := range changes {
		if s.owners[c.Key] = s; c.Value == nil {
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
	_ = s.verify() // which may find that the session is lost; another file is not touched
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

// endSessions forgets what was written into a file that is no longer there.
func (db *DB) endSessions() {
	for s := range db.sessions {
		db.endSession(s)
	}
}

func (db *DB) endSession(s *session) {
	delete(db.sessions, s)
	for key, owner := range db.owners {
		if owner == s {
			delete(db.owners, key)
		}
	}
	s.lose()
}
