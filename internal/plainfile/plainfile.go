// Package plainfile opens files of folders that the program writes itself, such as its state
// and its published status.
//
//	text, err := plainfile.Read(filepath.Join(dir, "installation"))
//
// Something else may lie there instead of a file. To open a pipe that nobody writes into would
// block the program for ever, often while it has locks, and to open some devices has effects.
// So a file is opened without waiting, and what is no regular file is refused with
// ErrNoFile. Nothing is read from it and nothing is written into it. Links are followed.
//
// Files that settings name may be pipes: see package settingfile.
package plainfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrNoFile says that a path is that of a folder, a pipe, a socket or a device.
var ErrNoFile = errors.New("expected a regular file")

// Open opens a file for reading.
func Open(path string) (*os.File, error) { return OpenFile(path, os.O_RDONLY, 0) }

// OpenFile is os.OpenFile for regular files. Errors of files of other kinds begin with the path.
func OpenFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	// Truncating has no effect on other kinds of file. Opening a device may have one.
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, refuse(path, info)
	}
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, mode)
	if errors.Is(err, syscall.ENXIO) { // a pipe or a socket has come meanwhile
		return nil, fmt.Errorf("%s is a pipe or a socket: %w", path, ErrNoFile)
	}
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = refuse(path, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
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
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// Read returns the content of a file of any size.
func Read(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
