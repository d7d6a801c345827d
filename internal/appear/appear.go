// Package appear waits for a socket that does not exist yet, without asking for it again and again.
package appear

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// longestWait is the longest time between two checks for a missing socket.
	longestWait = time.Minute
	// BindToListen is the first bound of the waits after a socket was created: its server does not
	// listen on it yet.
	BindToListen = time.Millisecond
)

// An Absence is the time without a connection. It watches the folder of the socket, so that
// a new server is found as soon as it creates its socket. The zero value with a Path works. It
// is for one goroutine, which must call End.
type Absence struct {
	// Path is the absolute path of the socket. Where it is empty, or not absolute, nothing is watched.
	Path    string
	dir     string            // the folder that is watched: that of the socket, or one above it
	watcher *fsnotify.Watcher // nil: nothing is watched
}

// Watch watches the deepest folder above the socket that exists, and reports whether it is
// watched. A watch that exists already goes on, because it misses nothing.
func (a *Absence) Watch() bool {
	if a.watcher != nil || !filepath.IsAbs(a.Path) {
		return a.watcher != nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return false
	}
	dir := filepath.Dir(a.Path)
	for watcher.Add(dir) != nil { // it does not exist either
		if dir == filepath.Dir(dir) {
			watcher.Close()
			return false
		}
		dir = filepath.Dir(dir)
	}
	a.watcher, a.dir = watcher, dir
	for !a.atSocket() { // a folder may have been created meanwhile
		below := a.nextBelow()
		if watcher.Add(below) != nil {
			break
		}
		_ = watcher.Remove(a.dir) // fails only if it has gone
		a.dir = below
	}
	return true
}

// Wait waits for d, and returns at once when the socket may have been created. It reports
// whether that was the reason. A calm wait costs nothing on a host without the server: it lasts
// longer than d, since a missing socket appears only by being created. If the file system
// cannot be watched, only d counts.
func (a *Absence) Wait(ctx context.Context, d time.Duration, calm bool) (created bool) {
	var events <-chan fsnotify.Event
	var errs <-chan error
	if a.Watch() {
		events, errs = a.watcher.Events, a.watcher.Errors
		switch {
		case !a.atSocket() && exists(a.nextBelow()): // created before the watch, or not to be watched
			defer a.End()
		case calm:
			d = longestWait
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case e := <-events:
			if a.watchedEnough(e) {
				a.End()
				return true
			}
			if e.Name == a.Path && e.Has(fsnotify.Create) {
				return true
			}
		case err := <-errs: // events were lost
			if err != nil {
				a.End()
				return true
			}
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// atSocket reports whether the folder of the socket itself is watched.
func (a *Absence) atSocket() bool { return a.dir == filepath.Dir(a.Path) }

// watchedEnough reports whether another folder is to be watched after an event: the watched
// one has gone, or the one below it has come.
func (a *Absence) watchedEnough(e fsnotify.Event) bool {
	if e.Name == a.dir {
		return e.Has(fsnotify.Remove | fsnotify.Rename)
	}
	return !a.atSocket() && e.Name == a.nextBelow()
}

// nextBelow is the socket, or the folder above it that is directly below the watched folder.
func (a *Absence) nextBelow() string {
	rest := strings.TrimPrefix(strings.TrimPrefix(a.Path, a.dir), "/")
	first, _, _ := strings.Cut(rest, "/")
	return filepath.Join(a.dir, first)
}

// End closes the watch. A later wait begins another one.
func (a *Absence) End() {
	if a.watcher != nil {
		a.watcher.Close()
		a.watcher = nil
	}
}

// exists reports whether something is at path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
