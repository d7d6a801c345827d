package filedb

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A status is the published status: the only part of the store that the agent writes.
type status struct {
	place statusPlace // nil: there is none

	mu     sync.Mutex          // guards the fields below, and changes of the place
	owners map[string]*session // of keys; nil: there was no session yet
}

// A statusPlace keeps status in one of two forms.
type statusPlace interface {
	// begin checks the place before its first change.
	begin() error
	// change makes changes. Values are compact JSON.
	change([]kvdbsync.Pair) error
	// under returns the pairs on disk below a prefix, in any order. It may run during a
	// change.
	under(prefix string) ([]kvdbsync.Pair, error)
	// get returns the value of a key on disk; nil: it has none. It may run during a change.
	get(key string) ([]byte, error)
}

// newStatus treats a path that ends in a slash as a folder. It must lie outside of places.
func newStatus(path string, places []string) (*status, error) {
	if path == "" {
		return &status{}, nil
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("status-path: %w", err)
	}
	for _, place := range places {
		if within(absolute, place) {
			return nil, fmt.Errorf("status-path: %s lies in %s of configuration-paths: expected one outside, such as /var/lib/keyplane/status.json", absolute, place)
		}
	}
	if strings.HasSuffix(path, "/") {
		return &status{place: statusDir{absolute}}, nil
	}
	return &status{place: &statusFile{path: absolute}}, nil
}

// under returns the published pairs below a prefix.
func (st *status) under(prefix string) ([]kvdbsync.Pair, error) {
	if st.place == nil {
		return nil, nil
	}
	pairs, err := st.place.under(prefix)
	if err != nil {
		return nil, fmt.Errorf("status-path: %w", err)
	}
	return pairs, nil
}

// change makes changes. All values must be JSON. The mutex is held.
func (st *status) change(changes []kvdbsync.Pair) error {
	compact := slices.Clone(changes)
	for i, c := range changes {
		if c.Value == nil {
			continue
		}
		var value bytes.Buffer
		if err := json.Compact(&value, c.Value); err != nil {
			return fmt.Errorf("status-path: value of %s: expected JSON: %w", c.Key, err)
		}
		compact[i].Value = value.Bytes()
	}
	if err := st.place.change(compact); err != nil {
		return fmt.Errorf("status-path: %w", err)
	}
	return nil
}

// A session remembers its keys. Keys in files do not expire, so they stay if the agent
// dies.
type session struct {
	db     *DB
	closed bool // guarded by the mutex of status
	lost   chan struct{}
}

// Session implements kvdbsync.Publisher. It writes to StatusPath: a file that each Apply
// replaces as a whole, or a folder with one file per key. It lasts until Close; ttl has no
// effect.
func (db *DB) Session(_ context.Context, _ time.Duration) (kvdbsync.Session, error) {
	st := db.status
	if st.place == nil {
		return nil, fmt.Errorf("%w: set status-path to a file or a folder that status may be written to", kvdbsync.ErrReadOnly)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.owners == nil {
		if err := st.place.begin(); err != nil {
			return nil, fmt.Errorf("status-path: %w", err)
		}
		st.owners = map[string]*session{}
	}
	return &session{db: db, lost: make(chan struct{})}, nil
}

// List implements kvdbsync.Session.
func (s *session) List(ctx context.Context, prefix string) ([]kvdbsync.Pair, error) {
	return s.db.List(ctx, prefix)
}

// Get implements kvdbsync.Session. It reads status alone, which is all that sessions write.
func (s *session) Get(_ context.Context, key string) ([]byte, error) {
	value, err := s.db.status.place.get(key)
	switch {
	case err != nil:
		return nil, fmt.Errorf("status-path: %w", err)
	case value == nil:
		return nil, fmt.Errorf("%s: %w", key, kvdbsync.ErrNotFound)
	}
	return value, nil
}

// Apply implements kvdbsync.Session: atomically in a file, key by key in a folder. Values
// must be JSON.
func (s *session) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	st := s.db.status
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case s.closed:
		return kvdbsync.ErrSessionOver
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if err := st.change(changes); err != nil {
		return err
	}
	for _, c := range changes {
		st.owners[c.Key] = s
		if c.Value == nil {
			delete(st.owners, c.Key)
		}
	}
	return nil
}

// Lost implements kvdbsync.Session.
func (s *session) Lost() <-chan struct{} { return s.lost }

// Close implements kvdbsync.Session.
func (s *session) Close(context.Context) error {
	st := s.db.status
	st.mu.Lock()
	defer st.mu.Unlock()
	var mine []kvdbsync.Pair
	for key, owner := range st.owners {
		if owner == s {
			mine = append(mine, kvdbsync.Pair{Key: key})
			delete(st.owners, key)
		}
	}
	s.closed = true
	if len(mine) == 0 {
		return nil
	}
	return st.change(mine)
}
