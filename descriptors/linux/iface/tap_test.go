package iface

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/internal/testkit"
)

// addTAP makes a TAP that stays when nobody has it open, as VPP would.
func addTAP(t *testing.T, name string) {
	t.Helper()
	tun, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	testkit.Need(t, "/dev/net/tun", err == nil)
	defer tun.Close()
	request := struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: unix.IFF_TAP | unix.IFF_NO_PI}
	copy(request.name[:], name)
	for _, call := range [][2]uintptr{{unix.TUNSETIFF, uintptr(unsafe.Pointer(&request))}, {unix.TUNSETPERSIST, 1}} {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, tun.Fd(), call[0], call[1]); errno != 0 {
			t.Fatalf("making TAP %s: %v", name, errno)
		}
	}
}
