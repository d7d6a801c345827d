package filedb

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// TestNoWatchesLeft has a kernel that gives one watch, as if fs.inotify.max_user_watches were
// reached, and later gives all.
func TestNoWatchesLeft(t *testing.T) {
	var log strings.Builder
	n := newNotifier(Config{Poll: time.Second, Rescan: time.Minute}, slog.New(slog.NewTextHandler(&log, nil)))
	defer n.close()
	left := 1
	n.add = func(kern *fsnotify.Watcher, path string) error {
		if left--; left < 0 {
			return os.NewSyscallError("inotify_add_watch", unix.ENOSPC)
		}
		return kern.Add(path)
	}
	dirs := map[string]watch{t.TempDir(): {}, t.TempDir(): {}, t.TempDir(): {}}
	s := &snapshot{whole: time.Now(), dirs: dirs}
	if !n.follow(dirs) || n.due(s).Sub(s.whole) != time.Second {
		t.Errorf("it looks again after %v, want the poll interval", n.due(s).Sub(s.whole))
	}
	v := view{merger: newMerger("/")}
	b, _ := v.update(s, n.problems()...)
	if len(b.Problems) != 1 {
		t.Fatalf("problems %v", b.Problems)
	}
	for _, part := range []string{"files are polled every 1s", "raise fs.inotify.max_user_watches", "2 of 3 folders are not watched", "no space left"} {
		if !strings.Contains(b.Problems[0].Error(), part) {
			t.Errorf("the problem does not say %q: %v", part, b.Problems[0])
		}
	}
	n.follow(dirs)
	if b, changed := v.update(s, n.problems()...); changed {
		t.Errorf("the same again is told again: %v", b.Problems)
	}
	if got := strings.Count(log.String(), "level=WARN"); got != 1 {
		t.Errorf("it is logged %d times", got)
	}
	left = 10
	n.follow(dirs)
	if b, changed := v.update(s, n.problems()...); !changed || len(b.Problems) != 0 || n.due(s).Sub(s.whole) != time.Minute {
		t.Errorf("with watches again there are problems %v, and it looks after %v", b.Problems, n.due(s).Sub(s.whole))
	}
}
