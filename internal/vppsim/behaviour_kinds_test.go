package vppsim_test

import (
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/bond"
	"go.fd.io/govpp/binapi/ethernet_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/ipip"
	"go.fd.io/govpp/binapi/vxlan"

	"github.com/keyplane/keyplane/internal/vppwire"
)

func ipOf(a string) ip_types.Address { return vppwire.Address(netip.MustParseAddr(a)) }

// vxlan adds or deletes a tunnel.
func (v *vpp) vxlan(src, dst string, instance, table uint32, add bool, want api.VPPApiError) index {
	v.Helper()
	var r vxlan.VxlanAddDelTunnelV3Reply
	v.call("vxlan_add_del_tunnel_v3", want, &vxlan.VxlanAddDelTunnelV3{
		IsAdd: add, Instance: instance, SrcAddress: ipOf(src), DstAddress: ipOf(dst), EncapVrfID: table, McastSwIfIndex: none, DecapNextIndex: ^uint32(0), Vni: 7,
	}, &r)
	return r.SwIfIndex
}

func (v *vpp) ipip(src, dst string, table uint32, want api.VPPApiError) index {
	v.Helper()
	var r ipip.IpipAddTunnelReply
	v.call("ipip_add_tunnel", want, &ipip.IpipAddTunnel{Tunnel: ipip.IpipTunnel{Instance: ^uint32(0), Src: ipOf(src), Dst: ipOf(dst), TableID: table}}, &r)
	return r.SwIfIndex
}

