package vppsim_test

import (
	"context"
	"net/netip"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/sr"
	"go.fd.io/govpp/binapi/sr_types"
	"go.fd.io/govpp/binapi/vlib"
)

func sid(text string) ip_types.IP6Address { return netip.MustParseAddr(text).As16() }

// These are return values of VPP's segment routing itself. They mean
// something else in api_errno.h.
const (
	sidExists api.VPPApiError = -1
	noSID     api.VPPApiError = -2
	noTable   api.VPPApiError = -3
	routed    api.VPPApiError = -4
)

// table6 makes an IPv6 table, for the time of the row.
func (v *vpp) table6(id uint32) {
	v.Helper()
	t := ip.IPTable{TableID: id, IsIP6: true}
	v.call("ip_table_add_del", 0, &ip.IPTableAddDel{IsAdd: true, Table: t}, &ip.IPTableAddDelReply{})
	v.Cleanup(func() { // the row may have deleted it
		_ = v.Call(context.WithoutCancel(v.Context()), &ip.IPTableAddDel{Table: t}, &ip.IPTableAddDelReply{})
	})
}

// cli runs a command line that succeeds.
func (v *vpp) cli(line string) string {
	v.Helper()
	return v.cliFails(line, 0)
}

// cliFails runs a command line.
func (v *vpp) cliFails(line string, want api.VPPApiError) string {
	v.Helper()
	var r vlib.CliInbandReply
	v.call(line, want, &vlib.CliInband{Cmd: line}, &r)
	return r.Reply
}

// localSID adds or deletes a local SID. One that was added goes with the row.
func (v *vpp) localSID(q *sr.SrLocalsidAddDel, want api.VPPApiError) {
	v.Helper()
	v.call("sr_localsid_add_del", want, q, &sr.SrLocalsidAddDelReply{})
	if want == 0 && !q.IsDel {
		v.Cleanup(func() {
			q := &sr.SrLocalsidAddDel{IsDel: true, Localsid: q.Localsid, FibTable: q.FibTable}
			_ = v.Call(context.WithoutCancel(v.Context()), q, &sr.SrLocalsidAddDelReply{}) // the row may have deleted it
		})
	}
}

// sids checks the local SIDs that VPP lists.
func (v *vpp) sids(want ...sr.SrLocalsidsDetails) {
	v.Helper()
	all := dump[sr.SrLocalsidsDetails](v, &sr.SrLocalsidsDump{})
	if len(all) != len(want) {
		v.Errorf("there are %+v; expected %+v", all, want)
		return
	}
	for i, d := range all {
		if d != want[i] {
			v.Errorf("there is %+v; expected %+v", d, want[i])
		}
	}
}

