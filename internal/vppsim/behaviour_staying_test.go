package vppsim_test

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/arp"
	"go.fd.io/govpp/binapi/dhcp"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/l3xc"
	"go.fd.io/govpp/binapi/teib"
)

// stayingRows have an interface deleted, and its index used again: what the first has had
// is the second's then.
func stayingRows() []row {
	return []row{
		{"static neighbours, before 26.02", func(v *vpp) {
			i := v.loop()
			v.neighbour(i, 1, ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC, true, 0)
			if v.since("26.02") {
				v.is("delete", v.delete(i), 0)
				if all := v.neighbours(none); len(all) > 0 {
					v.Errorf("there are %+v", all)
				}
				if next := v.loop(); next != i {
					v.Errorf("the next interface has index %d; expected %d", next, i)
				}
				v.neighbour(i, 1, ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC, false, api.NO_SUCH_ENTRY)
				return
			}
			v.inherit(i, func() int { return len(v.neighbours(i)) })
			v.neighbour(i, 1, ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC, false, 0)
		}},
		{"dynamic neighbours do not", func(v *vpp) {
			i := v.loop()
			v.neighbour(i, 1, ip_neighbor.IP_API_NEIGHBOR_FLAG_NONE, true, 0)
			v.is("delete", v.delete(i), 0)
			if all := v.neighbours(none); len(all) > 0 {
				v.Errorf("there are %+v", all)
			}
		}},
		{"entries of TEIB", func(v *vpp) {
			i := v.loop()
			change := func(add uint8, want api.VPPApiError) {
				v.Helper()
				e := teib.TeibEntry{SwIfIndex: i, Peer: ipOf("10.1.0.7"), Nh: ipOf("10.9.0.7")}
				v.call("teib_entry_add_del", want, &teib.TeibEntryAddDel{IsAdd: add, Entry: e}, &teib.TeibEntryAddDelReply{})
			}
			change(1, 0)
			v.inherit(i, func() int { return len(dump[teib.TeibDetails](v, &teib.TeibDump{})) })
			change(1, api.ENTRY_ALREADY_EXISTS)
			change(0, 0)
		}},
		{"cross-connects of layer 3", func(v *vpp) {
			to, i := v.loop(), v.loop()
			v.call("l3xc_update", 0, &l3xc.L3xcUpdate{L3xc: l3xc.L3xc{SwIfIndex: i, Paths: []fib_types.FibPath{via(to, "10.1.0.3")}}}, &l3xc.L3xcUpdateReply{})
			v.inherit(i, func() int { return len(dump[l3xc.L3xcDetails](v, &l3xc.L3xcDump{SwIfIndex: i})) })
			v.call("l3xc_del", 0, &l3xc.L3xcDel{SwIfIndex: i}, &l3xc.L3xcDelReply{})
		}},
		{"cross-connects of layer 3 do not say of which IP version they are", func(v *vpp) {
			i := v.loop()
			path := via(i, "")
			path.Proto = fib_types.FIB_API_PATH_NH_PROTO_IP6
			v.call("l3xc_update", 0, &l3xc.L3xcUpdate{L3xc: l3xc.L3xc{SwIfIndex: i, IsIP6: true, Paths: []fib_types.FibPath{path}}}, &l3xc.L3xcUpdateReply{})
			all := dump[l3xc.L3xcDetails](v, &l3xc.L3xcDump{SwIfIndex: i})
			if len(all) != 1 || all[0].L3xc.IsIP6 || all[0].L3xc.Paths[0].Proto != path.Proto {
				v.Errorf("there are %+v", all)
			}
			v.call("l3xc_del", 0, &l3xc.L3xcDel{SwIfIndex: i, IsIP6: true}, &l3xc.L3xcDelReply{})
		}},
		{"that it answers for others", func(v *vpp) {
			i := v.loop()
			v.call("enable", 0, &arp.ProxyArpIntfcEnableDisable{SwIfIndex: i, Enable: true}, &arp.ProxyArpIntfcEnableDisableReply{})
			v.inherit(i, func() int { return len(dump[arp.ProxyArpIntfcDetails](v, &arp.ProxyArpIntfcDump{})) })
			v.call("disable", 0, &arp.ProxyArpIntfcEnableDisable{SwIfIndex: i}, &arp.ProxyArpIntfcEnableDisableReply{})
		}},
		{"DHCP clients", func(v *vpp) {
			i := v.loop()
			change := func(add bool, want api.VPPApiError) {
				v.Helper()
				v.call("dhcp_client_config", want, &dhcp.DHCPClientConfig{IsAdd: add, Client: dhcp.DHCPClient{SwIfIndex: i, Hostname: "x"}}, &dhcp.DHCPClientConfigReply{})
			}
			change(true, 0)
			v.inherit(i, func() int { return len(dump[dhcp.DHCPClientDetails](v, &dhcp.DHCPClientDump{})) })
			change(false, 0)
		}},
		{"of a pair of cross-connects nothing does", func(v *vpp) {
			a, b := v.loop(), v.loop()
			for _, one := range [][2]index{{a, b}, {b, a}} {
				v.call("xconnect", 0, &l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: one[0], TxSwIfIndex: one[1], Enable: true}, &l2.SwInterfaceSetL2XconnectReply{})
			}
			v.is("delete", v.delete(b), 0)
			if all := dump[l2.L2XconnectDetails](v, &l2.L2XconnectDump{}); len(all) > 0 {
				v.Errorf("there are %+v", all)
			}
		}},
	}
}

// inherit deletes an interface of which something is counted, and makes another one with
// its index.
func (v *vpp) inherit(i index, count func() int) {
	v.Helper()
	before := count()
	v.is("delete", v.delete(i), 0)
	gone := count()
	if again := v.loop(); again != i {
		v.Fatalf("%d is not used again, but %d", i, again)
	}
	if after := count(); before != 1 || gone != 1 || after != 1 {
		v.Errorf("there are %d, then %d, then %d", before, gone, after)
	}
}
