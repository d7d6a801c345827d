package vppsim_test

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/gtpu"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/vxlan_gpe"
)

func (v *vpp) gpe(add bool, want api.VPPApiError, change func(q *vxlan_gpe.VxlanGpeAddDelTunnelV2)) index {
	v.Helper()
	q := &vxlan_gpe.VxlanGpeAddDelTunnelV2{IsAdd: add, Local: ipOf("10.0.0.1"), Remote: ipOf("10.0.0.2"), McastSwIfIndex: none, Protocol: 1, Vni: 7}
	change(q)
	var r vxlan_gpe.VxlanGpeAddDelTunnelV2Reply
	v.call("vxlan_gpe_add_del_tunnel_v2", want, q, &r)
	return r.SwIfIndex
}

func (v *vpp) gtpu(add bool, want api.VPPApiError, change func(q *gtpu.GtpuAddDelTunnel)) index {
	v.Helper()
	q := &gtpu.GtpuAddDelTunnel{
		IsAdd: add, SrcAddress: ipOf("10.0.0.1"), DstAddress: ipOf("10.0.0.2"), McastSwIfIndex: none, DecapNextIndex: ^uint32(0), Teid: 7,
	}
	change(q)
	var r gtpu.GtpuAddDelTunnelReply
	v.call("gtpu_add_del_tunnel", want, q, &r)
	return r.SwIfIndex
}

// hiddenRows are of VPP's source where behaviour was not measured: vxlan_gpe.c, vxlan_gpe_api.c,
// gtpu.c and gtpu_api.c.
func hiddenRows() []row {
	return []row{
		{"VXLAN-GPE tunnels", func(v *vpp) {
			type request = vxlan_gpe.VxlanGpeAddDelTunnelV2
			as := func(*request) {}
			i := v.gpe(true, 0, as)
			if d := v.details(i); d == nil || d.InterfaceDevType != "VXLAN_GPE" || d.Flags != 3 {
				v.Errorf("it is %+v", d)
			}
			if all := dump[vxlan_gpe.VxlanGpeTunnelV2Details](v, &vxlan_gpe.VxlanGpeTunnelV2Dump{SwIfIndex: i}); len(all) != 1 || all[0].RemotePort != 4790 || all[0].Vni != 7 {
				v.Errorf("it is dumped as %+v", all)
			}
			v.gpe(true, api.TUNNEL_EXIST, as)
			v.gpe(true, api.SAME_SRC_DST, func(q *request) { q.Remote = q.Local })
			v.gpe(true, api.NO_SUCH_FIB, func(q *request) { q.EncapVrfID = 77 })
			v.gpe(true, api.NO_SUCH_INNER_FIB, func(q *request) { q.DecapVrfID = 77 })
			v.gpe(false, api.NO_SUCH_ENTRY, func(q *request) { q.Vni = 8 })
			v.call("table of IPv6", 0, &ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: 77, IsIP6: true}}, &ip.IPTableAddDelReply{})
			v.gpe(true, api.NO_SUCH_FIB, func(q *request) { q.Local, q.Remote, q.EncapVrfID = ipOf("fd00::1"), ipOf("fd00::2"), 77 })
			v.call("no table", 0, &ip.IPTableAddDel{Table: ip.IPTable{TableID: 77, IsIP6: true}}, &ip.IPTableAddDelReply{})
			v.hides(i, func() { v.gpe(false, 0, as) }, func() index { return v.gpe(true, 0, as) })
			v.gpe(false, 0, as)
		}},
		{"GTPU tunnels", func(v *vpp) {
			type request = gtpu.GtpuAddDelTunnel
			as := func(*request) {}
			i := v.gtpu(true, 0, as)
			if d := v.details(i); d == nil || d.InterfaceDevType != "GTPU" || d.Flags != 3 {
				v.Errorf("it is %+v", d)
			}
			if all := dump[gtpu.GtpuTunnelDetails](v, &gtpu.GtpuTunnelDump{SwIfIndex: i}); len(all) != 1 || all[0].Tteid != 7 || all[0].DecapNextIndex != 1 {
				v.Errorf("it is dumped as %+v", all)
			}
			v.gtpu(true, api.TUNNEL_EXIST, as)
			v.gtpu(true, api.TUNNEL_EXIST, func(q *request) { q.SrcAddress = ipOf("10.0.0.3") })
			v.gtpu(true, api.SAME_SRC_DST, func(q *request) { q.DstAddress = q.SrcAddress })
			v.gtpu(true, api.NO_SUCH_FIB, func(q *request) { q.EncapVrfID = 77 })
			v.gtpu(true, api.INVALID_SW_IF_INDEX, func(q *request) { q.DstAddress = ipOf("224.0.0.1") })
			v.gtpu(true, api.INVALID_DECAP_NEXT, func(q *request) { q.Teid, q.DecapNextIndex = 8, 99 })
			v.gtpu(false, api.NO_SUCH_ENTRY, func(q *request) { q.Teid = 8 })
			v.hides(i, func() { v.gtpu(false, 0, as) }, func() index { return v.gtpu(true, 0, as) })
			v.gtpu(false, 0, as)
		}},
	}
}

// hides checks that what is deleted is out of sight, but kept for the next of the kind.
func (v *vpp) hides(i index, remove func(), again func() index) {
	v.Helper()
	v.call("tag", 0, &vppif.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: i, Tag: "kept"}, &vppif.SwInterfaceTagAddDelReply{})
	remove()
	if d := v.details(i); d != nil {
		v.Errorf("it is still seen: %+v", d)
	}
	v.flags(i, 1, api.INVALID_SW_IF_INDEX)
	if other := v.loop(); other == i {
		v.Error("its index was given to a loopback")
	}
	if next := again(); next != i {
		v.Errorf("the next has index %d, want %d", next, i)
	} else if d := v.details(next); d == nil || d.Tag != "kept" {
		v.Errorf("the next is %+v, want it as it was left", d)
	}
}
