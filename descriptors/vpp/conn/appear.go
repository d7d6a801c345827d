package conn

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// longestWait is the longest time between two checks for a missing socket.
const longestWait = time.Minute

// appears waits until the file at path may exist, so that a host without VPP costs
// nothing. If the file system cannot be watched, it returns at once.
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
	for watcher.Add(dir) != nil { // it does not exist either
		if dir == filepath.Dir(dir) {
			return
		}
		dir = filepath.Dir(dir)
	}
	if _, err := os.Stat(nextBelow(dir, path)); err == nil {
		return // it was created before the watch
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
