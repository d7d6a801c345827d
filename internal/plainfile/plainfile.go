// Package plainfile opens paths at which something else than expected may lie, such as files of
// folders that others can write, and the program's own state.
//
//	text, err := plainfile.Read(filepath.Join(dir, "installation"))
//
// To open a pipe that nobody writes into would block the program for ever, often while it has
// locks, and to open some devices has effects: /dev/watchdog restarts the host. So what is no
// regular file is not opened at all, and refused with ErrNoFile. Links are followed.
//
// Callers with other rules find first, and open what they have found:
//
//	at, err := plainfile.Find(path)  // opens nothing
//	info, err := at.Stat()
//	f, err := plainfile.Reopen(at, os.O_RDONLY)
//
// Nobody can put something else at the path in between. This needs /proc.
//
// Files that settings name may be pipes: see package settingfile.
package plainfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrNoFile says that a path is that of a folder, a pipe, a socket or a device.
var ErrNoFile = errors.New("expected a regular file")

// Find returns what lies at a path, without opening it: pipes do not block, and devices notice
// nothing. The result only serves for Stat, for Reopen and as a descriptor of O_PATH.
func Find(path string) (*os.File, error) { return open(path, path, unix.O_PATH) }

// Reopen opens what Find has found, without waiting.
func Reopen(at *os.File, flag int) (*os.File, error) {
	raw, err := at.SyscallConn()
	if err != nil {
		return nil, err
	}
	var f *os.File
	if failed := raw.Control(func(fd uintptr) {
		f, err = open(fmt.Sprintf("/proc/self/fd/%d", fd), at.Name(), flag|unix.O_NONBLOCK)
	}); failed != nil {
		return nil, failed
	}
	return f, err
}

// open is os.OpenFile for a file that people know by another name.
func open(path, name string, flag int) (*os.File, error) {
	for {
		fd, err := unix.Open(path, flag|unix.O_CLOEXEC, 0)
		if err == nil {
			return os.NewFile(uintptr(fd), name), nil
		}
		if !errors.Is(err, unix.EINTR) {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
}

// Open opens a file for reading.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// mostLinks is how many links the kernel follows.
const mostLinks = 40

// OpenFile is os.OpenFile for regular files. Errors of files of other kinds begin with the path. With unix.O_NOFOLLOW, a
// link at the path is refused like them.
func OpenFile(path string, flag int, mode fs.FileMode) (f *os.File, err error) {
	for range mostLinks {
		f, err = existing(path, flag&^os.O_CREATE)
		if !errors.Is(err, fs.ErrNotExist) || flag&os.O_CREATE == 0 {
			return f, err
		}
		f, err = os.OpenFile(path, flag|os.O_EXCL, mode)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
		// There is a link to nothing, or another process was faster.
		if flag&unix.O_NOFOLLOW != 0 {
			continue
		}
		if target, linked := os.Readlink(path); linked == nil && filepath.IsAbs(target) {
			path = target
		} else if linked == nil {
			path = filepath.Join(filepath.Dir(path), target)
		}
	}
	return nil, err
}

// existing opens a regular file.
func existing(path string, flag int) (*os.File, error) {
	at, err := open(path, path, unix.O_PATH|flag&unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	info, err := at.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, refuse(path, info)
	}
	return Reopen(at, flag&^unix.O_NOFOLLOW)
}

// refuse names the kind of a file.
func refuse(path string, info fs.FileInfo) error {
	return fmt.Errorf("%s is %s: %w", path, kind(info.Mode()), ErrNoFile)
}

// kind names a kind of file.
func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeSymlink != 0:
		return "a link"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// Read returns the content of a file of any size.
func Read(path string) ([]byte, error) { return read(path, 0) }

func read(path string, flag int) ([]byte, error) {
	f, err := OpenFile(path, os.O_RDONLY|flag, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
