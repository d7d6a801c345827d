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

// A Change describes names of namespaces that appeared or vanished.
type Change struct {
	Appeared []string    // names that lead to another namespace than before
	Gone     []kernel.ID // namespaces that were opened by a name and have none any more
}

// The file of a name appears shortly before its namespace is bound to it. inotify does not
// report the binding, so an unbound file is read again after these delays.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// Watch calls changed for each change of the names of namespaces until ctx ends. The first
// call reports the names that exist already.
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
	again, wait := time.NewTimer(0), firstRetry
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-w.Events:
			if strings.HasPrefix(e.Name, s.opts.Dir) {
				wait = firstRetry
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
			if unbound && wait < lastRetry {
				again.Reset(wait)
				wait *= 2
			}
		}
	}
}

// follow watches the folder and its parent, since the folder may be missing or be removed.
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

// names returns the namespace of each name, and whether some files are not bound yet.
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
		case id.Dev == dir.Dev: // not bound yet: still a plain file
			unbound = true
		default:
			now[entry.Name()] = id
		}
	}
	return now, unbound
}

// appeared returns the names that lead to another namespace than before.
func appeared(before, now map[string]kernel.ID) (names []string) {
	for name, id := range now {
		if was, ok := before[name]; !ok || was != id {
			names = append(names, name)
		}
	}
	return names
}

// nameless returns the namespaces that were opened by a name and have none now. It does
// not need the earlier names: a name may come and go unnoticed. The own namespace needs no
// name.
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
