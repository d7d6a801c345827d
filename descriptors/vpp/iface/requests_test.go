package iface

import (
	"maps"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// TestRequestsOfAnInterface counts what VPP is asked for an interface with all that is derived from
// it, to read it back, and when it moves.
func TestRequestsOfAnInterface(t *testing.T) {
	h, vpp := onVPP(t, simulated.Newest())
	vpp.Watch()
	h.API = vpp.Dial()
	h.env.API = h.API
	asked := func(what string, want map[string]int) {
		t.Helper()
		if got := vpp.Counts(); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	come := func(v *interfaces.Interface, vrf string) {
		t.Helper()
		meta, err := h.create(t.Context(), "", v)
		if err != nil {
			t.Fatal(err)
		}
		h.index.(links)[v.GetName()] = meta
		if err := h.enterVRF(t.Context(), vrf); err != nil {
			t.Fatal(err)
		}
		if err := h.changeAddress(t.Context(), "vpp/interface/"+v.GetName()+"/address/static/"+v.GetIpAddresses()[0], true); err != nil {
			t.Fatal(err)
		}
	}
	vpp.Counts()
	a := testkit.Parse[*interfaces.Interface](t, `name: "a" type: SOFTWARE_LOOPBACK enabled: true ip_addresses: "10.1.0.1/24"`)
	b := testkit.Parse[*interfaces.Interface](t, `name: "b" type: SOFTWARE_LOOPBACK enabled: true ip_addresses: "10.1.0.1/24" vrf: 5 mtu: 1500`)
	come(a, "vpp/interface/a/vrf/0/ip-version/v4")
	asked("one comes", map[string]int{
		"create_loopback": 1, "sw_interface_dump": 1, "sw_interface_tag_add_del": 1, "sw_interface_set_flags": 1, "sw_interface_add_del_address": 1,
	})
	tunnel := testkit.Parse[*interfaces.Interface](t, `name: "t" type: IPIP_TUNNEL enabled: true ip_addresses: "10.2.0.1/24" ipip: <src_addr: "10.1.0.1" dst_addr: "10.1.0.2">`)
	come(tunnel, "vpp/interface/t/vrf/0/ip-version/v4")
	asked("a tunnel comes", map[string]int{
		"ipip_add_tunnel": 1, "sw_interface_dump": 1, "sw_interface_tag_add_del": 1, "sw_interface_set_flags": 1, "sw_interface_add_del_address": 1,
	})
	come(b, "vpp/interface/b/vrf/5/ip-version/v4")
	asked("one of a VRF and with an MTU comes", map[string]int{
		"create_loopback": 1, "sw_interface_dump": 1, "sw_interface_tag_add_del": 1, "sw_interface_set_flags": 1, "sw_interface_add_del_address": 1,
		"sw_interface_set_mtu": 1, "sw_interface_set_table": 1,
	})
	if err := h.enterVRF(t.Context(), "vpp/interface/a/vrf/0/ip-version/v4"); err != nil {
		t.Fatal(err)
	}
	asked("it enters its VRF once more", map[string]int{"sw_interface_get_table": 1})
	found := conformance.Taken(h.retrieve(t.Context(), []scheduler.Desired[*interfaces.Interface]{{Key: "a", Value: a}, {Key: "b", Value: b}}))
	for f, err := range found {
		if err != nil || f.Value.GetName() == "b" && (f.Value.GetVrf() != 5 || f.Value.GetIpAddresses()[0] != "10.1.0.1/24") {
			t.Fatalf("read back is %v, %v", f.Value, err)
		}
	}
	for name, n := range vpp.Counts() {
		if (name == "ip_address_dump" || name == "sw_interface_get_table") && n != 6 {
			t.Errorf("reading back three interfaces takes %d of %s", n, name)
		}
	}
}
