package agent

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux"
	"github.com/keyplane/keyplane/descriptors/linux/iface"
	linuxif "github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// A notification of a Linux interface tells what the kernel has chosen, although nobody declares it. A link
// that is gone meanwhile is reported as declared.
func TestLinuxNotificationsTellTheLink(t *testing.T) {
	declared := &linuxif.Interface{Name: "veth1", Type: linuxif.Interface_VETH, Enabled: true}
	for _, tt := range []struct {
		link linux.LinkState
		err  error
		mac  string
		mtu  uint32
		oper linuxif.InterfaceState_Status
	}{
		{link: linux.LinkState{MAC: "02:00:00:00:00:01", MTU: 1500, Running: true}, mac: "02:00:00:00:00:01", mtu: 1500, oper: linuxif.InterfaceState_UP},
		{link: linux.LinkState{MAC: "02:00:00:00:00:01", MTU: 1500}, mac: "02:00:00:00:00:01", mtu: 1500, oper: linuxif.InterfaceState_DOWN},
		{err: unix.ENODEV},
	} {
		st := &scheduler.Status{Actual: declared, Meta: iface.Meta{Index: 7, HostName: "host1"}}
		is := changedLinux(nil, st, func(of iface.Meta) (linux.LinkState, error) {
			if of.Index != 7 {
				t.Errorf("it asks for link %d; expected 7", of.Index)
			}
			return tt.link, tt.err
		})
		if is.PhysAddress != tt.mac || is.Mtu != tt.mtu || is.OperStatus != tt.oper || is.AdminStatus != linuxif.InterfaceState_UP || is.IfIndex != 7 || is.InternalName != "host1" {
			t.Errorf("with %+v, %v it reports %v", tt.link, tt.err, is)
		}
		again := func(iface.Meta) (linux.LinkState, error) { return linux.LinkState{}, errors.New("asked twice") }
		if more := changedLinux(is, st, again); more != nil {
			t.Errorf("without a change it reports %v", more)
		}
	}
}
