package vpp_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
)

// A dump of VRF memberships alone shows those of all interfaces, also of others, as they are now: the same as after a dump
// of the interfaces.
func TestLookAtVRFsAlone(t *testing.T) {
	vpp := simulated.Start(t, "")
	loop := func(name string, vrf int) []string {
		return []string{interfacesPrefix + name, fmt.Sprintf(`{"name":"%s","type":"SOFTWARE_LOOPBACK","vrf":%d,"ip_addresses":["10.%d.%d.1/24"]}`, name, vrf, vrf, len(name))}
	}
	table := func(id int) []string {
		return []string{fmt.Sprintf("config/vpp/v2/vrf-table/id/%d/protocol/IPV4", id), fmt.Sprintf(`{"id":%d}`, id)}
	}
	other := startAgentKnowing(t, vpp.Socket, memories{label: "vpp2"})
	awaitReady(t, other)
	for id := range 3 {
		other.want(false, table(id+5)...)
	}
	other.want(false, loop("theirs", 5)...)
	a := startAgentKnowing(t, vpp.Socket, memories{label: "vpp1"})
	awaitReady(t, a)
	memberships := func() []string { return slices.Sorted(maps.Keys(a.details(iface.VRFName))) }
	expect := func(when string) {
		t.Helper()
		alone := memberships()
		a.details(iface.Name)
		if after := memberships(); len(alone) == 0 || !slices.Equal(alone, after) {
			t.Errorf("%s: a dump of memberships alone has %q; after a dump of interfaces %q", when, alone, after)
		}
	}
	expect("at first")
	for id := range 3 {
		a.want(false, table(id+5)...)
		a.want(false, loop("ours", id+5)...)
		expect(fmt.Sprint("in VRF ", id+5))
	}
}
