package vppsim_test

import (
	"context"
	"errors"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/bond"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/gre"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ipip"
	"go.fd.io/govpp/binapi/vxlan"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// gre changes a tunnel between these two ends.
func (v *vpp) gre(dst string, kind gre.GreTunnelType, instance, table uint32, add bool, want api.VPPApiError) index {
	v.Helper()
	var r gre.GreTunnelAddDelReply
	v.call("gre_tunnel_add_del", want, &gre.GreTunnelAddDel{
		IsAdd: add, Tunnel: gre.GreTunnel{Type: kind, Instance: instance, Src: ipOf("10.0.0.1"), Dst: ipOf(dst), OuterTableID: table},
	}, &r)
	return r.SwIfIndex
}

func tunnelRows() []row {
	const l3, teb = gre.GRE_API_TUNNEL_TYPE_L3, gre.GRE_API_TUNNEL_TYPE_TEB
	return []row{
		{"GRE tunnels", func(v *vpp) {
			v.own() // names and order depend on what was there before
			i := v.gre("10.0.0.2", l3, none32, 0, true, 0)
			bridged := v.gre("10.0.0.2", teb, none32, 0, true, 0)
			a, b := v.details(i), v.details(bridged)
			if a.InterfaceName != "gre0" || a.InterfaceDevType != "GRE tunnel device" || a.Flags != 0 || a.LinkMtu != 65512 || a.Mtu[0] != 9000 {
				v.Errorf("it is %+v", a)
			}
			if b.InterfaceName != "gre1" || b.LinkMtu != 8998 || b.L2Address == (ethernet_types.MacAddress{}) {
				v.Errorf("for Ethernet it is %+v", b)
			}
			v.gre("10.0.0.2", l3, none32, 0, true, api.IF_ALREADY_EXISTS)
			v.gre("10.0.0.3", l3, 0, 0, true, api.INSTANCE_IN_USE)
			v.gre("10.0.0.1", l3, none32, 0, true, api.SAME_SRC_DST)
			v.gre("10.0.0.3", l3, none32, 77, true, api.NO_SUCH_FIB)
			v.gre("10.0.0.9", l3, none32, 0, false, api.NO_SUCH_ENTRY)
			all := dump[gre.GreTunnelDetails](v, &gre.GreTunnelDump{SwIfIndex: none})
			if len(all) != 2 || all[0].Tunnel.SwIfIndex != i || vppwire.Addr(all[0].Tunnel.Dst).String() != "10.0.0.2" || all[1].Tunnel.Type != teb {
				v.Errorf("there are %+v", all)
			}
			v.gre("10.0.0.2", l3, none32, 0, false, 0)
			v.gre("10.0.0.2", teb, none32, 0, false, 0)
			if v.details(i) != nil || v.details(bridged) != nil {
				v.Error("they are there")
			}
		}},
		{"a GRE tunnel has a session if its type has sessions", func(v *vpp) {
			change := func(kind gre.GreTunnelType, session uint16, add bool, want api.VPPApiError) {
				v.Helper()
				v.call("gre_tunnel_add_del", want, &gre.GreTunnelAddDel{IsAdd: add, Tunnel: gre.GreTunnel{
					Type: kind, Instance: none32, Src: ipOf("10.0.0.1"), Dst: ipOf("10.0.0.2"), SessionID: session,
				}}, &gre.GreTunnelAddDelReply{})
			}
			for kind, listed := range map[gre.GreTunnelType]uint16{l3: 0, teb: 0, gre.GRE_API_TUNNEL_TYPE_ERSPAN: 5} {
				change(kind, 5, true, 0)
				all := dump[gre.GreTunnelDetails](v, &gre.GreTunnelDump{SwIfIndex: none})
				if len(all) != 1 || all[0].Tunnel.SessionID != listed {
					v.Errorf("%v: there are %+v; expected session %d", kind, all, listed)
				}
				change(kind, 0, false, api.NO_SUCH_ENTRY) // it is part of the identity all the same
				change(kind, 5, false, 0)
			}
		}},
		{"tunnels for IP packets have no MAC address", func(v *vpp) {
			tunnel := v.ipip("10.0.0.1", "10.0.0.2", 0, 0)
			v.withoutMAC(tunnel)
			v.call("delete", 0, &ipip.IpipDelTunnel{SwIfIndex: tunnel}, &ipip.IpipDelTunnelReply{})
			v.withoutMAC(v.gre("10.0.0.2", l3, none32, 0, true, 0))
			v.gre("10.0.0.2", l3, none32, 0, false, 0)
		}},
		{"IPIP tunnels as they are created", func(v *vpp) {
			i := v.ipip("10.0.0.1", "10.0.0.2", 0, 0)
			if d := v.details(i); d.InterfaceName != "ipip0" || d.InterfaceDevType != "IPIP tunnel device" || d.Flags != 0 || d.LinkMtu != 65516 {
				v.Errorf("it is %+v", d)
			}
			v.call("an instance in use", api.INSTANCE_IN_USE, &ipip.IpipAddTunnel{Tunnel: ipip.IpipTunnel{Src: ipOf("10.0.0.1"), Dst: ipOf("10.0.0.3")}}, &ipip.IpipAddTunnelReply{})
			v.call("unknown", api.NO_SUCH_ENTRY, &ipip.IpipDelTunnel{SwIfIndex: unknown}, &ipip.IpipDelTunnelReply{})
			all := dump[ipip.IpipTunnelDetails](v, &ipip.IpipTunnelDump{SwIfIndex: none})
			if len(all) != 1 || all[0].Tunnel.SwIfIndex != i || all[0].Tunnel.Instance != 0 || vppwire.Addr(all[0].Tunnel.Src).String() != "10.0.0.1" {
				v.Errorf("of %d there are %+v", i, all)
			}
			v.call("delete", 0, &ipip.IpipDelTunnel{SwIfIndex: i}, &ipip.IpipDelTunnelReply{})
		}},
		{"VXLAN tunnels as they are shown", func(v *vpp) {
			change := func(add bool) {
				v.Helper()
				v.call("vxlan_add_del_tunnel_v3", 0, &vxlan.VxlanAddDelTunnelV3{
					IsAdd: add, Instance: none32, SrcAddress: ipOf("10.0.0.1"), DstAddress: ipOf("10.0.0.2"), McastSwIfIndex: none, DecapNextIndex: none32, Vni: 1 << 24,
				}, &vxlan.VxlanAddDelTunnelV3Reply{})
			}
			change(true)
			all := dump[vxlan.VxlanTunnelV2Details](v, &vxlan.VxlanTunnelV2Dump{SwIfIndex: none})
			if len(all) != 1 || all[0].Vni != 1<<24 || all[0].SrcPort != 4789 || all[0].DstPort != 4789 || all[0].DecapNextIndex != 1 || all[0].Instance != 0 {
				v.Errorf("there are %+v", all)
			}
			change(false)
		}},
		{"how a bond spreads its load follows its mode", func(v *vpp) {
			link := adminLink(2)
			if v.since("26.06") {
				link = 0
			}
			for mode, want := range map[bond.BondMode]bond.BondLbAlgo{
				bond.BOND_API_MODE_ROUND_ROBIN: bond.BOND_API_LB_ALGO_RR, bond.BOND_API_MODE_ACTIVE_BACKUP: bond.BOND_API_LB_ALGO_AB,
				bond.BOND_API_MODE_BROADCAST: bond.BOND_API_LB_ALGO_BC, bond.BOND_API_MODE_XOR: bond.BOND_API_LB_ALGO_L34,
			} {
				var r bond.BondCreate2Reply
				v.call("bond_create2", 0, &bond.BondCreate2{ID: none32, Mode: mode, Lb: bond.BOND_API_LB_ALGO_L34}, &r)
				all := dump[bond.SwBondInterfaceDetails](v, &bond.SwBondInterfaceDump{SwIfIndex: r.SwIfIndex})
				if len(all) != 1 || all[0].Lb != want || all[0].ID != 0 {
					v.Errorf("%v is %+v, want %v", mode, all, want)
				}
				if d := v.details(r.SwIfIndex); d.InterfaceName != "BondEthernet0" || d.InterfaceDevType != "bond" || d.Flags != link || d.L2Address == (ethernet_types.MacAddress{}) {
					v.Errorf("it is %+v", d)
				}
				v.call("bond_delete", 0, &bond.BondDelete{SwIfIndex: r.SwIfIndex}, &bond.BondDeleteReply{})
			}
		}},
		{"LACP needs a plugin", func(v *vpp) {
			var r bond.BondCreate2Reply
			err := v.Call(v.Context(), &bond.BondCreate2{ID: none32, Mode: bond.BOND_API_MODE_LACP, Lb: bond.BOND_API_LB_ALGO_L34}, &r)
			testkit.Need(v, "a VPP with the plugin lacp", !errors.Is(err, api.FEATURE_DISABLED))
			v.is("bond_create2", err, 0)
			if all := dump[bond.SwBondInterfaceDetails](v, &bond.SwBondInterfaceDump{SwIfIndex: r.SwIfIndex}); len(all) != 1 || all[0].Lb != bond.BOND_API_LB_ALGO_L34 {
				v.Errorf("it is %+v", all)
			}
			v.call("bond_delete", 0, &bond.BondDelete{SwIfIndex: r.SwIfIndex}, &bond.BondDeleteReply{})
		}},
		{"members of bonds", bondMembers},
		{"MAC addresses of members of bonds", bondAddresses},
	}
}

// withoutMAC checks that an interface has no MAC address, and gets none. Requests that kill VPP are not
// made: such an interface as a member of a bond, as a BVI, and with a DHCP client.
func (v *vpp) withoutMAC(i index) {
	v.Helper()
	mac := ethernet_types.MacAddress{2, 0, 0, 0, 0, 1}
	v.call("sw_interface_set_mac_address", api.UNIMPLEMENTED, &vppif.SwInterfaceSetMacAddress{SwIfIndex: i, MacAddress: mac}, &vppif.SwInterfaceSetMacAddressReply{})
	if d := v.details(i); d.L2Address != (ethernet_types.MacAddress{}) {
		v.Errorf("it is %+v", d)
	}
}

// bondAddresses: a bond gets the MAC address of its first member, unless it was created with one.
// Other members get that of the bond. Each gets its own one back.
func bondAddresses(v *vpp) {
	own := []ethernet_types.MacAddress{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}
	custom, later := ethernet_types.MacAddress{2, 0, 0, 0, 0, 3}, ethernet_types.MacAddress{2, 0, 0, 0, 0, 4}
	members := []index{v.loop(), v.loop()}
	set := func(i index, mac ethernet_types.MacAddress) {
		v.Helper()
		v.call("sw_interface_set_mac_address", 0, &vppif.SwInterfaceSetMacAddress{SwIfIndex: i, MacAddress: mac}, &vppif.SwInterfaceSetMacAddressReply{})
	}
	have := func(what string, bond index, want ...ethernet_types.MacAddress) {
		v.Helper()
		for at, i := range append([]index{bond}, members...) {
			if got := v.details(i).L2Address; got != want[at] {
				v.Errorf("%s: interface %d of the bond and its members has %s, want %s", what, at, got, want[at])
			}
		}
	}
	create := func(q bond.BondCreate2) (index, func()) {
		v.Helper()
		var r bond.BondCreate2Reply
		q.ID, q.Mode = none32, bond.BOND_API_MODE_XOR
		v.call("bond_create2", 0, &q, &r)
		return r.SwIfIndex, func() {
			v.Helper()
			v.call("bond_delete", 0, &bond.BondDelete{SwIfIndex: r.SwIfIndex}, &bond.BondDeleteReply{})
		}
	}
	join := func(i, to index) {
		v.Helper()
		v.call("bond_add_member", 0, &bond.BondAddMember{SwIfIndex: i, BondSwIfIndex: to}, &bond.BondAddMemberReply{})
	}
	detach := func(i index) {
		v.Helper()
		v.call("bond_detach_member", 0, &bond.BondDetachMember{SwIfIndex: i}, &bond.BondDetachMemberReply{})
	}
	for n, i := range members {
		set(i, own[n])
	}

	to, remove := create(bond.BondCreate2{})
	join(members[0], to)
	join(members[1], to)
	have("without an address", to, own[0], own[0], own[0])
	detach(members[0])
	detach(members[1])
	have("all have left", to, own[0], own[0], own[1])
	remove()

	to, remove = create(bond.BondCreate2{UseCustomMac: true, MacAddress: custom})
	join(members[0], to)
	have("with an address", to, custom, custom, own[1])
	set(to, later)
	join(members[1], to)
	have("with another address later", to, later, custom, custom)
	set(members[0], later)
	remove()
	for n, i := range members {
		if got := v.details(i).L2Address; got != own[n] {
			v.Errorf("without its bond, a member has %s, want %s", got, own[n])
		}
	}
}

func bondMembers(v *vpp) {
	var a, b bond.BondCreate2Reply
	for _, r := range []*bond.BondCreate2Reply{&a, &b} {
		v.call("bond_create2", 0, &bond.BondCreate2{ID: none32, Mode: bond.BOND_API_MODE_XOR}, r)
		v.Cleanup(func() {
			_ = v.Call(context.WithoutCancel(v.Context()), &bond.BondDelete{SwIfIndex: r.SwIfIndex}, &bond.BondDeleteReply{}) // it goes with VPP too
		})
	}
	i := v.loop()
	join := func(i, to index, want api.VPPApiError) {
		v.Helper()
		v.call("bond_add_member", want, &bond.BondAddMember{SwIfIndex: i, BondSwIfIndex: to, IsPassive: true, IsLongTimeout: true}, &bond.BondAddMemberReply{})
	}
	detach := func(i index, want api.VPPApiError) {
		v.Helper()
		v.call("bond_detach_member", want, &bond.BondDetachMember{SwIfIndex: i}, &bond.BondDetachMemberReply{})
	}
	join(i, unknown, api.INVALID_INTERFACE)
	join(i, a.SwIfIndex, 0)
	join(i, b.SwIfIndex, api.VALUE_EXIST)
	all := dump[bond.SwMemberInterfaceDetails](v, &bond.SwMemberInterfaceDump{SwIfIndex: a.SwIfIndex})
	if len(all) != 1 || all[0].SwIfIndex != i || !all[0].IsPassive || !all[0].IsLongTimeout {
		v.Errorf("its members are %+v", all)
	}
	detach(i, 0)
	detach(i, api.INVALID_INTERFACE)
	detach(unknown, api.INVALID_SW_IF_INDEX)
	join(i, b.SwIfIndex, 0)
	v.is("delete", v.delete(i), 0)
	if all := dump[bond.SwMemberInterfaceDetails](v, &bond.SwMemberInterfaceDump{SwIfIndex: b.SwIfIndex}); len(all) > 0 {
		v.Errorf("members outlive their interface: %+v", all)
	}
}
