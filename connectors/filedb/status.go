package filedb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/keyplane/keyplane/kvdbsync"
)

// A statusFile is what sessions write: the one file of the store that is the agent's.
type statusFile struct {
	path string // "": there is none

	mu     sync.Mutex               // guards what follows
	pairs  map[string]kvdbsync.Pair // what the file holds; nil: it has not been read
	owners map[string]*session      // of the keys that sessions wrote
}

// A session remembers what it wrote. A file has no keys that vanish by themselves,
// so if the agent dies they stay.
type session struct {
	db     *DB
	closed bool // guarded by the file's mutex
	lost   chan struct{}
}

// Session implements kvdbsync.Publisher. What it writes is in the file at StatusPath,
// which is replaced as a whole at each Apply; it lasts until Close, and ttl does not count.
func (db *DB) Session(_ context.Context, _ time.Duration) (kvdbsync.Session, error) {
	f := &db.status
	if f.path == "" {
		return nil, fmt.Errorf("%w: set status-path to a file that status may be written to", kvdbsync.ErrReadOnly)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pairs == nil {
		pairs, err := f.read()
		if err != nil {
			return nil, err
		}
		f.pairs, f.owners = pairs, map[string]*session{}
	}
	return &session{db: db, lost: make(chan struct{})}, nil
}

// List implements kvdbsync.Session.
func (s *session) List(ctx context.Context, prefix string) ([]kvdbsync.Pair, error) {
	return s.db.List(ctx, prefix)
}

// Apply implements kvdbsync.Session, at once. Values are JSON.
func (s *session) Apply(ctx context.Context, changes []kvdbsync.Pair) error {
	f := &s.db.status
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case s.closed:
		return kvdbsync.ErrSessionOver
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if err := f.change(changes); err != nil {
		return err
	}
	for _, c := range changes {
		if f.owners[c.Key] = s; c.Value == nil {
			delete(f.owners, c.Key)
		}
	}
	return nil
}

// Lost implements kvdbsync.Session.
func (s *session) Lost() <-chan struct{} { return s.lost }

// Close implements kvdbsync.Session.
func (s *session) Close(context.Context) error {
	f := &s.db.status
	f.mu.Lock()
	defer f.mu.Unlock()
	var mine []kvdbsync.Pair
	for key, owner := range f.owners {
		if owner == s {
			mine = append(mine, kvdbsync.Pair{Key: key})
			delete(f.owners, key)
		}
	}
	s.closed = true
	if len(mine) == 0 {
		return nil
	}
	return f.change(mine)
}

// change replaces the file by one with the changes made. The mutex is held.
func (f *statusFile) change(changes []kvdbsync.Pair) error {
	pairs := maps.Clone(f.pairs)
	for _, c := range changes {
		if c.Value == nil {
			delete(pairs, c.Key)
			continue
		}
		var value bytes.Buffer
		if err := json.Compact(&value, c.Value); err != nil {
			return fmt.Errorf("%s: value of %s: want JSON: %w", f.path, c.Key, err)
		}
		pairs[c.Key] = kvdbsync.Pair{Key: c.Key, Value: value.Bytes()}
	}
	if err := f.write(pairs); err != nil {
		return fmt.Errorf("status-path: %w", err)
	}
	f.pairs = pairs
	return nil
}

// write puts a new file in the place of the old one. Whoever reads sees one or the other.
func (f *statusFile) write(pairs map[string]kvdbsync.Pair) error {
	dir, name := filepath.Split(f.path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	next, err := os.CreateTemp(dir, "."+name+".*")
	if err != nil {
		return err
	}
	_, err = next.Write(statusText(pairs))
	err = errors.Join(err, next.Chmod(0o644), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return nil
}

// statusText is the key/value form, with a line for each key.
func statusText(pairs map[string]kvdbsync.Pair) []byte {
	var out bytes.Buffer
	out.WriteString("{\"data\": [")
	for i, key := range slices.Sorted(maps.Keys(pairs)) {
		if i > 0 {
			out.WriteString(",")
		}
		quoted, _ := json.Marshal(key) // which never fails
		fmt.Fprintf(&out, "\n{\"key\": %s, \"value\": %s}", quoted, pairs[key].Value)
	}
	out.WriteString("\n]}\n")
	return out.Bytes()
}

// read returns what the file holds; it may be missing, or empty. One that is none of ours
// is an error: it is not to be overwritten.
func (f *statusFile) read() (map[string]kvdbsync.Pair, error) {
	text, err := os.ReadFile(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("status-path: %w", err)
	}
	pairs := map[string]kvdbsync.Pair{}
	if len(bytes.TrimSpace(text)) == 0 {
		return pairs, nil
	}
	var file struct {
		Data []struct {
			Key   string          `json:"key"`
			Value json.RawMessage `json:"value"`
		} `json:"data"`
	}
	if err := json.Unmarshal(text, &file); err != nil || file.Data == nil {
		return nil, fmt.Errorf("status-path: %s is no status file: remove it, or choose another path", f.path)
	}
	for _, p := range file.Data {
		pairs[p.Key] = kvdbsync.Pair{Key: p.Key, Value: p.Value}
	}
	return pairs, nil
}

// under returns what the file on disk holds below a prefix, for those who only read.
func (f *statusFile) under(prefix string) ([]kvdbsync.Pair, error) {
	if f.path == "" {
		return nil, nil
	}
	pairs, err := f.read()
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(pairs, func(key string, _ kvdbsync.Pair) bool { return !strings.HasPrefix(key, prefix) })
	return slices.Collect(maps.Values(pairs)), nil
}
