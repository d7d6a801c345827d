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
	file, err := os.Open(path)
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

func open(file *os.File) (*real, ID, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return nil, ID{}, err
	}
	k := &real{file: file}
	err := within(file, func() (err error) {
		if k.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
			return err
		}
		if k.changes, err = openPipe(); err != nil {
			k.nl.Close()
		}
		return err
	})
	return k, ID{Dev: st.Dev, Ino: st.Ino}, err
}

// real is one namespace of this host.
type real struct {
	file    *os.File // stands for the namespace
	nl      *netlink.Handle
	changes *pipe // of routes and neighbours, of which there may be many

	lazy   sync.Mutex // guards what is opened at its first use
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
