package testkit

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// MemoryFile returns a file in memory with this content, and zeros behind it up to a size in bytes. The test closes it.
func MemoryFile(t testing.TB, content []byte, size int64) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("test", 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "test")
	t.Cleanup(func() { _ = file.Close() })
	_, err = file.WriteAt(content, 0)
	if err := errors.Join(err, file.Truncate(size)); err != nil {
		t.Fatal(err)
	}
	return file
}

// ServeFiles returns the path of a socket that sends files to each client, as the socket of VPP's counters does.
func ServeFiles(t testing.TB, fds ...int) (socket string) {
	t.Helper()
	return ServePackets(t, func(c *net.UnixConn) {
		_, _, _ = c.WriteMsgUnix([]byte("x"), unix.UnixRights(fds...), nil)
		_ = c.Close()
	})
}

// ServePackets returns the path of a socket of sequenced packets, and calls serve with each of its clients, which serve closes.
func ServePackets(t testing.TB, serve func(*net.UnixConn)) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s.sock")
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Net: "unixpacket", Name: socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.AcceptUnix()
			if err != nil {
				return
			}
			serve(c)
		}
	}()
	return socket
}
