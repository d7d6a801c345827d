package vppsim_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/dhcp"
	"go.fd.io/govpp/binapi/fib_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/l3xc"
	"go.fd.io/govpp/binapi/span"
	"go.fd.io/govpp/binapi/teib"
	"go.fd.io/govpp/binapi/vrrp"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppwire"
)

func addr(text string) ip_types.Address { return vppwire.Address(netip.MustParseAddr(text)) }

// router adds a virtual router, for the time of the row.
func (v *vpp) router(q vrrp.VrrpVrAddDel, want api.VPPApiError) {
	v.Helper()
	q.IsAdd = 1
	v.call("vrrp_vr_add_del", want, &q, &vrrp.VrrpVrAddDelReply{})
	q.IsAdd = 0
	v.Cleanup(func() { _ = v.Call(context.WithoutCancel(v.Context()), &q, &vrrp.VrrpVrAddDelReply{}) }) // the row may have deleted it
}

func (v *vpp) startRouter(i index, start bool, want api.VPPApiError) {
	v.Helper()
	q := &vrrp.VrrpVrStartStop{SwIfIndex: i, VrID: 7}
	if start {
		q.IsStart = 1
	}
	v.call("vrrp_vr_start_stop", want, q, &vrrp.VrrpVrStartStopReply{})
}

func (v *vpp) proxy(source, server string, serverTable uint32, add bool, want api.VPPApiError) {
	v.Helper()
	q := &dhcp.DHCPProxyConfig{RxVrfID: 66, ServerVrfID: serverTable, IsAdd: add, DHCPServer: addr(server), DHCPSrcAddress: addr(source)}
	v.call("dhcp_proxy_config", want, q, &dhcp.DHCPProxyConfigReply{})
}

func serviceRows() []row {
	return slices.Concat(routerRows(), tunnelEndRows(), mirrorRows(), autoconfRows())
}

