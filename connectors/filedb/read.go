package filedb

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// errBusy says that someone has the file open for writing.
var errBusy = errors.New("is still being written")

const (
	// mostBytes is the size beyond which a file is no configuration.
	mostBytes = 64 << 20
	// quiet is how long a file must not have changed where the file system cannot
	// tell whether someone is writing it.
	quiet = 20 * time.Millisecond
)

// read returns the whole content of a file at a moment when nobody is writing it.
// Errors begin with the path, and tell errBusy and fs.ErrNotExist.
//
// A read lease (fcntl(2), F_SETLEASE) is refused while anyone has the file open for
// writing, and while it is held, whoever opens the file for writing waits. So a
// file is never seen between truncation and the last write, however slow the writer,
// and no delay is needed. Who is neither the owner nor has CAP_LEASE is refused too, as
// is everybody on some file systems; then the file must have been quiet for a moment.
// With anyway, the file is read as it is.
func read(path string, anyway bool) (data []byte, id identity, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, id, unreadable(path, err)
	}
	defer f.Close() // and with it the lease
	lease := setLease(f)
	info, err := f.Stat()
	if err != nil {
		return nil, id, unreadable(path, err)
	}
	id = identify(info)
	switch {
	case !info.Mode().IsRegular():
		return nil, id, fmt.Errorf("%s: is %s: want a file", path, kind(info.Mode()))
	case info.Size() > mostBytes:
		return nil, id, fmt.Errorf("%s: has %d bytes: want at most %d", path, info.Size(), mostBytes)
	case anyway:
	case errors.Is(lease, unix.EAGAIN), lease != nil && time.Since(id.status).Abs() < quiet:
		return nil, id, fmt.Errorf("%s: %w", path, errBusy)
	}
	text := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	if _, err = text.ReadFrom(io.LimitReader(f, mostBytes)); err != nil {
		return nil, id, unreadable(path, err)
	}
	return text.Bytes(), id, nil
}

// setLease uses no f.Fd, which would make reads of f block a thread.
func setLease(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var leased error
	err = raw.Control(func(fd uintptr) {
		_, leased = unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_RDLCK)
	})
	return errors.Join(err, leased)
}

func identify(info fs.FileInfo) identity {
	id := identity{size: info.Size(), modified: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.dev, id.ino = st.Dev, st.Ino
		id.status = time.Unix(st.Ctim.Unix())
	}
	return id
}

// unreadable puts what os says into the form of all errors here: path first.
func unreadable(path string, err error) error {
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	return fmt.Errorf("%s: cannot be read: %w", path, err)
}

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
