package vppsim_test

import (
	"context"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/l2"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/vppwire"
)

const alreadyHasBVI = -152 // BD_ALREADY_HAS_BVI, which GoVPP does not name

// bridge makes a bridge domain, for the time of the row.
func (v *vpp) bridge(id uint32, flood bool, want api.VPPApiError) {
	v.Helper()
	v.call("bridge_domain_add_del", want, &l2.BridgeDomainAddDel{BdID: id, IsAdd: true, Flood: flood, BdTag: "x"}, &l2.BridgeDomainAddDelReply{})
	v.Cleanup(func() { v.emptyBridge(id) })
}

// emptyBridge deletes a bridge domain, if it is there, with whoever is in it still.
func (v *vpp) emptyBridge(id uint32) {
	ctx := context.WithoutCancel(v.Context())
	all, _ := conn.Dump[l2.BridgeDomainDetails](ctx, v.Conn, &l2.BridgeDomainDump{BdID: id, SwIfIndex: none}) // VPP may have died
	for _, d := range all {
		for _, m := range d.SwIfDetails {
			_ = v.Call(ctx, &l2.SwInterfaceSetL2Bridge{RxSwIfIndex: m.SwIfIndex}, &l2.SwInterfaceSetL2BridgeReply{}) // the same
		}
	}
	_ = v.Call(ctx, &l2.BridgeDomainAddDel{BdID: id}, &l2.BridgeDomainAddDelReply{}) // the row may have deleted it
}

func (v *vpp) unbridge(id uint32, want api.VPPApiError) {
	v.Helper()
	v.call("delete", want, &l2.BridgeDomainAddDel{BdID: id}, &l2.BridgeDomainAddDelReply{})
}

func (v *vpp) member(i index, id uint32, port l2.L2PortType, enable bool, want api.VPPApiError) {
	v.Helper()
	v.call("sw_interface_set_l2_bridge", want, &l2.SwInterfaceSetL2Bridge{RxSwIfIndex: i, BdID: id, PortType: port, Enable: enable}, &l2.SwInterfaceSetL2BridgeReply{})
}

func (v *vpp) fib(id uint32, last byte, i index, add bool, want api.VPPApiError) {
	v.Helper()
	v.call("l2fib_add_del", want, &l2.L2fibAddDel{BdID: id, Mac: ethernet_types.MacAddress{2, 0, 0, 0, 0, last}, SwIfIndex: i, IsAdd: add, StaticMac: true}, &l2.L2fibAddDelReply{})
}

// bridges are all of them, or one.
func (v *vpp) bridges(id uint32) []l2.BridgeDomainDetails {
	v.Helper()
	return dump[l2.BridgeDomainDetails](v, &l2.BridgeDomainDump{BdID: id, SwIfIndex: none})
}

// entries are those of a bridge domain's L2 FIB.
func (v *vpp) entries(id uint32) []l2.L2FibTableDetails {
	v.Helper()
	return dump[l2.L2FibTableDetails](v, &l2.L2FibTableDump{BdID: id})
}

