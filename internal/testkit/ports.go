package testkit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// freePorts returns n TCP ports without a listener, which no other test gets until t ends: a server
// that is stopped and started again needs its port. They are below the ports that Linux gives to
// outgoing connections (ip_local_port_range, from 32768): one of those could be taken by a
// connection of another test program before the server listens.
func freePorts(t testing.TB, n int) (ports []int) {
	t.Helper()
	for len(ports) < n {
		port := 10_000 + rand.IntN(20_000)
		if !reserve(t, port) {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue // it is in use
		}
		defer l.Close()
		ports = append(ports, port)
	}
	return ports
}

// reserve locks the byte of a port in a file of this user until t ends. It reports whether nobody
// else has locked it.
func reserve(t testing.TB, port int) bool {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("keyplane-test-ports-%d", os.Getuid())), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(port), Len: 1}
	if unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock) != nil {
		f.Close()
		return false
	}
	t.Cleanup(func() { f.Close() })
	return true
}
