package kernel

import (
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"golang.org/x/sys/unix"
)

// ownerSign separates the alias of a link from the installation of its owner.
const ownerSign = " #"

// installationLen is the number of hexadecimal digits of an installation.
const installationLen = 16

// SplitAlias splits an alias into the rest and the installation of the owner. Links of
// older agents have no installation.
func SplitAlias(alias string) (rest, installation string) {
	i := strings.LastIndex(alias, ownerSign)
	if i < 0 || len(alias)-i-len(ownerSign) != installationLen {
		return alias, ""
	}
	if _, err := hex.DecodeString(alias[i+len(ownerSign):]); err != nil {
		return alias, ""
	}
	return alias[:i], alias[i+len(ownerSign):]
}

// JoinAlias returns the alias of a link of an installation.
func JoinAlias(alias, installation string) string {
	if installation == "" {
		return alias
	}
	return alias + ownerSign + installation
}

// presence is the address of the abstract Unix socket that makes an installation visible
// in a namespace. The kernel closes it when the process ends, even after a crash.
func presence(installation string) *unix.SockaddrUnix {
	return &unix.SockaddrUnix{Name: "@keyplane/installation/" + installation}
}

// Announce implements Kernel.
func (k *real) Announce(installation string) (io.Closer, error) {
	var fd int
	err := within(k.file, func() (err error) {
		fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, about(err, "opening a socket")
	}
	if err := errors.Join(unix.Bind(fd, presence(installation)), unix.Listen(fd, 1)); err != nil {
		return nil, errors.Join(about(err, "announcing installation %s", installation), unix.Close(fd))
	}
	return descriptor(fd), nil
}

// Announced implements Kernel.
func (k *real) Announced(installation string) bool {
	fd := -1
	err := within(k.file, func() (err error) {
		fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		return err
	})
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	err = unix.Connect(fd, presence(installation))
	return err == nil || errors.Is(err, unix.EAGAIN) // the queue is full, since no one accepts connections
}

// A descriptor is an open file descriptor.
type descriptor int

// Close ends the announcement.
func (d descriptor) Close() error { return unix.Close(int(d)) }
