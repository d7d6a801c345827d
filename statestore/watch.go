package statestore

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Watch calls check when files in the folders have been removed or replaced, and when a folder or one above it has been
// removed or moved, until ctx ends (inotify(7)). check may make folders again. They are absolute paths without links.
// Watch fails where the kernel has no watches left; a change of the state still notices what has happened.
func Watch(ctx context.Context, folders []string, check func()) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return os.NewSyscallError("inotify_init1", err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	defer context.AfterFunc(ctx, func() { _ = events.Close() })()
	raw, err := events.SyscallConn()
	some, newest := make([]byte, 64<<10), 0
	for err == nil {
		// A folder that is not watched yet may have been lost before it was.
		for before := -1; err == nil && newest != before; {
			check()
			before = newest
			failed := raw.Control(func(fd uintptr) { newest, err = addWatches(int(fd), folders, newest) })
			err = errors.Join(err, failed)
		}
		if err == nil {
			_, err = events.Read(some) // what the events say is of no use: check looks at everything
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(err, events.Close())
}

// addWatches watches the folders and those above them, and returns the highest number of a watch. A folder that is watched
// already keeps its number.
func addWatches(fd int, folders []string, newest int) (int, error) {
	const self = unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
	for _, folder := range folders {
		var mask uint32 = self | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO
		for ; ; folder = filepath.Dir(folder) {
			watch, err := unix.InotifyAddWatch(fd, folder, mask|unix.IN_MASK_ADD|unix.IN_ONLYDIR)
			if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.EACCES) {
				return newest, &os.PathError{Op: "inotify_add_watch", Path: folder, Err: err}
			}
			newest = max(newest, watch)
			if folder == filepath.Dir(folder) {
				break
			}
			mask = self
		}
	}
	return newest, nil
}
