package iface

import (
	"slices"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// TestClaims says which interfaces VPP cannot have both, and by which field that is said.
func TestClaims(t *testing.T) {
	const (
		vxlan  = `type: VXLAN_TUNNEL vxlan { src_address: "10.0.0.1" dst_address: "10.0.0.2" vni: 5 } `
		gpe    = `type: VXLAN_TUNNEL vxlan { src_address: "10.0.0.1" dst_address: "10.0.0.2" vni: 5 gpe { protocol: IP4 } } `
		gtpu   = `type: GTPU_TUNNEL gtpu { src_addr: "10.0.0.1" dst_addr: "10.0.0.2" teid: 5 } `
		gre    = `type: GRE_TUNNEL gre { tunnel_type: L3 src_addr: "10.0.0.1" dst_addr: "10.0.0.2" } `
		erspan = `type: GRE_TUNNEL gre { tunnel_type: ERSPAN src_addr: "10.0.0.1" dst_addr: "10.0.0.2" session_id: 4 } `
		ipip   = `type: IPIP_TUNNEL ipip { src_addr: "10.0.0.1" dst_addr: "10.0.0.2" } `
	)
	for _, c := range []struct{ a, b, field string }{
		{`type: TAP tap { host_if_name: "eth0" }`, `type: TAP tap { host_if_name: "eth0" }`, ""}, // they may go to different namespaces
		{`type: SUB_INTERFACE sub { parent_name: "p" sub_id: 5 }`, `type: SUB_INTERFACE sub { parent_name: "p" sub_id: 5 tag_rw_option: POP1 }`, "sub.sub_id"},
		{`type: SUB_INTERFACE sub { parent_name: "p" sub_id: 5 }`, `type: SUB_INTERFACE sub { parent_name: "q" sub_id: 5 }`, ""},
		{`type: MEMIF memif { id: 1 }`, `type: MEMIF memif { id: 1 master: true socket_filename: "default" }`, "memif.id"},
		{`type: MEMIF memif { id: 1 }`, `type: MEMIF memif { id: 1 socket_filename: "memif.sock" }`, "memif.id"},
		{`type: MEMIF memif { id: 1 socket_filename: "/run/a.sock" }`, `type: MEMIF memif { id: 1 socket_filename: "/run//./a.sock" }`, "memif.id"},
		{`type: MEMIF memif { id: 1 }`, `type: MEMIF memif { id: 1 socket_filename: "other" }`, ""},
		{`type: MEMIF memif { id: 1 socket_filename: "a.sock" }`, `type: MEMIF memif { id: 1 socket_filename: "/run/a.sock" }`, ""}, // VPP may have another folder
		{`type: MEMIF memif { id: 1 }`, `type: MEMIF memif { id: 2 }`, ""},
		{`type: AF_PACKET afpacket { host_if_name: "eth0" }`, `type: AF_PACKET afpacket { host_if_name: "eth0" }`, "afpacket.host_if_name"},
		{`type: AF_PACKET afpacket { linux_interface: "eth0" }`, `type: AF_PACKET afpacket { linux_interface: "eth0" }`, "afpacket.linux_interface"},
		{`type: AF_PACKET afpacket { linux_interface: "eth0" }`, `type: AF_PACKET afpacket { host_if_name: "eth0" }`, ""},
		{`type: BOND_INTERFACE bond { mode: XOR }`, `type: BOND_INTERFACE bond { mode: LACP }`, "bond.id"},
		{`type: BOND_INTERFACE bond { mode: XOR }`, `type: BOND_INTERFACE bond { mode: XOR id: 1 }`, ""},
		{`type: BOND_INTERFACE bond { mode: XOR id: 4294967295 }`, `type: BOND_INTERFACE bond { mode: XOR id: 4294967295 }`, ""},
		{vxlan, `type: VXLAN_TUNNEL vxlan { src_address: "10.0.0.1" dst_address: "::ffff:10.0.0.2" vni: 5 }`, ""},
		{vxlan, vxlan, "vxlan.vni"},
		{vxlan, vxlan + `vrf: 1`, ""},
		{vxlan, gpe, ""},
		{gpe, gpe + `vrf: 1`, "vxlan.vni"},
		{gtpu, `type: GTPU_TUNNEL gtpu { src_addr: "10.0.0.9" dst_addr: "10.0.0.2" teid: 5 encap_vrf_id: 1 }`, "gtpu.teid"},
		{gre, gre, "gre.dst_addr"},
		{gre, `type: GRE_TUNNEL gre { tunnel_type: TEB src_addr: "10.0.0.1" dst_addr: "10.0.0.2" }`, ""},
		{gre, `type: GRE_TUNNEL gre { tunnel_type: L3 src_addr: "10.0.0.1" dst_addr: "10.0.0.2" session_id: 5 }`, "gre.dst_addr"},
		{erspan, `type: GRE_TUNNEL gre { tunnel_type: ERSPAN src_addr: "10.0.0.1" dst_addr: "10.0.0.2" session_id: 5 }`, ""},
		{ipip, ipip + `enabled: true`, "ipip.dst_addr"},
		{ipip, ipip + `vrf: 1`, ""},
		{ipip, `type: IPIP_TUNNEL ipip { tunnel_mode: POINT_TO_MULTIPOINT src_addr: "10.0.0.1" dst_addr: "10.0.0.2" } `, ""},
		{`type: SOFTWARE_LOOPBACK`, `type: SOFTWARE_LOOPBACK`, ""},
		{`type: DPDK`, `type: DPDK`, ""},
	} {
		a := kinds.Claims("", testkit.Parse[*interfaces.Interface](t, `name: "a" `+c.a))
		b := kinds.Claims("", testkit.Parse[*interfaces.Interface](t, `name: "b" `+c.b))
		field := ""
		if of, same := common(a, b); same {
			field = of.Field
		}
		if field != c.field {
			t.Errorf("%s and %s compete for %q, want %q", c.a, c.b, field, c.field)
		}
	}
}

// common is what both claim.
func common(a, b []scheduler.Claim) (scheduler.Claim, bool) {
	for _, c := range a {
		if i := slices.IndexFunc(b, func(d scheduler.Claim) bool { return c.Resource == d.Resource }); i >= 0 {
			return b[i], true
		}
	}
	return scheduler.Claim{}, false
}

func TestMembersAreOfOneBond(t *testing.T) {
	a, b := bondMemberClaims(keys.BondMember("b1", "eth0"), nil), bondMemberClaims(keys.BondMember("b2", "eth0"), nil)
	if _, same := common(a, b); !same {
		t.Errorf("%v and %v do not compete", a, b)
	}
}
