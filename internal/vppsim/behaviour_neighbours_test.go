package vppsim_test

import (
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/arp"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/keyplane/keyplane/internal/vppwire"
)

func (v *vpp) neighbour(i index, last byte, flags ip_neighbor.IPNeighborFlags, add bool, want api.VPPApiError) {
	v.Helper()
	n := ip_neighbor.IPNeighbor{
		SwIfIndex: i, Flags: flags, IPAddress: vppwire.Address(netip.MustParseAddr("10.0.0.9")), MacAddress: ethernet_types.MacAddress{2, 0, 0, 0, 0, last},
	}
	v.call("ip_neighbor_add_del", want, &ip_neighbor.IPNeighborAddDel{IsAdd: add, Neighbor: n}, &ip_neighbor.IPNeighborAddDelReply{})
}

func (v *vpp) neighbours(i index) []ip_neighbor.IPNeighborDetails {
	v.Helper()
	return dump[ip_neighbor.IPNeighborDetails](v, &ip_neighbor.IPNeighborDump{SwIfIndex: i, Af: ip_types.ADDRESS_IP4})
}

func neighbourRows() []row {
	const dynamic, static = ip_neighbor.IP_API_NEIGHBOR_FLAG_NONE, ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC
	return []row{
		{"neighbours replace each other", func(v *vpp) {
			i := v.loop()
			v.neighbour(i, 1, dynamic, false, api.NO_SUCH_ENTRY)
			v.neighbour(i, 1, dynamic, true, 0)
			v.neighbour(i, 1, dynamic, true, 0)
			v.neighbour(i, 2, dynamic, true, 0)
			v.neighbour(i, 3, static, true, 0)
			v.neighbour(i, 4, dynamic, true, api.INVALID_SW_IF_INDEX)
			if all := v.neighbours(i); len(all) != 1 || all[0].Neighbor.MacAddress[5] != 3 || all[0].Neighbor.Flags != static {
				v.Errorf("there are %+v", all)
			}
			v.neighbour(i, 9, dynamic, false, 0) // the MAC address is not looked at
			v.neighbour(unknown, 1, dynamic, true, api.INVALID_SW_IF_INDEX)
			v.neighbour(unknown, 1, dynamic, false, api.INVALID_SW_IF_INDEX)
		}},
		{"dynamic neighbours go as the interface goes down, static ones stay", func(v *vpp) {
			a, b := v.loop(), v.loop()
			v.neighbour(a, 1, dynamic, true, 0)
			v.neighbour(b, 1, static, true, 0)
			v.flags(a, 0, 0)
			v.flags(b, 0, 0)
			if len(v.neighbours(a)) != 0 || len(v.neighbours(b)) != 1 {
				v.Errorf("there are %+v", v.neighbours(none))
			}
			v.neighbour(b, 1, static, false, 0)
		}},
		{"neighbours are flushed, static ones too", func(v *vpp) {
			i := v.loop()
			flush := func(i index, want api.VPPApiError) {
				v.Helper()
				v.call("ip_neighbor_flush", want, &ip_neighbor.IPNeighborFlush{SwIfIndex: i}, &ip_neighbor.IPNeighborFlushReply{})
			}
			flush(unknown, api.INVALID_SW_IF_INDEX)
			v.neighbour(i, 1, static, true, 0)
			flush(none, 0)
			if all := v.neighbours(none); len(all) > 0 {
				v.Errorf("there are %+v", all)
			}
		}},
		{"the age of neighbours", func(v *vpp) {
			get := func() ip_neighbor.IPNeighborConfigGetReply {
				v.Helper()
				var r ip_neighbor.IPNeighborConfigGetReply
				v.call("ip_neighbor_config_get", 0, &ip_neighbor.IPNeighborConfigGet{}, &r)
				return r
			}
			set := func(af ip_types.AddressFamily, number, age uint32, recycle bool, want api.VPPApiError) {
				v.Helper()
				q := &ip_neighbor.IPNeighborConfig{Af: af, MaxNumber: number, MaxAge: age, Recycle: recycle}
				v.call("ip_neighbor_config", want, q, &ip_neighbor.IPNeighborConfigReply{})
			}
			if r := get(); v.fresh && (r.MaxNumber != 50000 || r.MaxAge != 0 || r.Recycle) {
				v.Errorf("of a fresh VPP it is %+v", r)
			}
			set(ip_types.ADDRESS_IP4, 5, 10, true, 0)
			if r := get(); r.MaxNumber != 5 || r.MaxAge != 10 || !r.Recycle {
				v.Errorf("it is %+v", r)
			}
			set(ip_types.ADDRESS_IP4, 0, 0, false, 0)
			set(7, 5, 10, false, api.INVALID_ADDRESS_FAMILY)
			set(ip_types.ADDRESS_IP4, 50000, 0, false, 0)
		}},
		{"proxy ARP", func(v *vpp) {
			i := v.loop()
			change := func(table uint32, low, high byte, add bool, want api.VPPApiError) {
				v.Helper()
				r := arp.ProxyArp{TableID: table, Low: ip_types.IP4Address{10, 0, 0, low}, Hi: ip_types.IP4Address{10, 0, 0, high}}
				v.call("proxy_arp_add_del", want, &arp.ProxyArpAddDel{IsAdd: add, Proxy: r}, &arp.ProxyArpAddDelReply{})
			}
			change(77, 1, 9, true, api.NO_SUCH_FIB)
			change(0, 1, 9, true, 0)
			change(0, 1, 9, true, 0)
			change(0, 5, 3, true, 0)
			change(0, 1, 8, false, api.NO_SUCH_ENTRY)
			if all := dump[arp.ProxyArpDetails](v, &arp.ProxyArpDump{}); len(all) != 2 {
				v.Errorf("there are %+v", all)
			}
			change(0, 1, 9, false, 0)
			change(0, 5, 3, false, 0)
			for _, on := range []bool{false, true, true, false, false} {
				v.call("proxy_arp_intfc_enable_disable", 0, &arp.ProxyArpIntfcEnableDisable{SwIfIndex: i, Enable: on}, &arp.ProxyArpIntfcEnableDisableReply{})
			}
			v.call("of none", api.INVALID_SW_IF_INDEX, &arp.ProxyArpIntfcEnableDisable{SwIfIndex: unknown}, &arp.ProxyArpIntfcEnableDisableReply{})
		}},
	}
}