func routerRows() []row {
	one := func(i index) vrrp.VrrpVrAddDel {
		return vrrp.VrrpVrAddDel{SwIfIndex: i, VrID: 7, Priority: 100, Interval: 100, Addrs: []ip_types.Address{addr("10.0.0.9")}}
	}
	return []row{
		{"a virtual router is refused", func(v *vpp) {
			i := v.loop()
			for want, change := range map[api.VPPApiError]func(q *vrrp.VrrpVrAddDel){
				api.INVALID_SRC_ADDRESS:             func(q *vrrp.VrrpVrAddDel) { q.Addrs = nil },
				api.INVALID_SW_IF_INDEX:             func(q *vrrp.VrrpVrAddDel) { q.SwIfIndex = unknown },
				api.ADDRESS_NOT_FOUND_FOR_INTERFACE: func(q *vrrp.VrrpVrAddDel) { q.Priority = 255 }, // VPP vrrp.c, vrrp_vr_valid_addrs_owner
			} {
				q := one(i)
				change(&q)
				v.router(q, want)
			}
			for _, change := range []func(q *vrrp.VrrpVrAddDel){
				func(q *vrrp.VrrpVrAddDel) { q.Priority = 0 }, func(q *vrrp.VrrpVrAddDel) { q.VrID = 0 }, func(q *vrrp.VrrpVrAddDel) { q.Interval = 0 },
			} {
				q := one(i)
				change(&q)
				v.router(q, api.INVALID_VALUE)
			}
			v.startRouter(i, true, api.NO_SUCH_ENTRY)
			gone := one(i)
			v.call("delete", api.NO_SUCH_ENTRY, &gone, &vrrp.VrrpVrAddDelReply{})
		}},
		{"a virtual router is made once", func(v *vpp) {
			i := v.loop()
			v.router(one(i), 0)
			v.router(one(i), api.ENTRY_ALREADY_EXISTS)
		}},
		{"a virtual router on an interface that is down", func(v *vpp) {
			i := v.loop()
			v.flags(i, 0, 0)
			v.router(one(i), 0)
			another := one(i)
			another.VrID = 8
			v.router(another, api.ADDRESS_IN_USE)
			v.startRouter(i, true, 0)
			v.startRouter(i, true, 0)
			all := dump[vrrp.VrrpVrDetails](v, &vrrp.VrrpVrDump{SwIfIndex: i})
			if len(all) != 1 || all[0].Runtime.State != vrrp.VRRP_API_VR_STATE_INTF_DOWN || all[0].Config.Interval != 100 {
				v.Errorf("there are %+v", all)
			}
			v.startRouter(i, false, 0)
			v.startRouter(i, false, 0)
		}},
		{"a virtual router on an interface that gets its address later", func(v *vpp) {
			i := v.loop()
			v.router(one(i), 0)
			state := func(want vrrp.VrrpVrState) {
				v.Helper()
				if all := dump[vrrp.VrrpVrDetails](v, &vrrp.VrrpVrDump{SwIfIndex: i}); len(all) != 1 || all[0].Runtime.State != want {
					v.Errorf("there are %+v; expected the state %v", all, want)
				}
			}
			v.startRouter(i, true, 0)
			if err := v.address(i, true, "10.0.0.1/24"); err != nil {
				v.Error(err)
			}
			state(vrrp.VRRP_API_VR_STATE_INTF_DOWN)
			v.startRouter(i, false, 0)
			v.startRouter(i, true, 0)
			state(vrrp.VRRP_API_VR_STATE_BACKUP)
			v.startRouter(i, false, 0)
		}},
		{"a master with accept mode has its addresses on its interface", func(v *vpp) {
			i := v.loop()
			v.call("sw_interface_tag_add_del", 0, &vppif.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: i, Tag: "elected"}, &vppif.SwInterfaceTagAddDelReply{})
			v.is("address", v.address(i, true, "10.0.0.1/26"), 0)
			q := one(i)
			q.Interval, q.Flags = 1, vrrp.VRRP_API_VR_ACCEPT
			q.Addrs = append(q.Addrs, addr("10.9.0.9"))
			v.router(q, 0)
			v.startRouter(i, true, 0)
			if v.sim != nil {
				v.is("elect", v.sim.Elect("elected", 7), 0)
			}
			has := func(want ...string) bool {
				return slices.Equal(slices.Sorted(slices.Values(v.addresses(i, false))), want)
			}
			late := time.After(testkit.Patience)
			for tick := time.NewTicker(5 * time.Millisecond); !has("10.0.0.1/26", "10.0.0.9/26", "10.9.0.9/24"); {
				select {
				case <-tick.C:
				case <-late:
					v.Fatalf("the addresses are %v", v.addresses(i, false))
				}
			}
			v.startRouter(i, false, 0)
			if !has("10.0.0.1/26") {
				v.Errorf("the addresses are %v", v.addresses(i, false))
			}
		}},
		{"a DHCP proxy makes tables, and keeps its first source", func(v *vpp) {
			v.proxy("10.0.0.1", "10.9.0.1", 67, true, 0)
			v.proxy("10.0.0.1", "10.9.0.1", 67, true, 0)
			v.proxy("10.0.0.2", "10.9.0.2", 67, true, 0)
			if t := v.tables(); t[66] == "" || t[67] == "" {
				v.Errorf("tables are %v", t)
			}
			all := dump[dhcp.DHCPProxyDetails](v, &dhcp.DHCPProxyDump{})
			if len(all) != 1 || len(all[0].Servers) != 2 || vppwire.AddrIn(all[0].DHCPSrcAddress.Un, false).String() != "10.0.0.1" {
				v.Errorf("there are %+v", all)
			}
			v.proxy("10.0.0.1", "fd00::1", 67, true, api.INVALID_ARGUMENT)
			v.proxy("10.0.0.1", "10.9.0.7", 67, false, 0)
			v.proxy("10.0.0.1", "10.9.0.1", 67, false, 0)
			v.proxy("10.0.0.1", "10.9.0.2", 67, false, 0)
			if all := dump[dhcp.DHCPProxyDetails](v, &dhcp.DHCPProxyDump{}); len(all) > 0 {
				v.Errorf("left behind: %+v", all)
			}
		}},
	}
}

func tunnelEndRows() []row {
	return []row{
		{"TEIB entries", func(v *vpp) {
			i := v.loop()
			change := func(i index, next string, table uint32, add uint8, want api.VPPApiError) {
				v.Helper()
				q := &teib.TeibEntryAddDel{IsAdd: add, Entry: teib.TeibEntry{SwIfIndex: i, Peer: addr("10.0.0.7"), Nh: addr(next), NhTableID: table}}
				v.call("teib_entry_add_del", want, q, &teib.TeibEntryAddDelReply{})
			}
			change(i, "10.9.0.7", 0, 0, api.NO_SUCH_ENTRY)
			change(i, "10.9.0.7", 0, 1, 0)
			change(i, "10.9.0.7", 0, 1, api.ENTRY_ALREADY_EXISTS)
			change(i, "10.9.0.8", 0, 1, api.ENTRY_ALREADY_EXISTS)
			change(unknown, "10.9.0.7", 0, 1, api.INVALID_SW_IF_INDEX)
			change(i, "10.9.0.7", 77, 1, api.NO_SUCH_FIB)
			if all := dump[teib.TeibDetails](v, &teib.TeibDump{}); len(all) != 1 || vppwire.Addr(all[0].Entry.Nh).String() != "10.9.0.7" {
				v.Errorf("there are %+v", all)
			}
			change(i, "10.9.0.7", 0, 0, 0)
		}},
		{"layer 3 cross-connects", func(v *vpp) {
			a, b := v.loop(), v.loop()
			update := func(i index, want api.VPPApiError, paths ...fib_types.FibPath) {
				v.Helper()
				v.call("l3xc_update", want, &l3xc.L3xcUpdate{L3xc: l3xc.L3xc{SwIfIndex: i, Paths: paths}}, &l3xc.L3xcUpdateReply{})
			}
			remove := func(i index, want api.VPPApiError) {
				v.Helper()
				v.call("l3xc_del", want, &l3xc.L3xcDel{SwIfIndex: i}, &l3xc.L3xcDelReply{})
			}
			via := func(i index) fib_types.FibPath {
				p := fib_types.FibPath{SwIfIndex: uint32(i), Weight: 1}
				p.Nh.Address = addr("10.0.0.2").Un
				return p
			}
			forwards := func(when string, to index) {
				t := v.command("show l3xc")
				_, by, _ := strings.Cut(t, "\n  [@") // below the paths that are listed
				if !strings.Contains(by, v.details(to).InterfaceName) {
					v.Errorf("%s: expected to forward to %d:\n%s", when, to, t)
				}
			}
			remove(a, api.INVALID_VALUE)
			remove(unknown, api.INVALID_SW_IF_INDEX)
			update(a, 0, via(a))
			forwards("made", a)
			update(a, 0, via(b))
			forwards("updated", a) // not to b, which is listed
			update(a, api.INVALID_VALUE)
			update(a, api.NO_MATCHING_INTERFACE, via(unknown))
			update(unknown, api.INVALID_SW_IF_INDEX, via(b))
			if all := dump[l3xc.L3xcDetails](v, &l3xc.L3xcDump{SwIfIndex: a}); len(all) != 1 || len(all[0].L3xc.Paths) != 1 || all[0].L3xc.Paths[0].SwIfIndex != uint32(b) {
				v.Errorf("there are %+v", all)
			}
			remove(a, 0)
			update(a, 0, via(b))
			forwards("made again", b)
			remove(a, 0)
		}},
	}
}

