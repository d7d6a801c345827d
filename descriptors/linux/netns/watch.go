package netns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
)

// A Change is what happened to the names of namespaces.
type Change struct {
	Appeared []string    // names that lead to a namespace, as they did not before
	Gone     []kernel.ID // namespaces that were opened by a name, and have none any more
}

// A name is in the folder a moment before its namespace is bound to it, of which
// no file event tells.
const (
	firstLook = 5 * time.Millisecond
	lastLook  = 2 * time.Second
)

// Watch calls changed for each change of the names of namespaces until ctx ends.
// It starts with a call for those that have names already.
func (s *Set) Watch(ctx context.Context, changed func(Change)) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching %s: %w", s.opts.Dir, err)
	}
	defer w.Close()
	if err := s.follow(w); err != nil {
		return err
	}
	known := map[string]kernel.ID{}
	again, wait := time.NewTimer(0), firstLook
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-w.Events:
			if strings.HasPrefix(e.Name, s.opts.Dir) {
				wait = firstLook
				again.Reset(0)
			}
		case err := <-w.Errors:
			s.opts.Log.Warn("watching named network namespaces", "dir", s.opts.Dir, "err", err)
			again.Reset(0)
		case <-again.C:
			if err := s.follow(w); err != nil {
				return err
			}
			now, unbound := s.names()
			c := Change{Appeared: appeared(known, now), Gone: s.nameless(now)}
			if len(c.Appeared)+len(c.Gone) > 0 {
				changed(c)
			}
			known = now
			if unbound && wait < lastLook {
				again.Reset(wait)
				wait *= 2
			}
		}
	}
}

// follow watches the folder and, as it may be missing or be removed, the one
// above it.
func (s *Set) follow(w *fsnotify.Watcher) error {
	above := filepath.Dir(s.opts.Dir)
	if err := w.Add(above); err != nil {
		return fmt.Errorf("watching %s: %w", above, err)
	}
	if err := w.Add(s.opts.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("watching %s: %w", s.opts.Dir, err)
	}
	return nil
}

// names tells which namespace each name leads to, and whether some lead to none.
func (s *Set) names() (now map[string]kernel.ID, unbound bool) {
	now = map[string]kernel.ID{}
	dir, err := s.opts.Host.Stat(s.opts.Dir)
	if err != nil {
		return now, false
	}
	entries, err := os.ReadDir(s.opts.Dir)
	if err != nil {
		return now, false
	}
	for _, entry := range entries {
		id, err := s.opts.Host.Stat(filepath.Join(s.opts.Dir, entry.Name()))
		switch {
		case err != nil:
		case id.Dev == dir.Dev: // still the file itself
			unbound = true
		default:
			now[entry.Name()] = id
		}
	}
	return now, unbound
}

// appeared are the names that lead elsewhere than before.
func appeared(before, now map[string]kernel.ID) (names []string) {
	for name, id := range now {
		if was, ok := before[name]; !ok || was != id {
			names = append(names, name)
		}
	}
	return names
}

// nameless are the namespaces that are open by a name, and have none now. It does
// not matter whether the name was ever seen here: it may come and go unseen. Our
// own namespace needs no name.
func (s *Set) nameless(now map[string]kernel.ID) (gone []kernel.ID) {
	named := map[kernel.ID]bool{}
	for id := range maps.Values(now) {
		named[id] = true
	}
	if own, err := s.opts.Host.Stat(s.opts.Own); err == nil {
		named[own] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, space := range s.open {
		if space.named && !named[id] {
			gone = append(gone, id)
		}
	}
	return gone
}
