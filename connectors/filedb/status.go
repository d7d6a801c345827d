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

// A status is what sessions write: all of the store that is the agent's.
type status struct {
	place statusPlace // nil: there is none

	mu     sync.Mutex          // guards what follows, and changes of the place
	owners map[string]*session // of the keys that sessions wrote; nil: there was no session yet
}

// A statusPlace is where status is kept, in one of two forms.
type statusPlace interface {
	// begin makes sure that the place is one, before its first change.
	begin() error
	// change makes changes, whose values are compact JSON.
	change([]kvdbsync.Pair) error
	// under returns what is on disk below a prefix, in any order, also beside a change.
	under(prefix string) ([]kvdbsync.Pair, error)
}

// newStatus takes a path that ends in a slash for a folder. It lies outside of places.
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

// under returns what is published below a prefix.
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

// change makes changes, all of whose values must be JSON. The mutex is held.
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

// A session remembers what it wrote. A file has no keys that vanish by themselves,
// so if the agent dies they stay.
type session struct {
	db     *DB
	closed bool // guarded by the mutex of status
	lost   chan struct{}
}

// Session implements kvdbsync.Publisher. What it writes is at StatusPath: in a file, which
// is replaced as a whole at each Apply, or in a folder, in a file for each key. It lasts
// until Close, and ttl does not count.
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

// Apply implements kvdbsync.Session, at once in a file, and key by key in a folder. Values
// are JSON.
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
		if st.owners[c.Key] = s; c.Value == nil {
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
