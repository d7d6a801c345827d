package conn

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
	// bindToListen is the first bound of the waits after a socket was created: VPP does not
	// listen on it yet.
	bindToListen = time.Millisecond
)

// An absence is the time without a connection. It watches the folder of the socket, so that
// a new VPP is found as soon as it creates its socket. The zero value with a path works. It
// is for one goroutine, which must call end.
type absence struct {
	path    string            // absolute
	dir     string            // the folder that is watched: that of the socket, or one above it
	watcher *fsnotify.Watcher // nil: nothing is watched
}

// watch watches the deepest folder above the socket that exists, and reports whether it is
// watched. A watch that exists already goes on, because it misses nothing.
func (a *absence) watch() bool {
	if a.watcher != nil {
		return true
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return false
	}
	dir := filepath.Dir(a.path)
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

// wait waits for d, and returns at once when the socket may have been created. It reports
// whether that was the reason. A calm wait costs nothing on a host without VPP: it lasts
// longer than d, since a missing socket appears only by being created. If the file system
// cannot be watched, only d counts.
func (a *absence) wait(ctx context.Context, d time.Duration, calm bool) (created bool) {
	var events <-chan fsnotify.Event
	var errs <-chan error
	if a.watch() {
		events, errs = a.watcher.Events, a.watcher.Errors
		switch {
		case !a.atSocket() && exists(a.nextBelow()): // created before the watch, or not to be watched
			defer a.end()
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
				a.end()
				return true
			}
			if e.Name == a.path && e.Has(fsnotify.Create) {
				return true
			}
		case err := <-errs: // events were lost
			if err != nil {
				a.end()
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
func (a *absence) atSocket() bool { return a.dir == filepath.Dir(a.path) }

// watchedEnough reports whether another folder is to be watched after an event: the watched
// one has gone, or the one below it has come.
func (a *absence) watchedEnough(e fsnotify.Event) bool {
	if e.Name == a.dir {
		return e.Has(fsnotify.Remove | fsnotify.Rename)
	}
	return !a.atSocket() && e.Name == a.nextBelow()
}

// nextBelow is the socket, or the folder above it that is directly below the watched folder.
func (a *absence) nextBelow() string {
	rest := strings.TrimPrefix(strings.TrimPrefix(a.path, a.dir), "/")
	first, _, _ := strings.Cut(rest, "/")
	return filepath.Join(a.dir, first)
}

// end closes the watch. A later wait begins another one.
func (a *absence) end() {
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
