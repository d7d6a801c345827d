package vppsim_test

import (
	"context"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/l2"
)

// bridgeV2 changes a bridge domain by the newer message, and returns its ID.
func (v *vpp) bridgeV2(q l2.BridgeDomainAddDelV2, want api.VPPApiError) uint32 {
	v.Helper()
	var r l2.BridgeDomainAddDelV2Reply
	v.call("bridge_domain_add_del_v2", want, &q, &r)
	if q.IsAdd && want == 0 {
		v.Cleanup(func() { v.emptyBridge(r.BdID) })
	}
	return r.BdID
}

// bvi makes a BVI, for the time of the row.
func (v *vpp) bvi(instance uint32, want api.VPPApiError) index {
	v.Helper()
	var r l2.BviCreateReply
	v.call("bvi_create", want, &l2.BviCreate{UserInstance: instance}, &r)
	if want == 0 {
		v.Cleanup(func() {
			_ = v.Call(context.WithoutCancel(v.Context()), &l2.BviDelete{SwIfIndex: r.SwIfIndex}, &l2.BviDeleteReply{}) // the row may have deleted it
		})
	}
	return r.SwIfIndex
}

func (v *vpp) rewrite(i index, op, dot1q, tag1, tag2 uint32, want api.VPPApiError) {
	v.Helper()
	v.call("l2_interface_vlan_tag_rewrite", want, &l2.L2InterfaceVlanTagRewrite{SwIfIndex: i, VtrOp: op, PushDot1q: dot1q, Tag1: tag1, Tag2: tag2}, &l2.L2InterfaceVlanTagRewriteReply{})
}

// rewrites checks how the tags of an interface are shown to be rewritten.
func (v *vpp) rewrites(i index, want ...uint32) {
	v.Helper()
	if d := v.details(i); !slices.Equal([]uint32{d.VtrOp, d.VtrPushDot1q, d.VtrTag1, d.VtrTag2}, want) {
		v.Errorf("interface %d shows %d %d %d %d, want %v", i, d.VtrOp, d.VtrPushDot1q, d.VtrTag1, d.VtrTag2, want)
	}
}

