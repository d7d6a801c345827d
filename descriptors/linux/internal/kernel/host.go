package kernel

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/plainfile"
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
// /dev/watchdog has side effects. So the file is only opened when the kernel reports that
// it belongs to nsfs.
func openNamespace(path string) (*os.File, error) {
	at, err := plainfile.Find(path)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(at.Fd()), &fs); err != nil {
		return nil, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	if fs.Type != unix.NSFS_MAGIC {
		return nil, fmt.Errorf("%s: %w", path, ErrNoNamespace)
	}
	file, err := plainfile.Reopen(at, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	kind, err := unix.IoctlRetInt(int(file.Fd()), unix.NS_GET_NSTYPE)
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