// mirrorRows are what VPP's source says (src/vnet/span/span.c, span_add_delete_entry).
func mirrorRows() []row {
	return []row{{"mirrors of an interface that leaves layer 2", func(v *vpp) {
		a, b, c := v.loop(), v.loop(), v.loop()
		set := func(to index, state span.SpanState) {
			v.Helper()
			q := &span.SwInterfaceSpanEnableDisable{SwIfIndexFrom: a, SwIfIndexTo: to, State: state, IsL2: true}
			v.call("sw_interface_span_enable_disable", 0, q, &span.SwInterfaceSpanEnableDisableReply{})
		}
		mirrors := func(what string, rx, tx bool) {
			v.Helper()
			text := v.command("show interface features " + v.details(a).InterfaceName)
			if strings.Contains(text, "span-l2-input") != rx || strings.Contains(text, "span-l2-output") != tx {
				v.Errorf("%s: expected to mirror %t received and %t sent packets:\n%s", what, rx, tx, text)
			}
		}
		v.bridge(10, true, 0)
		set(b, span.SPAN_STATE_API_TX)
		mirrors("before it is bridged", false, true)
		v.member(a, 10, l2.L2_API_PORT_TYPE_NORMAL, true, 0)
		set(c, span.SPAN_STATE_API_RX_TX)
		mirrors("bridged", true, true)
		v.member(a, 10, l2.L2_API_PORT_TYPE_NORMAL, false, 0)
		mirrors("it has left", false, false)
		set(b, span.SPAN_STATE_API_TX)
		mirrors("the same mirror again", false, false)
		set(b, span.SPAN_STATE_API_DISABLED)
		set(b, span.SPAN_STATE_API_TX)
		mirrors("one of two made anew", false, false)
		set(b, span.SPAN_STATE_API_DISABLED)
		set(c, span.SPAN_STATE_API_DISABLED)
		set(b, span.SPAN_STATE_API_TX)
		mirrors("made anew after all have ended", false, true)
		set(b, span.SPAN_STATE_API_DISABLED)
	}}, {"mirrors", func(v *vpp) {
		a, b := v.loop(), v.loop()
		set := func(from, to index, state span.SpanState, want api.VPPApiError) {
			v.Helper()
			q := &span.SwInterfaceSpanEnableDisable{SwIfIndexFrom: from, SwIfIndexTo: to, State: state}
			v.call("sw_interface_span_enable_disable", want, q, &span.SwInterfaceSpanEnableDisableReply{})
		}
		set(a, a, span.SPAN_STATE_API_RX, api.INVALID_INTERFACE)
		set(none, b, span.SPAN_STATE_API_RX, api.INVALID_INTERFACE)
		set(a, b, 4, api.UNIMPLEMENTED)
		set(a, b, span.SPAN_STATE_API_DISABLED, 0)
		set(a, b, span.SPAN_STATE_API_RX_TX, 0)
		set(a, b, span.SPAN_STATE_API_TX, 0)
		if all := dump[span.SwInterfaceSpanDetails](v, &span.SwInterfaceSpanDump{}); len(all) != 1 || all[0].State != span.SPAN_STATE_API_TX || all[0].SwIfIndexTo != b {
			v.Errorf("there are %+v", all)
		}
		set(a, b, span.SPAN_STATE_API_DISABLED, 0)
	}}}
}
