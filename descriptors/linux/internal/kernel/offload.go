package kernel

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Commands of linux/ethtool.h for checksum offloading.
const (
	getRX = 0x14
	setRX = 0x15
	getTX = 0x16
	setTX = 0x17
)

// Offload implements Kernel.
func (k *real) Offload(name string) (Offload, error) {
	rx, err := k.ethtool(name, getRX, false)
	if err != nil {
		return Offload{}, err
	}
	tx, err := k.ethtool(name, getTX, false)
	return Offload{RX: rx, TX: tx}, err
}

// SetOffload implements Kernel.
func (k *real) SetOffload(name string, want Offload) error {
	if _, err := k.ethtool(name, setRX, want.RX); err != nil {
		return err
	}
	_, err := k.ethtool(name, setTX, want.TX)
	return err
}

// ethtool runs a command with one flag as argument or result. SIOCETHTOOL takes an
// ethtool_value behind an ifreq.
func (k *real) ethtool(name string, command uint32, on bool) (bool, error) {
	socket, err := k.ioctlSocket()
	if err != nil {
		return false, err
	}
	value := struct{ command, data uint32 }{command: command}
	if on {
		value.data = 1
	}
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&value)}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, socket.Fd(), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return false, fmt.Errorf("checksum offloading of %s, ethtool command %#x: %w", name, command, errno)
	}
	return value.data != 0, nil
}

// ioctlSocket returns a socket for ioctls. It belongs to the namespace in which it was
// opened.
func (k *real) ioctlSocket() (*os.File, error) {
	k.lazy.Lock()
	defer k.lazy.Unlock()
	if k.ioctls != nil {
		return k.ioctls, nil
	}
	err := within(k.file, func() error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			k.ioctls = os.NewFile(uintptr(fd), "ioctl socket")
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("opening a socket for ioctls: %w", err)
	}
	return k.ioctls, nil
}
