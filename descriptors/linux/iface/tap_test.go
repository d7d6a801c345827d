package iface

import (
	"os"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/keyplane/keyplane/internal/testkit"
)

// addTAP makes a TAP that stays when nobody has it open, as VPP would.
func addTAP(t *testing.T, name string) {
	t.Helper()
	_, err := os.Stat("/dev/net/tun")
	testkit.Need(t, "/dev/net/tun", err == nil)
	if err := netlink.LinkAdd(&netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: name}, Mode: netlink.TUNTAP_MODE_TAP, Flags: netlink.TUNTAP_NO_PI}); err != nil {
		t.Fatal(err)
	}
}
