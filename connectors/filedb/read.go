package filedb

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/keyplane/keyplane/internal/filelease"
	"github.com/keyplane/keyplane/internal/plainfile"
)

// errBusy means that another process is writing the file.
var errBusy = errors.New("is still being written")

// quiet is the shortest time without a change of a file that may have an unknown writer.
const quiet = 20 * time.Millisecond

// A text is the whole content of a file at one moment.
type text struct {
	data []byte
	id   identity // also for a file that cannot be read
	// unsure means that another process may have been writing the file at that moment.
	unsure bool
}

// read returns the content of a file at a moment when no process has it open for writing.
// So it never reads between truncation and the last write, however slow the writer is; see
// package filelease. If the writers of a file cannot be known, the file must have been
// quiet for a moment, and the text is unsure. Errors begin with the path, and match
// errBusy and fs.ErrNotExist.
func read(path string, c Config) (t text, err error) {
	f, err := open(path, c, &t)
	if err != nil {
		return t, err
	}
	defer f.Close() // this also ends the lease
	writer := filelease.Take(f)
	info, err := f.Stat()
	if err != nil {
		return t, unreadable(path, err)
	}
	t.id, t.unsure = identify(info), writer == filelease.Unknown
	switch {
	case info.Size() > int64(c.MaxFileSize):
		return t, fmt.Errorf("%s: has %d bytes, more than max-file-size allows (%v): split it, or raise max-file-size in filedb.conf", path, info.Size(), c.MaxFileSize)
	case writer == filelease.Writing:
		return t, fmt.Errorf("%s: %w: another process has it open for writing", path, errBusy)
	case t.unsure && time.Since(t.id.status).Abs() < quiet:
		return t, fmt.Errorf("%s: %w", path, errBusy)
	}
	content := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	_, err = content.ReadFrom(io.LimitReader(f, int64(c.MaxFileSize)))
	if err != nil {
		return t, unreadable(path, err)
	}
	t.data = content.Bytes()
	return t, nil
}

// open opens a regular file within the configured paths, and sets its identity. Since the walk,
// something else may have taken its place: a device that acts when it is opened, or a link.
func open(path string, c Config, t *text) (*os.File, error) {
	at, err := plainfile.Find(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer at.Close()
	info, err := at.Stat()
	if err != nil {
		return nil, unreadable(path, err)
	}
	t.id = identify(info)
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is %s: expected a file", path, kind(info.Mode()))
	case !c.FollowLinks && stray(at, path, c.Paths):
		return nil, strayLink(path)
	}
	f, err := plainfile.Reopen(at, os.O_RDONLY)
	if err != nil {
		return nil, unreadable(path, err)
	}
	return f, nil
}

// stray reports whether the found file lies outside of the places, because a link was
// changed after the walk.
func stray(f *os.File, path string, places []string) bool {
	raw, err := f.SyscallConn()
	if err != nil || slices.Contains(places, path) {
		return false
	}
	var real string
	err = raw.Control(func(fd uintptr) { real, _ = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)) })
	if err != nil || !filepath.IsAbs(real) {
		return false
	}
	return !slices.ContainsFunc(places, func(place string) bool {
		if within(real, place) {
			return true
		}
		root, err := filepath.EvalSymlinks(place)
		return err == nil && within(real, root)
	})
}

// identify returns the attributes by which a changed file is recognised without reading
// it. The time of the last status change (ctime) cannot be set, unlike that of the
// content.
func identify(info fs.FileInfo) identity {
	id := identity{size: info.Size(), modified: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.dev, id.ino = st.Dev, st.Ino
		id.status = time.Unix(st.Ctim.Unix())
	}
	return id
}

// unreadable gives an error of os the form of all errors here: path first.
func unreadable(path string, err error) error {
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		err = cause.Err
	}
	return fmt.Errorf("%s: cannot be read: %w", path, err)
}

// kind names a file type for errors.
func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "no regular file"
}