func segmentRows() []row {
	const (
		end, x, t     = sr_types.SR_BEHAVIOR_API_END, sr_types.SR_BEHAVIOR_API_X, sr_types.SR_BEHAVIOR_API_T
		dx2, dx4, dx6 = sr_types.SR_BEHAVIOR_API_DX2, sr_types.SR_BEHAVIOR_API_DX4, sr_types.SR_BEHAVIOR_API_DX6
		dt4, dt6      = sr_types.SR_BEHAVIOR_API_DT4, sr_types.SR_BEHAVIOR_API_DT6
	)
	return []row{
		{"source of encapsulated packets", func(v *vpp) {
			v.Cleanup(func() {
				_ = v.Call(context.WithoutCancel(v.Context()), &sr.SrSetEncapSource{}, &sr.SrSetEncapSourceReply{}) // usually unset
			})
			for _, source := range []string{"fd00::1", "::"} {
				v.call("sr_set_encap_source", 0, &sr.SrSetEncapSource{EncapsSource: sid(source)}, &sr.SrSetEncapSourceReply{})
				if text := v.cli("show sr encaps source addr"); strings.TrimSpace(text) != "SR encaps source addr = "+source {
					v.Errorf("it is %q", text)
				}
			}
		}},
		{"local SIDs", func(v *vpp) {
			i := v.loop()
			v.table6(7)
			v.table(8, "")
			v.localSID(&sr.SrLocalsidAddDel{Localsid: sid("fd07::1"), Behavior: end, EndPsp: true, SwIfIndex: none, VlanIndex: ^uint32(0)}, 0)
			v.localSID(&sr.SrLocalsidAddDel{Localsid: sid("fd07::1"), Behavior: x, SwIfIndex: i}, sidExists)
			v.localSID(&sr.SrLocalsidAddDel{Localsid: sid("fd07::1"), Behavior: end, FibTable: 7}, sidExists) // the table is no part of its identity
			v.localSID(&sr.SrLocalsidAddDel{Localsid: sid("fd07::2"), Behavior: x, SwIfIndex: i, NhAddr: addr("fd00::9"), FibTable: 7}, 0)
			v.localSID(&sr.SrLocalsidAddDel{Localsid: sid("fd07::3"), Behavior: x, SwIfIndex: i, NhAddr: addr("::5")}, 0)
			v.localSID(&sr.SrLocalsidAddDel{Localsid: sid("fd07::4"), Behavior: t, SwIfIndex: 7, EndPsp: true}, 0)
			v.localSID(&sr.SrLocalsidAddDel{Localsid: sid("fd07::5"), Behavior: dx2, SwIfIndex: i, VlanIndex: ^uint32(0)}, 0)
			v.localSID(&sr.SrLocalsidAddDel{Localsid: sid("fd07::6"), Behavior: dx4, SwIfIndex: i, NhAddr: addr("10.0.0.9"), VlanIndex: ^uint32(0)}, 0)
			v.localSID(&sr.SrLocalsidAddDel{Localsid: sid("fd07::7"), Behavior: dx6, SwIfIndex: i, NhAddr: addr("fd00::9")}, 0)
			v.localSID(&sr.SrLocalsidAddDel{Localsid: sid("fd07::8"), Behavior: dt4, SwIfIndex: 8}, 0)
			v.localSID(&sr.SrLocalsidAddDel{Localsid: sid("fd07::9"), Behavior: dt6, SwIfIndex: 7}, 0)
			for _, b := range []sr_types.SrBehavior{x, dx2, dx4, dx6} {
				v.localSID(&sr.SrLocalsidAddDel{Localsid: sid("fd07::a"), Behavior: b, SwIfIndex: unknown}, api.INVALID_SW_IF_INDEX)
			}
			v.localSID(&sr.SrLocalsidAddDel{Localsid: sid("fd07::a"), Behavior: end, FibTable: 9999}, noTable)
			v.sids(
				sr.SrLocalsidsDetails{Addr: sid("fd07::1"), Behavior: end, EndPsp: true},
				sr.SrLocalsidsDetails{Addr: sid("fd07::2"), Behavior: x, FibTable: 7, XconnectNhAddr: addr("fd00::9"), XconnectIfaceOrVrfTable: uint32(i)},
				sr.SrLocalsidsDetails{Addr: sid("fd07::3"), Behavior: x, XconnectNhAddr: addr("0.0.0.5"), XconnectIfaceOrVrfTable: uint32(i)},
				sr.SrLocalsidsDetails{Addr: sid("fd07::4"), Behavior: t, EndPsp: true, XconnectIfaceOrVrfTable: 7},
				sr.SrLocalsidsDetails{Addr: sid("fd07::5"), Behavior: dx2, VlanIndex: ^uint32(0), XconnectIfaceOrVrfTable: uint32(i)},
				sr.SrLocalsidsDetails{Addr: sid("fd07::6"), Behavior: dx4, XconnectNhAddr: addr("10.0.0.9"), XconnectIfaceOrVrfTable: uint32(i)},
				sr.SrLocalsidsDetails{Addr: sid("fd07::7"), Behavior: dx6, XconnectNhAddr: addr("fd00::9"), XconnectIfaceOrVrfTable: uint32(i)},
				sr.SrLocalsidsDetails{Addr: sid("fd07::8"), Behavior: dt4, XconnectIfaceOrVrfTable: 8},
				sr.SrLocalsidsDetails{Addr: sid("fd07::9"), Behavior: dt6, XconnectIfaceOrVrfTable: 7},
			)
			text := v.cli("show sr localsids")
			for _, part := range []string{
				"fd07::1/128\n\tBehavior: \tEnd\n\tPSP: \tTrue\n", "fd07::3/128\n\tBehavior: \tX (Endpoint", "Behavior: \tT (", "fd07::5/128\n\tBehavior: \tDX2 (",
				"DX4 (", "DX6 (", "DT4 (", "DT6 (", "--------------------",
			} {
				if !strings.Contains(text, part) {
					v.Errorf("the page has no %q:\n%q", part, text)
				}
			}
			if err := v.delete(i); err != nil {
				v.Error(err)
			}
			v.localSID(&sr.SrLocalsidAddDel{IsDel: true, Localsid: sid("fd07::2"), Behavior: x, SwIfIndex: i, FibTable: 7}, api.INVALID_SW_IF_INDEX)
			v.localSID(&sr.SrLocalsidAddDel{IsDel: true, Localsid: sid("fd07::2"), FibTable: 7}, 0) // without its behaviour, VPP does not look at the interface
			v.localSID(&sr.SrLocalsidAddDel{IsDel: true, Localsid: sid("fd07::2"), FibTable: 7}, noSID)
			v.localSID(&sr.SrLocalsidAddDel{IsDel: true, Localsid: sid("fd07::4")}, 0)
			v.localSID(&sr.SrLocalsidAddDel{Localsid: sid("fd07::b"), Behavior: end}, 0)
			if all := dump[sr.SrLocalsidsDetails](v, &sr.SrLocalsidsDump{}); len(all) != 8 {
				v.Errorf("there are %+v", all)
			}
		}},
		{"a local SID and a route", func(v *vpp) {
			i := v.loop()
			if err := v.address(i, true, "fd08::1/64"); err != nil {
				v.Fatal(err)
			}
			v.localSID(&sr.SrLocalsidAddDel{Localsid: sid("fd08::1"), Behavior: end}, routed)
			v.localSID(&sr.SrLocalsidAddDel{Localsid: sid("fd08::2"), Behavior: end}, 0)
		}},
		{"End.AD", func(v *vpp) {
			i, j := v.loop(), v.loop()
			name := func(i index) string { return strings.TrimRight(v.details(i).InterfaceName, "\x00") }
			if !strings.Contains(v.cli("show sr localsids behaviors"), "\tEnd.AD\t->") {
				v.Error("VPP has no End.AD")
			}
			v.table6(7)
			for _, line := range []string{
				"prefix fd09::1/128 fib-table 7 behavior end.ad nh 10.0.0.9 oif " + name(i) + " iif " + name(j),
				"prefix fd09::2/128 fib-table 0 behavior end.ad nh fd00::9 oif " + name(i) + " iif " + name(j),
				"address fd09::3 behavior end.ad oif " + name(i) + " iif " + name(j),
			} {
				if text := v.cli("sr localsid " + line); text != "" {
					v.Errorf("%s: %q", line, text)
				}
			}
			text := v.cli("show sr localsids")
			for _, part := range []string{
				"\tAddress: \tfd09::1/128\n\tBehavior: \tEnd.AD (Endpoint with dynamic proxy to SR-unaware appliance)\n\tNext-hop:\t10.0.0.9\n\tOutgoing iface:\t" + name(i) + "\n\tIncoming iface:\t" + name(j) + "\n",
				"\tNext-hop:\tfd00::9\n\t", "fd09::3/128\n\tBehavior: \tEnd.AD (Endpoint with dynamic proxy to SR-unaware appliance)\n\tOutgoing iface:",
			} {
				if !strings.Contains(text, part) {
					v.Errorf("the page has no %q:\n%q", part, text)
				}
			}
			if all := dump[sr.SrLocalsidsDetails](v, &sr.SrLocalsidsDump{}); len(all) != 3 || all[0].Behavior <= sr_types.SR_BEHAVIOR_API_UA || all[0].FibTable != 7 {
				v.Errorf("there are %+v", all)
			}
			if text := v.cliFails("sr localsid prefix fd09::1/128 behavior end.ad oif "+name(i)+" iif "+name(j), api.UNSPECIFIED); !strings.Contains(text, "already exists") {
				v.Error(text)
			}
			v.localSID(&sr.SrLocalsidAddDel{IsDel: true, Localsid: sid("fd09::1"), FibTable: 7}, 0)
			v.localSID(&sr.SrLocalsidAddDel{IsDel: true, Localsid: sid("fd09::2")}, 0)
			v.localSID(&sr.SrLocalsidAddDel{IsDel: true, Localsid: sid("fd09::3")}, noSID) // made by its address, it has another identity
			if text := v.cli("sr localsid del address fd09::3 fib-table 0"); text != "" {
				v.Error(text)
			}
			v.sids()
			// An interface that does not exist makes another function of it.
			v.cliFails("sr localsid prefix fd09::1/128 behavior end.ad oif nowhere iif "+name(j), api.UNSPECIFIED)
			v.sids(sr.SrLocalsidsDetails{Addr: sid("fd09::1"), Behavior: end})
			v.localSID(&sr.SrLocalsidAddDel{IsDel: true, Localsid: sid("fd09::1")}, 0)
		}},
	}
}
