package netns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/scheduler"
)

// A Change describes names of namespaces that appeared or vanished.
type Change struct {
	Appeared []string    // names that lead to another namespace than before
	Lost     []string    // names that lead nowhere any more
	Gone     []kernel.ID // namespaces that were opened by a name and have none any more
	// Offered are names that lead nowhere and that values need: the agent makes the namespace when a value enters
	// it. A name of Lost may be among them.
	Offered []string
	// Moved reports that a name leads to another namespace than before, and that the former one has
	// another name, so it is not gone: items may be where their values do not want them any more.
	Moved bool
}

// The file of a name appears shortly before its namespace is bound to it. inotify does not
// report the binding, so an unbound file is read again after these delays.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// Watch calls changed for each change of the names of namespaces until ctx ends. The first
// call reports the names that exist already. If inotify is not available, for lack of instances,
// the names are read every two seconds. It also follows which values need names.
func (s *Set) Watch(ctx context.Context, changed func(Change)) {
	r := reader{set: s, changed: changed, wait: firstRetry}
	var events chan fsnotify.Event
	var failures chan error
	if w, err := s.newWatcher(); err != nil {
		s.opts.Log.Warn("cannot watch the names of network namespaces; reading them from time to time", "every", lastRetry, "err", err)
	} else {
		defer w.Close()
		r.watcher, events, failures = w, w.Events, w.Errors
	}
	var statuses *scheduler.Watch[*scheduler.Status]
	var news <-chan struct{}
	if s.sched != nil {
		statuses = s.sched.Watch(followed)
		defer statuses.Close()
		news = statuses.Ready()
	}
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
			asked, left := s.users.update(statuses.Take(), s.usesOf)
			s.notes.leave(left...)
			if asked {
				again.Reset(0)
			}
		case e := <-events:
			if strings.HasPrefix(e.Name, s.opts.Dir) {
				r.wait = firstRetry
				again.Reset(0)
			}
		case err := <-failures:
			s.opts.Log.Warn("watching named network namespaces", "dir", s.opts.Dir, "err", err)
			again.Reset(0)
		case <-again.C:
			if delay := r.read(); delay > 0 {
				again.Reset(delay)
			}
		}
	}
}

// newWatcher returns a watcher of the folder.
func (s *Set) newWatcher() (*fsnotify.Watcher, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", s.opts.Dir, err)
	}
	if err := s.follow(w); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// reader reports the differences between two readings of the names. The goroutine of Watch owns
// it.
type reader struct {
	set     *Set
	watcher *fsnotify.Watcher // nil: inotify is not available
	changed func(Change)
	known   map[string]kernel.ID
	offered map[string]bool
	wait    time.Duration // until the next reading if a file is not bound yet
}

// read reads the names, and returns the delay of the next reading: 0 if events tell of changes.
func (r *reader) read() time.Duration {
	watched := r.watcher != nil && r.set.follow(r.watcher) == nil
	opened := r.set.openedByName() // before the names are read: a name may come before it is opened
	now, unbound, err := r.set.names()
	if err != nil {
		r.set.opts.Log.Warn("the names of network namespaces may be out of date", "err", err)
		return lastRetry
	}
	offers := r.set.offers(now)
	c := Change{Appeared: appeared(now, r.known), Lost: lost(now, r.known), Gone: r.set.nameless(opened, now), Moved: moved(now, r.known)}
	r.known = now
	r.offer(&c, offers)
	r.set.noteAllForeign()
	if len(c.Appeared)+len(c.Lost)+len(c.Gone)+len(c.Offered) > 0 {
		r.changed(c)
	}
	switch delay := r.wait; {
	case !watched:
		return lastRetry
	case unbound:
		r.wait = min(2*delay, lastRetry)
		return delay
	}
	return 0
}

// offer adds to a change the names that are offered now and were not before, and those that are no more.
func (r *reader) offer(c *Change, names []string) {
	offered := map[string]bool{}
	for _, name := range names {
		offered[name] = true
		if !r.offered[name] {
			c.Offered = append(c.Offered, name)
		}
	}
	for name := range r.offered {
		if _, exists := r.known[name]; !exists && !offered[name] {
			c.Lost = append(c.Lost, name)
		}
	}
	r.offered = offered
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

// appeared returns the names that lead to another namespace than before.
func appeared(now, before map[string]kernel.ID) (names []string) {
	for name, id := range now {
		if was, ok := before[name]; !ok || was != id {
			names = append(names, name)
		}
	}
	return names
}

// moved reports whether a name leads to another namespace than before, while the former one has
// another name.
func moved(now, before map[string]kernel.ID) bool {
	named := map[kernel.ID]bool{}
	for id := range maps.Values(now) {
		named[id] = true
	}
	for name, was := range before {
		if id, ok := now[name]; ok && id != was && named[was] {
			return true
		}
	}
	return false
}

// lost returns the names that are no more.
func lost(now, before map[string]kernel.ID) (names []string) {
	for name := range before {
		if _, ok := now[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

// openedByName returns the namespaces that were opened by a name and are still open.
func (s *Set) openedByName() (opened []kernel.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, space := range s.open {
		if space.named {
			opened = append(opened, id)
		}
	}
	return opened
}

// nameless returns those of opened that have no name now. It does not need the earlier names: a
// name may come and go unnoticed. The own namespace needs no name.
func (s *Set) nameless(opened []kernel.ID, now map[string]kernel.ID) (gone []kernel.ID) {
	named := map[kernel.ID]bool{}
	for id := range maps.Values(now) {
		named[id] = true
	}
	if own, err := s.opts.Host.Stat(s.opts.Own); err == nil {
		named[own] = true
	}
	for _, id := range opened {
		if !named[id] {
			gone = append(gone, id)
		}
	}
	return gone
}
