package vpp_test

import (
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
)

// The same works on older and newer releases.
func TestReleases(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			sim := simulated.Start(t, release)
			sim.Watch()
			a := startAgent(t, sim.Socket)
			awaitReady(t, a)
			const base = "config/vpp/v2/interfaces/"
			all := append(network(), bridged()[:4]...)
			all = append(all,
				base+"memif1", `{"name":"memif1","type":"MEMIF","enabled":true,"memif":{"id":3,"master":true,"socket_filename":"/run/m.sock"}}`,
				base+"vxlan1", `{"name":"vxlan1","type":"VXLAN_TUNNEL","enabled":true,"vxlan":{"src_address":"10.1.0.1","dst_address":"10.1.0.9","vni":7}}`,
				base+"bond1", `{"name":"bond1","type":"BOND_INTERFACE","enabled":true,"bond":{"id":1,"mode":"XOR"}}`,
			)
			if simulated.HasTAPs() {
				all = append(all, base+"tap1", `{"name":"tap1","type":"TAP","enabled":true,"tap":{"version":2}}`)
			}
			a.want(false, all...)
			stands := func() {
				t.Helper()
				if simulated.HasTAPs() {
					awaits(t, sim, "show interface", "tap0 tap1 up")
				}
				awaits(t, sim, "show interface", "loop0 loop1 up 5 10.1.0.1/24", "memif1/3 memif1 up", "vxlan_tunnel0 vxlan1 up", "BondEthernet1 bond1 up")
				awaits(t, sim, "show ip fib", "10.2.0.0/16 via 10.1.0.2 loop0 weight 1")
				awaits(t, sim, "show bridge-domain", "bd1 flags 7 age 0 loop0 normal shg 3")
				awaits(t, sim, "show l2fib", "bd1 62:89:c6:a3:6d:5c loop0 static true bvi false")
			}
			stands()
			sim.Counts()
			a.want(true, all...)
			expectOnlyReads(t, sim)
			if err := sim.Restart(); err != nil {
				t.Fatal(err)
			}
			stands()
		})
	}
}