func kindRows() []row {
	const free = ^uint32(0)
	return []row{
		{"VXLAN tunnels", func(v *vpp) {
			i := v.vxlan("10.0.0.1", "10.0.0.2", 3, 0, true, 0)
			if d := v.details(i); d == nil || d.InterfaceName != "vxlan_tunnel3" || d.InterfaceDevType != "VXLAN" || d.Flags != 3 {
				v.Errorf("it is %+v", d)
			}
			v.vxlan("10.0.0.1", "10.0.0.2", free, 0, true, api.TUNNEL_EXIST)
			v.vxlan("10.0.0.1", "10.0.0.3", 3, 0, true, api.INSTANCE_IN_USE)
			v.vxlan("10.0.0.1", "10.0.0.1", free, 0, true, api.SAME_SRC_DST)
			v.vxlan("10.0.0.1", "10.0.0.2", free, 77, true, api.NO_SUCH_FIB)
			v.vxlan("10.0.0.1", "fd00::1", free, 0, true, api.INVALID_VALUE)
			v.vxlan("10.0.0.1", "224.0.0.1", free, 0, true, api.INVALID_SW_IF_INDEX)
			if got := v.vxlan("10.0.0.1", "10.0.0.2", free, 0, false, 0); got != i {
				v.Errorf("deleted was %d, want %d", got, i)
			}
			v.vxlan("10.0.0.1", "10.0.0.2", free, 0, false, api.NO_SUCH_ENTRY)
		}},
		{"IPIP tunnels", func(v *vpp) {
			i := v.ipip("10.0.0.1", "10.0.0.2", 0, 0)
			if again := v.ipip("10.0.0.1", "10.0.0.2", 0, api.IF_ALREADY_EXISTS); again != i {
				v.Errorf("the reply has %d, want %d", again, i)
			}
			v.ipip("10.0.0.1", "10.0.0.3", 77, api.NO_SUCH_FIB)
			v.ipip("10.0.0.1", "fd00::1", 0, api.INVALID_PROTOCOL)
			v.call("not one", api.NO_SUCH_ENTRY, &ipip.IpipDelTunnel{SwIfIndex: v.loop()}, &ipip.IpipDelTunnelReply{})
			v.call("delete", 0, &ipip.IpipDelTunnel{SwIfIndex: i}, &ipip.IpipDelTunnelReply{})
			v.call("twice", api.NO_SUCH_ENTRY, &ipip.IpipDelTunnel{SwIfIndex: i}, &ipip.IpipDelTunnelReply{})
		}},
		{"bonds", func(v *vpp) {
			var b bond.BondCreate2Reply
			create := func(mode bond.BondMode, id uint32, want api.VPPApiError, r *bond.BondCreate2Reply) {
				v.Helper()
				v.call("bond_create2", want, &bond.BondCreate2{Mode: mode, ID: id}, r)
			}
			create(bond.BOND_API_MODE_ROUND_ROBIN, 3, 0, &b)
			create(bond.BOND_API_MODE_XOR, 3, api.INSTANCE_IN_USE, &bond.BondCreate2Reply{})
			create(9, 4, api.INVALID_ARGUMENT, &bond.BondCreate2Reply{})
			all := dump[bond.SwBondInterfaceDetails](v, &bond.SwBondInterfaceDump{SwIfIndex: b.SwIfIndex})
			if len(all) != 1 || all[0].Lb != 3 || all[0].InterfaceName != "BondEthernet3" {
				v.Errorf("it is %+v", all)
			}
			i := v.loop()
			join := func(i, to index, want api.VPPApiError) {
				v.Helper()
				v.call("bond_add_member", want, &bond.BondAddMember{SwIfIndex: i, BondSwIfIndex: to}, &bond.BondAddMemberReply{})
			}
			join(i, b.SwIfIndex, 0)
			join(i, b.SwIfIndex, api.VALUE_EXIST)
			join(unknown, b.SwIfIndex, api.INVALID_SW_IF_INDEX)
			join(v.loop(), i, api.INVALID_INTERFACE)
			v.call("not one", api.INVALID_SW_IF_INDEX, &bond.BondDelete{SwIfIndex: i}, &bond.BondDeleteReply{})
			v.call("with a member", 0, &bond.BondDelete{SwIfIndex: b.SwIfIndex}, &bond.BondDeleteReply{})
			v.call("it is free", api.INVALID_INTERFACE, &bond.BondDetachMember{SwIfIndex: i}, &bond.BondDetachMemberReply{})
		}},
		{"a bond has the address of its creation or of its first member", func(v *vpp) {
			created, set, own := ethernet_types.MacAddress{2, 1}, ethernet_types.MacAddress{2, 2}, ethernet_types.MacAddress{2, 3}
			for _, custom := range []bool{false, true} {
				var b bond.BondCreate2Reply
				v.call("bond_create2", 0, &bond.BondCreate2{Mode: bond.BOND_API_MODE_XOR, ID: 3, UseCustomMac: custom, MacAddress: created}, &b)
				i := v.loop()
				for at, mac := range map[index]ethernet_types.MacAddress{b.SwIfIndex: set, i: own} {
					v.call("sw_interface_set_mac_address", 0, &vppif.SwInterfaceSetMacAddress{SwIfIndex: at, MacAddress: mac}, &vppif.SwInterfaceSetMacAddressReply{})
				}
				v.call("bond_add_member", 0, &bond.BondAddMember{SwIfIndex: i, BondSwIfIndex: b.SwIfIndex}, &bond.BondAddMemberReply{})
				of, its := own, own
				if custom {
					of, its = set, created
				}
				if has, member := v.details(b.SwIfIndex).L2Address, v.details(i).L2Address; has != of || member != its {
					v.Errorf("created with an address: %t; it has %v, its member %v; want %v and %v", custom, has, member, of, its)
				}
				v.call("bond_delete", 0, &bond.BondDelete{SwIfIndex: b.SwIfIndex}, &bond.BondDeleteReply{})
			}
		}},
		{"sub-interfaces", func(v *vpp) {
			parent := v.loop()
			var r vppif.CreateVlanSubifReply
			create := func(of index, vlan uint32, want api.VPPApiError, r *vppif.CreateVlanSubifReply) {
				v.Helper()
				v.call("create_vlan_subif", want, &vppif.CreateVlanSubif{SwIfIndex: of, VlanID: vlan}, r)
			}
			create(parent, 100, 0, &r)
			for vlan, want := range map[uint32]api.VPPApiError{100: api.VLAN_ALREADY_EXISTS, 0: api.INVALID_VLAN, 4096: api.INVALID_VLAN} {
				create(parent, vlan, want, &vppif.CreateVlanSubifReply{})
			}
			create(unknown, 7, api.INVALID_SW_IF_INDEX, &vppif.CreateVlanSubifReply{})
			v.flags(parent, 0, 0)
			v.flags(r.SwIfIndex, 1, api.UNSPECIFIED)
			v.flags(parent, 1, 0)
			v.flags(r.SwIfIndex, 1, 0)
			v.call("main", api.INVALID_SUB_SW_IF_INDEX, &vppif.DeleteSubif{SwIfIndex: parent}, &vppif.DeleteSubifReply{})
			v.is("parent", v.delete(parent), 0)
			if d := v.details(r.SwIfIndex); d != nil {
				v.Errorf("it outlived its parent: %+v", d)
			}
		}},
	}
}
