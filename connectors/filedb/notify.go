package filedb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// A notifier waits for the next reason to look: an event in a directory that it follows,
// or the end of a period. The kind of the event does not matter. It belongs to one watch.
type notifier struct {
	cfg  Config
	log  *slog.Logger
	kern *fsnotify.Watcher // nil: not requested yet, or refused by the kernel
	dirs map[string]watch  // followed directories, by real path
	poor error             // reason for which the kernel gives no more watches; nil: it does
	add  func(kern *fsnotify.Watcher, path string) error
}

// mostAtOnce is the largest number of notifications for one look. Those that arrive before
// the earliest time of the look do not count.
const mostAtOnce = 512

// newNotifier returns a notifier that watches nothing yet. Tests replace add to imitate a
// kernel without watches.
func newNotifier(cfg Config, log *slog.Logger) *notifier {
	return &notifier{cfg: cfg, log: log, dirs: map[string]watch{}, add: (*fsnotify.Watcher).Add}
}

// close ends the kernel's watches, if there are any.
func (n *notifier) close() {
	if n.kern != nil {
		n.kern.Close()
	}
}

// follow makes dirs the followed directories, and returns whether one of them is new. A
// new one may have changed before it was followed.
func (n *notifier) follow(dirs map[string]watch) (more bool) {
	if n.kern == nil && !n.open() {
		return false
	}
	for path, d := range n.dirs {
		if wanted, ok := dirs[path]; !ok || wanted.id != d.id {
			n.drop(path)
		}
	}
	var scarce error
	for path, d := range dirs {
		if _, ok := n.dirs[path]; ok {
			n.dirs[path] = d
			continue
		}
		switch err := n.add(n.kern, path); {
		case err == nil:
			n.dirs[path] = d
			more = true
		case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.ENOMEM):
			scarce = err
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
			n.log.Warn("directory cannot be watched: changes are seen late", "path", path, "rescan_interval", n.cfg.Rescan, "err", err)
		}
	}
	if scarce != nil {
		n.impoverished(fmt.Errorf("%d of %d folders are not watched: %w", len(dirs)-len(n.dirs), len(dirs), scarce))
	} else {
		n.poor = nil
	}
	return more
}

// drop forgets a directory. It is no error if the kernel has dropped it before.
func (n *notifier) drop(path string) {
	_ = n.kern.Remove(path)
	delete(n.dirs, path)
}

// open returns false if the kernel gives no instance of inotify; files are polled then.
func (n *notifier) open() bool {
	kern, err := fsnotify.NewBufferedWatcher(mostAtOnce)
	if err != nil {
		n.impoverished(err)
		return false
	}
	n.kern = kern
	return true
}

// impoverished notes that files must be polled, and logs that once.
func (n *notifier) impoverished(err error) {
	first := n.poor == nil
	n.poor = err
	if first {
		n.log.Warn("kernel has no file watches left: files are polled; "+moreWatches, "poll_interval", n.cfg.Poll, "err", err)
	}
}

// moreWatches advises people when the kernel gives no more watches.
const moreWatches = "raise fs.inotify.max_user_watches and fs.inotify.max_user_instances (sysctl), or take folders out of configuration-paths"

// problems returns the reasons for which changes are seen late.
func (n *notifier) problems() []error {
	if n.poor == nil {
		return nil
	}
	return []error{fmt.Errorf("kernel has no file watches left: files are polled every %v; %s: %w", n.cfg.Poll, moreWatches, n.poor)}
}

// wait returns the reason for the next look when its time has come. A notification is a
// reason, but not before notBefore; so is a file of s that is due. Without a reason it
// returns periodically, for a look at everything. Its error is that of ctx or of the
// kernel.
func (n *notifier) wait(ctx context.Context, s *snapshot, notBefore time.Time) (reason, error) {
	why := reason{files: map[string]bool{}}
	timer := time.NewTimer(n.patience(s))
	defer timer.Stop()
	for told := false; ; {
		select {
		case <-ctx.Done():
			return why, ctx.Err()
		case <-timer.C:
			for range len(n.events()) {
				n.note(<-n.events(), &why)
			}
			why.everything = why.everything || !time.Now().Before(n.due(s))
			return why, nil
		case e := <-n.events():
			if n.note(e, &why) && !told {
				told = true
				timer.Reset(max(0, time.Until(notBefore)))
			}
		case err := <-n.errors():
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return why, err
			}
			n.log.Info("file notifications were lost: looking at everything")
			return reason{everything: true}, nil
		}
	}
}

// patience returns the time until the next look: a poll that is due, or a file that was
// not complete at the last look.
func (n *notifier) patience(s *snapshot) time.Duration {
	next := n.due(s)
	if !s.wake.IsZero() && s.wake.Before(next) {
		next = s.wake
	}
	return max(0, time.Until(next))
}

// due returns the time for the next look at everything.
func (n *notifier) due(s *snapshot) time.Time {
	if n.poor != nil {
		return s.whole.Add(n.cfg.Poll)
	}
	return s.whole.Add(n.cfg.Rescan)
}

// note adds an event to the reasons to look, and returns whether it is one.
func (n *notifier) note(e fsnotify.Event, why *reason) bool {
	if _, followed := n.dirs[e.Name]; followed {
		if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
			n.drop(e.Name) // the next object of that name is another directory
		}
		why.everything = true
		return true
	}
	d := n.dirs[filepath.Dir(e.Name)]
	name := filepath.Base(e.Name)
	// Kubernetes swaps a link called ..data; other names with a dot are ignored.
	hidden := strings.HasPrefix(name, ".")
	switch {
	case d.names[name], d.listed != "" && strings.HasPrefix(name, ".."):
		why.everything = true
	case d.listed != "" && !hidden:
		why.files[filepath.Join(d.listed, name)] = true
	default:
		return false
	}
	return true
}

// events returns nil without watches: a select never takes a nil channel.
func (n *notifier) events() <-chan fsnotify.Event {
	if n.kern == nil {
		return nil
	}
	return n.kern.Events
}

// errors returns nil without watches.
func (n *notifier) errors() <-chan error {
	if n.kern == nil {
		return nil
	}
	return n.kern.Errors
}
