package vppsim

import (
	"log/slog"

	"github.com/vishvananda/netlink"
)

// LinuxTAP returns a value of Options.TAP that makes the Linux side of TAPs, in the network of this process, and
// nil where it may not. The kernel takes them away when this process ends.
func LinuxTAP(log *slog.Logger) func(name string) (remove func(), err error) {
	remove, err := newTAP("")
	if err != nil {
		log.Info("simulated VPP: TAPs have no Linux side here", "err", err)
		return nil
	}
	remove()
	return newTAP
}

// newTAP makes a TAP that is there until it is removed. Without a name it has one that
// the kernel chooses.
func newTAP(name string) (remove func(), err error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	tap := &netlink.Tuntap{LinkAttrs: attrs, Mode: netlink.TUNTAP_MODE_TAP, Flags: netlink.TUNTAP_NO_PI, NonPersist: true, Queues: 1}
	err = netlink.LinkAdd(tap)
	remove = func() {
		for _, fd := range tap.Fds {
			fd.Close()
		}
	}
	if err != nil {
		remove()
		return nil, err
	}
	return remove, nil
}