func bridgeRows() []row {
	const normal, bvi, unknownUnicast = l2.L2_API_PORT_TYPE_NORMAL, l2.L2_API_PORT_TYPE_BVI, l2.L2_API_PORT_TYPE_UU_FWD
	return []row{
		{"flags of a bridge domain", bridgeFlags},
		{"bridge domains by the newer message", bridgesByNewerMessage},
		{"a BVI moves", func(v *vpp) {
			i := v.loop()
			v.bridge(10, true, 0)
			v.bridge(11, true, 0)
			v.member(i, 10, bvi, true, 0)
			v.member(i, 11, bvi, true, 0)
			if a, b := v.bridges(10)[0], v.bridges(11)[0]; a.BviSwIfIndex != none || len(a.SwIfDetails) > 0 || b.BviSwIfIndex != i {
				v.Errorf("it left %+v for %+v", a, b)
			}
			if len(v.entries(10)) > 0 || len(v.entries(11)) != 1 {
				v.Errorf("its MAC address is at %+v and %+v", v.entries(10), v.entries(11))
			}
		}},
		{"where unknown unicast goes is no member", func(v *vpp) {
			i := v.loop()
			v.bridge(10, true, 0)
			v.member(i, 10, unknownUnicast, true, 0)
			if d := v.bridges(10)[0]; len(d.SwIfDetails) > 0 || d.UuFwdSwIfIndex != i {
				v.Errorf("it is %+v", d)
			}
		}},
		{"a member keeps its addresses, and takes another split horizon group", func(v *vpp) {
			i := v.loop()
			v.bridge(10, true, 0)
			v.is("address", v.address(i, true, "10.8.0.1/24"), 0)
			v.member(i, 10, normal, true, 0)
			v.call("again", 0, &l2.SwInterfaceSetL2Bridge{RxSwIfIndex: i, BdID: 10, Shg: 7, Enable: true}, &l2.SwInterfaceSetL2BridgeReply{})
			if d := v.bridges(10)[0]; len(d.SwIfDetails) != 1 || d.SwIfDetails[0].Shg != 7 || len(v.addresses(i, false)) != 1 {
				v.Errorf("it is %+v with %v", d, v.addresses(i, false))
			}
		}},
		{"a member becomes a cross-connect, and back", memberAndXconnect},
		{"L2 FIB entries outlive their bridge domain", entriesOutliveBridge},
		{"L2 FIB entries that drop", func(v *vpp) {
			v.bridge(10, true, 0)
			mac := ethernet_types.MacAddress{1, 0, 0, 0, 0, 1}
			v.call("l2fib_add_del", 0, &l2.L2fibAddDel{BdID: 10, Mac: mac, SwIfIndex: none, IsAdd: true, FilterMac: true}, &l2.L2fibAddDelReply{})
			if all := v.entries(10); len(all) != 1 || !all[0].FilterMac || !all[0].StaticMac || all[0].SwIfIndex != none {
				v.Errorf("there are %+v", all)
			}
			v.call("l2fib_add_del", 0, &l2.L2fibAddDel{BdID: 10, Mac: mac, SwIfIndex: none, FilterMac: true}, &l2.L2fibAddDelReply{})
			if all := v.entries(10); len(all) > 0 {
				v.Errorf("there are %+v", all)
			}
		}},
		{"what was asked for is not flushed", flushes},
		{"interfaces that are made as a BVI", bvis},
		{"tags of VLANs are rewritten", rewritesTags},
		{"what rewrites tags is lost as layer 2 is left, and else outlives its interface", func(v *vpp) {
			i, other := v.loop(), v.loop()
			var sub vppif.CreateVlanSubifReply
			v.call("create_vlan_subif", 0, &vppif.CreateVlanSubif{SwIfIndex: i, VlanID: 7}, &sub)
			v.bridge(10, true, 0)
			v.rewrite(sub.SwIfIndex, 3, 0, 0, 0, 0)
			v.member(sub.SwIfIndex, 10, normal, true, 0)
			v.rewrites(sub.SwIfIndex, 3, 0, 0, 0)
			v.member(sub.SwIfIndex, 10, normal, false, 0)
			v.rewrites(sub.SwIfIndex, 0, 0, 0, 0)
			v.rewrite(sub.SwIfIndex, 3, 0, 0, 0, 0)
			for _, on := range []bool{true, false} {
				v.call("xconnect", 0, &l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: sub.SwIfIndex, TxSwIfIndex: i, Enable: on}, &l2.SwInterfaceSetL2XconnectReply{})
			}
			v.rewrites(sub.SwIfIndex, 0, 0, 0, 0)
			v.rewrite(other, 1, 1, 100, 0, 0)
			v.is("delete", v.delete(other), 0)
			again := v.loop()
			v.rewrites(again, 1, 1, 100, 0)
			v.rewrite(again, 0, 0, 0, 0, 0)
		}},
	}
}

func bridgeFlags(v *vpp) {
	set := func(id uint32, on bool, flags l2.BdFlags, want api.VPPApiError) {
		v.Helper()
		v.call("bridge_flags", want, &l2.BridgeFlags{BdID: id, IsSet: on, Flags: flags}, &l2.BridgeFlagsReply{})
	}
	v.bridge(10, true, 0)
	set(99, true, l2.BRIDGE_API_FLAG_LEARN, api.NO_SUCH_ENTRY)
	set(0, true, l2.BRIDGE_API_FLAG_LEARN, api.BD_NOT_MODIFIABLE)
	set(10, true, l2.BRIDGE_API_FLAG_LEARN|l2.BRIDGE_API_FLAG_ARP_TERM|l2.BRIDGE_API_FLAG_ARP_UFWD, 0)
	set(10, false, l2.BRIDGE_API_FLAG_FLOOD, 0)
	set(10, true, 0, 0)
	set(10, true, 1024, 0)
	for id, want := range map[uint32]api.VPPApiError{99: api.NO_SUCH_ENTRY, 0: api.BD_NOT_MODIFIABLE, 10: 0} {
		v.call("bridge_domain_set_mac_age", want, &l2.BridgeDomainSetMacAge{BdID: id, MacAge: 9}, &l2.BridgeDomainSetMacAgeReply{})
	}
	if d := v.bridges(10)[0]; d.Flood || d.Forward || d.UuFlood || !d.Learn || !d.ArpTerm || !d.ArpUfwd || d.MacAge != 9 {
		v.Errorf("it is %+v", d)
	}
}

