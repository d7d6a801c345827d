package conn

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// longestWait is how long nothing is looked at while there is no socket.
const longestWait = time.Minute

// appears waits until the file at path may have come to be, so that a host without VPP
// costs nothing. Where that cannot be watched it returns at once.
func appears(ctx context.Context, path string) {
	path, err := filepath.Abs(path)
	if err != nil {
		return
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return
	}
	defer watcher.Close()
	dir := filepath.Dir(path)
	for watcher.Add(dir) != nil { // it is not there either
		if dir == filepath.Dir(dir) {
			return
		}
		dir = filepath.Dir(dir)
	}
	if _, err := os.Stat(nextBelow(dir, path)); err == nil {
		return // it came before it was watched
	}
	timer := time.NewTimer(longestWait)
	defer timer.Stop()
	for {
		select {
		case e := <-watcher.Events:
			if e.Name == dir || strings.HasPrefix(path+"/", e.Name+"/") {
				return
			}
		case err := <-watcher.Errors: // events were lost
			if err != nil {
				return
			}
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// nextBelow is path, or the folder above it, that is directly below dir.
func nextBelow(dir, path string) string {
	rest := strings.TrimPrefix(strings.TrimPrefix(path, dir), "/")
	first, _, _ := strings.Cut(rest, "/")
	return filepath.Join(dir, first)
}
