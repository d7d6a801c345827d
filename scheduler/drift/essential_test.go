package drift

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// TestEssential has a descriptor to which an MTU of 0 is 1500, an empty MAC address is any, and
// the checksums of a VETH and the host name do not matter.
func TestEssential(t *testing.T) {
	mtu := func(v *interfaces.Interface) uint32 {
		if v.GetMtu() == 0 {
			return 1500
		}
		return v.GetMtu()
	}
	for _, c := range []struct{ name, want, got, essential string }{
		{"one field", `name: "a"`, `name: "a" mtu: 1400 phys_address: "02:00:00:00:00:01"`, `name: "a" mtu: 1400`},
		{"a missing field", `name: "a" mtu: 1400 host_if_name: "x"`, `name: "a"`, `name: "a" host_if_name: "x"`},
		{
			"a nested field", `veth { peer_if_name: "b" }`,
			`veth { peer_if_name: "c" rx_checksum_offloading: CHKSM_OFFLOAD_ENABLED }`, `veth { peer_if_name: "c" }`,
		},
		{"another kind", `veth { peer_if_name: "b" } mtu: 1500`, `tap { vpp_tap_if_name: "t" }`, `tap { vpp_tap_if_name: "t" } mtu: 1500`},
		{"a list", `ip_addresses: "10.0.0.1/24"`, `ip_addresses: ["10.0.0.1/24", "10.0.0.2/24"] host_if_name: "x"`, `ip_addresses: ["10.0.0.1/24", "10.0.0.2/24"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, got := testkit.Parse[*interfaces.Interface](t, c.want), testkit.Parse[*interfaces.Interface](t, c.got)
			wantBefore, gotBefore := proto.Clone(want), proto.Clone(got)
			equal := func(m proto.Message) bool {
				v := m.(*interfaces.Interface)
				mac := want.GetPhysAddress() == "" || v.GetPhysAddress() == want.GetPhysAddress()
				sameTap := (v.GetTap() == nil) == (want.GetTap() == nil) && v.GetTap().GetVppTapIfName() == want.GetTap().GetVppTapIfName()
				return mac && sameTap && mtu(v) == mtu(want) && v.GetVeth().GetPeerIfName() == want.GetVeth().GetPeerIfName() &&
					len(v.GetIpAddresses()) == len(want.GetIpAddresses())
			}
			if equal(got) {
				t.Fatal("the values do not differ")
			}
			if out := essential(got, want, equal); !proto.Equal(out, testkit.Parse[*interfaces.Interface](t, c.essential)) {
				t.Errorf("got %v, want %s", out, c.essential)
			}
			if !proto.Equal(want, wantBefore) || !proto.Equal(got, gotBefore) {
				t.Error("a shared value has changed")
			}
		})
	}
}

// TestEssentialTogether has two fields that differ only together: neither is left out.
func TestEssentialTogether(t *testing.T) {
	want, got := testkit.Parse[*interfaces.Interface](t, ``), testkit.Parse[*interfaces.Interface](t, `mtu: 1 vrf_master_interface: "v"`)
	equal := func(m proto.Message) bool {
		v := m.(*interfaces.Interface)
		return v.GetMtu() == 0 || v.GetVrfMasterInterface() == ""
	}
	if out := essential(got, want, equal); !proto.Equal(out, got) {
		t.Errorf("got %v, want %v", out, got)
	}
}
