package kernel

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// ErrNoNamespace reports that a path is not a network namespace.
var ErrNoNamespace = errors.New("not a network namespace")

// This is the host that the process runs on.
type This struct{}

// Stat implements Host.
func (This) Stat(path string) (ID, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return ID{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return ID{Dev: st.Dev, Ino: st.Ino}, nil
}

// Open implements Host.
func (This) Open(path string) (Kernel, ID, error) {
	file, err := openNamespace(path)
	if err != nil {
		return nil, ID{}, err
	}
	k, id, err := open(file)
	if err != nil {
		file.Close()
		return nil, ID{}, fmt.Errorf("%s as a network namespace: %w", path, err)
	}
	return k, id, nil
}

// openNamespace opens path only if it is a network namespace. The path comes from a value
// and may name any file: opening a FIFO would block forever, and opening a device such as
// /dev/watchdog has side effects. So the file is first opened with O_PATH, which has
// neither problem, and again when the kernel reports that it belongs to nsfs.
func openNamespace(path string) (*os.File, error) {
	at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(at)
	var fs unix.Statfs_t
	if err := unix.Fstatfs(at, &fs); err != nil {
		return nil, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	if fs.Type != unix.NSFS_MAGIC {
		return nil, fmt.Errorf("%s: %w", path, ErrNoNamespace)
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", at), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	kind, err := unix.IoctlRetInt(fd, unix.NS_GET_NSTYPE)
	if err == nil && kind != unix.CLONE_NEWNET {
		err = ErrNoNamespace
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return file, nil
}

// open creates the sockets inside the namespace of file. On success it owns file.
func open(file *os.File) (*real, ID, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return nil, ID{}, err
	}
	k := &real{file: file}
	err := within(file, func() (err error) {
		k.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		k.changes, err = openPipe()
		if err != nil {
			k.nl.Close()
		}
		return err
	})
	return k, ID{Dev: st.Dev, Ino: st.Ino}, err
}

// real is one namespace of this host.
type real struct {
	file    *os.File // keeps the namespace alive
	nl      *netlink.Handle
	changes *pipe // carries changes of routes and neighbours, which may be many

	lazy   sync.Mutex // guards the fields below, which are opened at their first use
	neigh  *nl.SocketHandle
	ioctls *os.File
}

// Close implements Kernel.
func (k *real) Close() error {
	k.lazy.Lock()
	defer k.lazy.Unlock()
	k.nl.Close()
	if k.neigh != nil {
		k.neigh.Close()
	}
	if k.ioctls != nil {
		k.ioctls.Close()
	}
	return errors.Join(k.changes.close(), k.file.Close())
}
