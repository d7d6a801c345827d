package vpp_test

import (
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
)

// TestVirtualAddressesAreNoDrift has virtual routers with accept mode become masters: VPP adds their
// addresses to the interface. A resync leaves them there, and they go with their routers.
func TestVirtualAddressesAreNoDrift(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		const seven, eight = "config/vpp/v2/vrrp/loop1/vrid/7", "config/vpp/v2/vrrp/loop1/vrid/8"
		router := func(id, address string) string {
			return `{"interface":"loop1","vr_id":` + id + `,"priority":100,"interval":10,"accept":true,"ip_addresses":["` + address + `"],"enabled":true}`
		}
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		a.want(true, loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true,"ip_addresses":["10.1.0.1/24","fd00::1/64"]}`,
			seven, router("7", "10.1.0.5"), eight, router("8", "fd00::5"))
		if vpp.Sim != nil {
			for _, id := range []uint8{7, 8} {
				if err := vpp.Sim.Elect("loop1", id); err != nil {
					t.Fatal(err)
				}
			}
		}
		awaits(t, vpp, "show interface", "10.1.0.5/24", "fd00::5/64")
		a.resyncsInSync(vpp)
		awaits(t, vpp, "show interface", "10.1.0.5/24", "fd00::5/64")
		a.unwant(seven)
		text := vpp.Show("show interface")
		if strings.Contains(text, "10.1.0.5") || !strings.Contains(text, "fd00::5") {
			t.Errorf("without the first router, VPP has\n%s", text)
		}
		a.unwant(eight)
		if text := vpp.Show("show interface"); strings.Contains(text, "fd00::5") {
			t.Errorf("without routers, VPP has\n%s", text)
		}
		a.resyncsInSync(vpp)
	})
}