func switchingRows() []row {
	const normal, bvi = l2.L2_API_PORT_TYPE_NORMAL, l2.L2_API_PORT_TYPE_BVI
	return []row{
		{"bridge domains come and go", func(v *vpp) {
			v.bridge(10, true, 0)
			v.bridge(10, false, api.BD_ALREADY_EXISTS)
			v.bridge(0, false, api.BD_ALREADY_EXISTS)
			v.bridge(1<<24-1, false, 0)
			v.bridge(1<<24, false, api.BD_ID_EXCEED_MAX)
			if all := v.bridges(10); len(all) != 1 || !all[0].Flood {
				v.Errorf("it has changed: %+v", all)
			}
			v.unbridge(0, api.BD_NOT_MODIFIABLE)
			v.unbridge(99, api.NO_SUCH_ENTRY)
			if len(v.bridges(99)) > 0 || len(v.bridges(0)) > 0 {
				v.Error("what is not there is shown")
			}
		}},
		{"members", func(v *vpp) {
			a, b := v.loop(), v.loop()
			v.bridge(10, true, 0)
			v.member(a, 10, normal, true, 0)
			v.unbridge(10, api.BD_IN_USE)
			v.member(unknown, 10, normal, true, api.INVALID_SW_IF_INDEX)
			v.member(a, 10, 9, true, api.INVALID_VALUE)
			v.member(b, 10, bvi, true, 0)
			v.member(a, 10, bvi, true, alreadyHasBVI) // and it has left
			if d := v.bridges(10)[0]; len(d.SwIfDetails) != 1 {
				v.Errorf("it has not left: %+v", d)
			}
			v.member(a, 10, normal, true, 0)
			if d := v.bridges(10)[0]; len(d.SwIfDetails) != 2 || d.SwIfDetails[0].SwIfIndex != b || d.BviSwIfIndex != b {
				v.Errorf("the BVI is not first: %+v", d)
			}
			if all := v.entries(10); len(all) != 1 || !all[0].BviMac || all[0].SwIfIndex != b {
				v.Errorf("of the BVI: %+v", all)
			}
			v.member(b, 77, normal, false, 0) // whatever it leaves
			if d := v.bridges(10)[0]; len(d.SwIfDetails) != 1 || d.BviSwIfIndex != none || len(v.entries(10)) > 0 {
				v.Errorf("it has not left: %+v", d)
			}
			v.is("delete", v.delete(a), 0)
			v.unbridge(10, 0)
		}},
		{"a bridge domain is made for a member", func(v *vpp) {
			a := v.loop()
			v.member(a, 99, normal, true, 0)
			v.Cleanup(func() { v.emptyBridge(99) })
			if all := v.bridges(99); len(all) != 1 || !all[0].Flood || !all[0].UuFlood || !all[0].Forward || !all[0].Learn || all[0].ArpTerm {
				v.Errorf("it is %+v", all)
			}
			v.bridge(10, true, 0)
			v.member(a, 10, normal, true, 0)
			if all := v.bridges(99); len(all) != 1 || len(all[0].SwIfDetails) > 0 {
				v.Errorf("it was not left: %+v", all)
			}
		}},
		{"L2 FIB entries", func(v *vpp) {
			a, b := v.loop(), v.loop()
			v.bridge(10, true, 0)
			v.member(a, 10, normal, true, 0)
			v.fib(99, 1, a, true, api.NO_SUCH_ENTRY)
			v.fib(10, 1, unknown, true, api.INVALID_SW_IF_INDEX)
			v.fib(10, 1, b, true, api.INVALID_SW_IF_INDEX)
			v.fib(10, 1, a, true, 0)
			v.fib(10, 1, a, true, 0)
			v.fib(10, 1, b, false, api.NO_SUCH_ENTRY)
			v.fib(10, 2, a, false, api.NO_SUCH_ENTRY)
			v.member(a, 10, normal, false, 0)
			if all := v.entries(10); len(all) != 1 {
				v.Errorf("it went with the member: %+v", all)
			}
			v.fib(10, 1, a, false, 0)
		}},
		{"answers to ARP", func(v *vpp) {
			v.bridge(10, true, 0)
			set := func(id uint32, last byte, add bool, want api.VPPApiError) {
				v.Helper()
				e := l2.BdIPMac{BdID: id, IP: vppwire.Address(netip.MustParseAddr("10.0.0.9")), Mac: ethernet_types.MacAddress{2, 0, 0, 0, 0, last}}
				v.call("bd_ip_mac_add_del", want, &l2.BdIPMacAddDel{IsAdd: add, Entry: e}, &l2.BdIPMacAddDelReply{})
			}
			set(99, 1, true, api.NO_SUCH_ENTRY)
			set(0, 1, true, api.BD_NOT_MODIFIABLE)
			set(10, 1, false, api.UNSPECIFIED)
			set(10, 1, true, 0)
			set(10, 1, true, 0)
			set(10, 2, true, 0)
			set(10, 1, false, api.UNSPECIFIED)
			set(10, 2, false, 0)
		}},
		{"cross-connects", func(v *vpp) {
			a, b, c := v.loop(), v.loop(), v.loop()
			connect := func(rx, tx index, on bool, want api.VPPApiError) {
				v.Helper()
				v.call("sw_interface_set_l2_xconnect", want, &l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: rx, TxSwIfIndex: tx, Enable: on}, &l2.SwInterfaceSetL2XconnectReply{})
			}
			connect(unknown, a, true, api.INVALID_SW_IF_INDEX)
			connect(a, unknown, true, api.INVALID_SW_IF_INDEX)
			for _, to := range []index{b, b, c, a, c} {
				connect(a, to, true, 0)
			}
			v.is("delete", v.delete(c), 0)
			if all := dump[l2.L2XconnectDetails](v, &l2.L2XconnectDump{}); len(all) != 1 || all[0].TxSwIfIndex != c {
				v.Errorf("it does not name the dead one: %+v", all)
			}
			connect(a, b, false, 0)
			connect(a, b, false, 0)
			if all := dump[l2.L2XconnectDetails](v, &l2.L2XconnectDump{}); len(all) > 0 {
				v.Errorf("it stands: %+v", all)
			}
		}},
	}
}