func bridgesByNewerMessage(v *vpp) {
	id := v.bridgeV2(l2.BridgeDomainAddDelV2{BdID: ^uint32(0), IsAdd: true, Learn: true, MacAge: 7, BdTag: strings.Repeat("x", 63)}, 0)
	all := v.bridges(id)
	if len(all) != 1 || id == 0 || id == ^uint32(0) || !all[0].Learn || all[0].MacAge != 7 || all[0].BdTag != strings.Repeat("x", 63) {
		v.Errorf("%d is %+v", id, all)
	}
	if other := v.bridgeV2(l2.BridgeDomainAddDelV2{BdID: ^uint32(0), IsAdd: true}, 0); other == id {
		v.Errorf("%d twice", id)
	}
	for _, id := range []uint32{99, none32} {
		if got := v.bridgeV2(l2.BridgeDomainAddDelV2{BdID: id}, api.NO_SUCH_ENTRY); got != id {
			v.Errorf("the reply has %d, want %d", got, id)
		}
	}
	v.bridgeV2(l2.BridgeDomainAddDelV2{BdID: id}, 0)
	filtered := dump[l2.BridgeDomainDetails](v, &l2.BridgeDomainDump{BdID: none32, SwIfIndex: 1})
	if len(v.bridges(id)) > 0 || len(filtered) > 0 {
		v.Errorf("it is there, or shown by the index of an interface: %+v", filtered)
	}
}

const none32 = ^uint32(0)

func memberAndXconnect(v *vpp) {
	a, b := v.loop(), v.loop()
	v.bridge(10, true, 0)
	v.member(a, 10, l2.L2_API_PORT_TYPE_NORMAL, true, 0)
	v.call("xconnect", 0, &l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: a, TxSwIfIndex: b, Enable: true}, &l2.SwInterfaceSetL2XconnectReply{})
	crossed := func() int { return len(dump[l2.L2XconnectDetails](v, &l2.L2XconnectDump{})) }
	if d := v.bridges(10)[0]; len(d.SwIfDetails) > 0 || crossed() != 1 {
		v.Errorf("it is in %+v still", d)
	}
	v.member(a, 10, l2.L2_API_PORT_TYPE_NORMAL, true, 0)
	if d := v.bridges(10)[0]; len(d.SwIfDetails) != 1 || crossed() > 0 {
		v.Errorf("it is not back in %+v", d)
	}
}

func entriesOutliveBridge(v *vpp) {
	i := v.loop()
	v.bridge(10, true, 0)
	v.member(i, 10, l2.L2_API_PORT_TYPE_NORMAL, true, 0)
	v.fib(10, 1, i, true, 0)
	v.member(i, 10, l2.L2_API_PORT_TYPE_NORMAL, false, 0)
	v.unbridge(10, 0)
	if all := v.entries(none32); len(all) != 1 || all[0].BdID != none32 {
		v.Errorf("without a bridge domain there are %+v", all)
	}
	v.bridge(20, true, 0)
	if all := v.entries(20); len(all) != 1 {
		v.Errorf("the next one has %+v", all)
	}
	v.fib(20, 1, i, false, 0)
}

