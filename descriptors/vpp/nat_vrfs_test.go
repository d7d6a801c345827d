package vpp_test

import (
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/scheduler"
)

// TestIdentityMappingOfSeveralVRFs has an identity mapping with a port, of one VRF and of two. The
// endpoint-independent NAT44 would miscount the ports in use of the second, so that one waits for the
// other NAT44.
func TestIdentityMappingOfSeveralVRFs(t *testing.T) { onEachVPP(t, identityMappingOfSeveralVRFs) }

func identityMappingOfSeveralVRFs(t *testing.T, vpp *simulated.VPP) {
	const key, independent = "config/vpp/nat/v2/dnat44/same", `{"endpoint_independent":true}`
	value := func(more string) string {
		return `{"label":"same","id_mappings":[{"ip_address":"10.6.0.2","port":2000},{"ip_address":"10.6.0.3"},{"ip_address":"10.6.0.3","vrf_id":5}` + more + `]}`
	}
	one, two := value(""), value(`,{"ip_address":"10.6.0.2","port":2000,"vrf_id":5}`)
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	c := vpp.Dial()
	used := func(when, want string) {
		t.Helper()
		page := vpp.Command(c, "show nat44 ei addresses")
		_, of, _ := strings.Cut(page, "10.6.0.2\n")
		if of, _, _ = strings.Cut(of, "10.6."); !strings.Contains(of, "  "+want+" busy tcp ports") {
			t.Errorf("%s: expected %s used ports of 10.6.0.2:\n%s", when, want, page)
		}
	}
	a.want(true, "config/vpp/v2/vrf-table/id/5/protocol/IPV4", `{"id":5}`, keys.NAT44Global, independent, natPoolKey, natPool, key, one)
	a.expectState(key, scheduler.Configured)
	used("in one VRF", "1")
	a.want(false, key, two)
	a.expectState(key, scheduler.Pending)
	used("in two VRFs", "0")
	a.want(false, key, one)
	a.expectState(key, scheduler.Configured)
	used("in one VRF again", "1")
	a.want(false, key, two)
	a.unwant(key)
	used("removed", "0")

	a.want(false, key, two, keys.NAT44Global, `{}`)
	a.expectState(key, scheduler.Configured)
	a.resyncsInSync(vpp)
	a.want(false, keys.NAT44Global, independent)
	a.expectState(key, scheduler.Pending)
	used("of the other NAT44", "0")
}