func flushes(v *vpp) {
	i := v.loop()
	v.bridge(10, true, 0)
	v.member(i, 10, l2.L2_API_PORT_TYPE_NORMAL, true, 0)
	v.fib(10, 1, i, true, 0)
	v.call("l2fib_flush_bd", 0, &l2.L2fibFlushBd{BdID: 10}, &l2.L2fibFlushBdReply{})
	v.call("l2fib_flush_bd", api.NO_SUCH_ENTRY, &l2.L2fibFlushBd{BdID: 99}, &l2.L2fibFlushBdReply{})
	v.call("l2fib_flush_int", 0, &l2.L2fibFlushInt{SwIfIndex: i}, &l2.L2fibFlushIntReply{})
	v.call("l2fib_flush_int", api.INVALID_SW_IF_INDEX, &l2.L2fibFlushInt{SwIfIndex: unknown}, &l2.L2fibFlushIntReply{})
	v.call("l2fib_flush_all", 0, &l2.L2fibFlushAll{}, &l2.L2fibFlushAllReply{})
	if all := v.entries(10); len(all) != 1 {
		v.Errorf("there are %+v", all)
	}
	v.fib(10, 1, i, false, 0)
	v.call("bd_ip_mac_flush", api.NO_SUCH_ENTRY, &l2.BdIPMacFlush{BdID: 99}, &l2.BdIPMacFlushReply{})
	for _, ip := range []string{"fd00::9", "10.0.0.9"} {
		e := l2.BdIPMac{BdID: 10, IP: ipOf(ip), Mac: ethernet_types.MacAddress{2}}
		v.call("bd_ip_mac_add_del", 0, &l2.BdIPMacAddDel{IsAdd: true, Entry: e}, &l2.BdIPMacAddDelReply{})
	}
	arps := func() []l2.BdIPMacDetails { return dump[l2.BdIPMacDetails](v, &l2.BdIPMacDump{BdID: none32}) }
	if all := arps(); len(all) != 2 || all[0].Entry.IP != ipOf("10.0.0.9") {
		v.Errorf("IPv4 is not first in %+v", all)
	}
	v.call("bd_ip_mac_flush", 0, &l2.BdIPMacFlush{BdID: 10}, &l2.BdIPMacFlushReply{})
	if all := arps(); len(all) > 0 {
		v.Errorf("there are %+v", all)
	}
}

func bvis(v *vpp) {
	first, second := v.bvi(none32, 0), v.bvi(none32, 0)
	v.bvi(1, api.INVALID_REGISTRATION)
	a, b := v.details(first), v.details(second)
	if a.InterfaceName != "bvi0" || a.InterfaceDevType != "BVI" || a.L2Address.String() != "b0:b0:00:00:00:00" || b.L2Address.String() != "b0:b0:00:00:00:01" {
		v.Errorf("they are %+v and %+v", a, b)
	}
	remove := func(i index, want api.VPPApiError) {
		v.Helper()
		v.call("bvi_delete", want, &l2.BviDelete{SwIfIndex: i}, &l2.BviDeleteReply{})
	}
	for _, i := range []index{v.loop(), unknown, none} {
		remove(i, api.INVALID_SW_IF_INDEX)
	}
	v.is("delete it as a loopback", v.delete(first), api.INVALID_SW_IF_INDEX)
	remove(first, 0)
	remove(first, api.INVALID_SW_IF_INDEX)
}

// rewritesTags has the operations of VPP (l2_vtr.h): 1, 2 push, 3, 4 pop, 5 to 8 replace
// one or two tags by one or two.
func rewritesTags(v *vpp) {
	i := v.loop()
	var sub vppif.CreateVlanSubifReply
	v.call("create_vlan_subif", 0, &vppif.CreateVlanSubif{SwIfIndex: i, VlanID: 7}, &sub)
	v.rewrite(unknown, 1, 1, 100, 0, api.INVALID_SW_IF_INDEX)
	v.rewrite(i, 9, 1, 100, 0, api.INVALID_VALUE)
	for op, want := range map[uint32]api.VPPApiError{
		3: api.INVALID_VLAN_TAG_COUNT, 4: api.INVALID_VLAN_TAG_COUNT, 5: api.INVALID_VLAN_TAG_COUNT, 6: api.INVALID_VLAN_TAG_COUNT, 7: api.INVALID_VLAN_TAG_COUNT, 8: api.INVALID_VLAN_TAG_COUNT,
	} {
		v.rewrite(i, op, 1, 100, 200, want)
	}
	for _, op := range []uint32{4, 7, 8} {
		v.rewrite(sub.SwIfIndex, op, 1, 100, 200, api.INVALID_VLAN_TAG_COUNT)
	}
	for _, step := range []struct{ op, dot1q, tag1, tag2 uint32 }{{1, 1, 100, 0}, {2, 0, 100, 200}, {3, 0, 0, 0}, {5, 1, 100, 0}, {6, 1, 100, 200}, {0, 0, 0, 0}} {
		v.rewrite(sub.SwIfIndex, step.op, 5*step.dot1q, 100, 200, 0)
		v.rewrites(sub.SwIfIndex, step.op, step.dot1q, step.tag1, step.tag2)
	}
}
