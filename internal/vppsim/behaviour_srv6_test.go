package vppsim_test

import (
	"context"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/sr"
	"go.fd.io/govpp/binapi/sr_types"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/keyplane/keyplane/internal/vppwire"
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
		{"two tables without a number, while there is a policy", func(v *vpp) {
			names := func(want ...string) {
				var has []string
				for _, d := range dump[ip.IPTableDetails](v, &ip.IPTableDump{}) {
					if d.Table.TableID == ^uint32(0) && d.Table.IsIP6 {
						has = append(has, d.Table.Name)
					}
				}
				if slices.Sort(has); !slices.Equal(has, want) {
					v.Errorf("they are %q; expected %q", has, want)
				}
			}
			names()
			v.addPolicy(&sr.SrPolicyAdd{BsidAddr: sid("fd0a::1"), IsEncap: true, Sids: segmentList(1, "fd0b::1")}, 0)
			names("SRv6 steering of IP4 prefixes through BSIDs", "SRv6 steering of IP6 prefixes through BSIDs")
			v.call("sr_policy_del", 0, &sr.SrPolicyDel{BsidAddr: sid("fd0a::1"), SrPolicyIndex: ^uint32(0)}, &sr.SrPolicyDelReply{})
			names()
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
			tag := ^uint32(0)
			if v.since("26.06") {
				tag = 0
			}
			v.sids(
				sr.SrLocalsidsDetails{Addr: sid("fd07::1"), Behavior: end, EndPsp: true},
				sr.SrLocalsidsDetails{Addr: sid("fd07::2"), Behavior: x, FibTable: 7, XconnectNhAddr: addr("fd00::9"), XconnectIfaceOrVrfTable: uint32(i)},
				sr.SrLocalsidsDetails{Addr: sid("fd07::3"), Behavior: x, XconnectNhAddr: addr("0.0.0.5"), XconnectIfaceOrVrfTable: uint32(i)},
				sr.SrLocalsidsDetails{Addr: sid("fd07::4"), Behavior: t, EndPsp: true, XconnectIfaceOrVrfTable: 7},
				sr.SrLocalsidsDetails{Addr: sid("fd07::5"), Behavior: dx2, VlanIndex: tag, XconnectIfaceOrVrfTable: uint32(i)},
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
		{"segment policies", segmentPolicies},
		{"steering into segment policies", segmentSteering},
		{"steering of frames, and layer 2", steeringAndLayer2},
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

// The return values of policies.
const (
	noPolicy     api.VPPApiError = -1
	policyExists api.VPPApiError = -12
	noBSIDTable  api.VPPApiError = -13
	lastList     api.VPPApiError = -21
)

// segmentList returns a list in the form of messages.
func segmentList(weight uint32, segments ...string) (out sr.Srv6SidList) {
	out.Weight, out.NumSids = weight, uint8(len(segments))
	for i, s := range segments {
		out.Sids[i] = sid(s)
	}
	return out
}

// addPolicy makes a policy, for the time of the row.
func (v *vpp) addPolicy(q *sr.SrPolicyAdd, want api.VPPApiError) {
	v.Helper()
	v.call("sr_policy_add", want, q, &sr.SrPolicyAddReply{})
	if want == 0 {
		v.Cleanup(func() {
			_ = v.Call(context.WithoutCancel(v.Context()), &sr.SrPolicyDel{BsidAddr: q.BsidAddr}, &sr.SrPolicyDelReply{}) // the row may have deleted it
		})
	}
}

// segmentPolicies makes policies, and changes the lists of one.
func segmentPolicies(v *vpp) {
	const add, del, mod = sr_types.SR_POLICY_OP_API_ADD, sr_types.SR_POLICY_OP_API_DEL, sr_types.SR_POLICY_OP_API_MOD
	v.table6(7)
	lists := func(bsid string) (out []sr.Srv6SidListWithSlIndex) {
		for _, d := range dump[sr.SrPoliciesWithSlIndexDetails](v, &sr.SrPoliciesWithSlIndexDump{}) {
			if d.Bsid == sid(bsid) {
				out = d.SidLists
			}
		}
		return out
	}
	change := func(op sr_types.SrPolicyOp, list uint32, to sr.Srv6SidList, want api.VPPApiError) {
		v.Helper()
		v.call("sr_policy_mod", want, &sr.SrPolicyMod{BsidAddr: sid("fd0a::1"), Operation: op, SlIndex: list, Sids: to}, &sr.SrPolicyModReply{})
	}
	source := func(bsid string) (out string) {
		for _, d := range dump[sr.SrPoliciesV2Details](v, &sr.SrPoliciesV2Dump{}) {
			if d.Bsid == sid(bsid) {
				out = d.EncapSrc.String()
			}
		}
		return out
	}
	setSource := func(to string) {
		v.call("sr_set_encap_source", 0, &sr.SrSetEncapSource{EncapsSource: sid(to)}, &sr.SrSetEncapSourceReply{})
	}
	v.Cleanup(func() {
		_ = v.Call(context.WithoutCancel(v.Context()), &sr.SrSetEncapSource{}, &sr.SrSetEncapSourceReply{}) // usually unset
	})
	setSource("fd00::1")
	v.addPolicy(&sr.SrPolicyAdd{BsidAddr: sid("fd0a::1"), IsEncap: true, Sids: segmentList(3, "fd0b::1", "fd0b::2")}, 0)
	v.addPolicy(&sr.SrPolicyAdd{BsidAddr: sid("fd0a::1"), Sids: segmentList(3, "fd0b::1")}, policyExists)
	v.addPolicy(&sr.SrPolicyAdd{BsidAddr: sid("fd0a::1"), FibTable: 7, Sids: segmentList(3, "fd0b::1")}, policyExists)
	v.addPolicy(&sr.SrPolicyAdd{BsidAddr: sid("fd0a::2"), FibTable: 7, IsSpray: true, Sids: segmentList(^uint32(0), "fd0b::1")}, 0)
	v.addPolicy(&sr.SrPolicyAdd{BsidAddr: sid("fd0a::3"), FibTable: 9999, Sids: segmentList(1, "fd0b::1")}, noBSIDTable)
	v.localSID(&sr.SrLocalsidAddDel{Localsid: sid("fd0a::1"), Behavior: sr_types.SR_BEHAVIOR_API_END}, routed)
	v.localSID(&sr.SrLocalsidAddDel{Localsid: sid("fd0a::4"), Behavior: sr_types.SR_BEHAVIOR_API_END}, 0)
	v.addPolicy(&sr.SrPolicyAdd{BsidAddr: sid("fd0a::4"), Sids: segmentList(1, "fd0b::1")}, policyExists)
	if got := lists("fd0a::2"); len(got) != 1 || got[0].Weight != 1 || got[0].NumSids != 1 {
		v.Errorf("the other one has %+v", got)
	}

	first := lists("fd0a::1")
	if len(first) != 1 || first[0].Weight != 3 || first[0].NumSids != 2 || first[0].Sids[1] != sid("fd0b::2") {
		v.Errorf("it has %+v", first)
	}
	change(del, first[0].SlIndex, sr.Srv6SidList{}, lastList)
	setSource("fd00::2")
	if got := source("fd0a::1"); got != "fd00::1" {
		v.Errorf("its source is %s; expected the one when it was made", got)
	}
	change(add, 0, segmentList(0, "fd0b::3"), 0)
	if got := source("fd0a::1"); got != "fd00::2" {
		v.Errorf("its source is %s; expected that of its newest list", got)
	}
	change(add, 0, segmentList(5, "fd0b::3"), 0) // the same segments
	change(mod, first[0].SlIndex, segmentList(9), 0)
	change(del, first[0].SlIndex, sr.Srv6SidList{}, 0)
	change(sr_types.SR_POLICY_OP_API_NONE, 0, sr.Srv6SidList{}, noPolicy)
	left := lists("fd0a::1")
	if len(left) != 2 || left[0].Weight+left[1].Weight != 5 || left[0].Sids[0] != sid("fd0b::3") {
		v.Errorf("it has %+v", left)
	}
	v.call("sr_policy_del", 0, &sr.SrPolicyDel{BsidAddr: sid("fd0a::1")}, &sr.SrPolicyDelReply{})
	v.call("sr_policy_del", noPolicy, &sr.SrPolicyDel{BsidAddr: sid("fd0a::1")}, &sr.SrPolicyDelReply{})
	if got := lists("fd0a::2"); len(got) != 1 {
		v.Errorf("the other one has %+v", got)
	}
}

// The return values of steering.
const (
	badTraffic  api.VPPApiError = -1
	nowhere     api.VPPApiError = -2
	notHardware api.VPPApiError = -3
	notSteered  api.VPPApiError = -4
	noHeader    api.VPPApiError = -5
)

// steeringAndLayer2 steers the frames of an interface with an access list. From 26.06 on, they are steered
// in layer 2, which the interface leaves at the end.
func steeringAndLayer2(v *vpp) {
	i := v.loop()
	list := v.list(^uint32(0), "a", 0)
	v.applyLists(i, 1, 0, list)
	v.addPolicy(&sr.SrPolicyAdd{BsidAddr: sid("fd0a::1"), IsEncap: true, Sids: segmentList(1, "fd0b::1")}, 0)
	looks := func(when string, steered, lists bool) {
		v.Helper()
		text := v.command("show interface features " + v.details(i).InterfaceName)
		if strings.Contains(text, "sr-pl-rewrite-encaps-l2") != steered || strings.Contains(text, "l2-input-feat-arc") != lists {
			v.Errorf("%s: expected steering %t and lists %t:\n%s", when, steered, lists, text)
		}
	}
	crossed := func(when string, want ...l2.L2XconnectDetails) {
		v.Helper()
		if all := dump[l2.L2XconnectDetails](v, &l2.L2XconnectDump{}); !slices.Equal(all, want) {
			v.Errorf("%s: cross-connects are %+v; expected %+v", when, all, want)
		}
	}
	steer := func(end bool) {
		v.Helper()
		q := &sr.SrSteeringAddDel{IsDel: end, BsidAddr: sid("fd0a::1"), TrafficType: sr_types.SR_STEER_API_L2, SwIfIndex: i}
		v.call("sr_steering_add_del", 0, q, &sr.SrSteeringAddDelReply{})
	}
	inLayer2 := v.since("26.06")
	looks("before", false, true)
	steer(false)
	looks("steered", true, true)
	if inLayer2 {
		crossed("steered", l2.L2XconnectDetails{RxSwIfIndex: i})
	} else {
		crossed("steered")
	}
	v.bridge(10, true, 0)
	v.member(i, 10, l2.L2_API_PORT_TYPE_NORMAL, true, 0)
	crossed("bridged")
	looks("bridged", true, true)
	steer(true)
	looks("at the end", false, !inLayer2)
	members := 0
	for _, d := range dump[l2.BridgeDomainDetails](v, &l2.BridgeDomainDump{BdID: 10, SwIfIndex: none}) {
		members = len(d.SwIfDetails)
	}
	if (members == 0) != inLayer2 {
		v.Errorf("the bridge domain has %d members", members)
	}
	v.member(i, 10, l2.L2_API_PORT_TYPE_NORMAL, false, 0)
	if inLayer2 {
		steer(false)
		v.member(i, 10, l2.L2_API_PORT_TYPE_NORMAL, false, 0)
		looks("set to layer 3", false, false) // VPP still lists the steering
		steer(true)
	}
	v.applyLists(i, 0, 0)
}

// segmentSteering steers packets and frames.
func segmentSteering(v *vpp) {
	const frames, v4, v6 = sr_types.SR_STEER_API_L2, sr_types.SR_STEER_API_IPV4, sr_types.SR_STEER_API_IPV6
	i := v.loop()
	v.table6(7)
	v.table(7, "")
	v.addPolicy(&sr.SrPolicyAdd{BsidAddr: sid("fd0a::1"), IsEncap: true, Sids: segmentList(1, "fd0b::1")}, 0)
	v.addPolicy(&sr.SrPolicyAdd{BsidAddr: sid("fd0a::2"), Sids: segmentList(1, "fd0b::1")}, 0)
	steer := func(del bool, bsid string, kind sr_types.SrSteer, table uint32, prefix string, at index, want api.VPPApiError) {
		v.Helper()
		q := &sr.SrSteeringAddDel{IsDel: del, BsidAddr: sid(bsid), TrafficType: kind, TableID: table, SwIfIndex: at, Prefix: vppwire.Prefix(netip.MustParsePrefix(prefix))}
		v.call("sr_steering_add_del", want, q, &sr.SrSteeringAddDelReply{})
		if want == 0 && !del {
			v.Cleanup(func() {
				q := *q
				q.IsDel = true
				_ = v.Call(context.WithoutCancel(v.Context()), &q, &sr.SrSteeringAddDelReply{}) // the row may have deleted it
			})
		}
	}
	steer(false, "fd0a::9", v6, 0, "fd0c::/64", none, nowhere)
	steer(false, "fd0a::2", v4, 0, "10.9.0.0/16", none, noHeader)
	steer(false, "fd0a::2", frames, 0, "0.0.0.0/0", i, noHeader)
	steer(false, "fd0a::1", frames, 0, "0.0.0.0/0", unknown, api.INVALID_SW_IF_INDEX)
	steer(false, "fd0a::1", 0, 0, "0.0.0.0/0", i, badTraffic)
	steer(true, "::", v6, 0, "fd0c::/64", none, notSteered)
	steer(false, "fd0a::2", v6, 0, "fd0c::/64", none, 0)
	steer(false, "fd0a::1", v6, 7, "fd0c::/64", none, 0)
	steer(false, "fd0a::1", v6, 7, "::/0", none, 0)
	steer(false, "fd0a::1", v4, 7, "10.9.0.0/16", none, 0)
	steer(false, "fd0a::1", frames, 0, "0.0.0.0/0", i, 0)
	steer(false, "fd0a::1", v6, 0, "fd0c::/64", none, 0)   // goes into the other policy
	steer(false, "fd0a::2", v4, 7, "10.9.0.0/16", none, 0) // VPP does not look at the policy here
	type line struct {
		bsid   string
		table  uint32
		prefix string
	}
	want := map[sr_types.SrSteer][]line{v4: {{"fd0a::2", 7, "10.9.0.0/16"}}, v6: {{"fd0a::1", 0, "fd0c::/64"}, {"fd0a::1", 7, "fd0c::/64"}, {"fd0a::1", 7, "0.0.0.0/0"}}}
	got := map[sr_types.SrSteer][]line{}
	for _, d := range dump[sr.SrSteeringPolDetails](v, &sr.SrSteeringPolDump{}) {
		if d.TrafficType != frames {
			got[d.TrafficType] = append(got[d.TrafficType], line{d.Bsid.String(), d.FibTable, vppwire.PrefixOf(d.Prefix).String()})
		} else if d.SwIfIndex != i || d.Bsid != sid("fd0a::1") {
			v.Errorf("there is %+v", d)
		}
	}
	if !reflect.DeepEqual(got, want) {
		v.Errorf("there is %v; expected %v", got, want)
	}
	var sub vppif.CreateVlanSubifReply
	v.call("create_vlan_subif", 0, &vppif.CreateVlanSubif{SwIfIndex: i, VlanID: 5}, &sub)
	v.Cleanup(func() {
		_ = v.Call(context.WithoutCancel(v.Context()), &vppif.DeleteSubif{SwIfIndex: sub.SwIfIndex}, &vppif.DeleteSubifReply{}) // may be gone with its parent
	})
	if v.since("26.06") {
		steer(false, "fd0a::1", frames, 0, "0.0.0.0/0", sub.SwIfIndex, 0)
	} else {
		steer(false, "fd0a::1", frames, 0, "0.0.0.0/0", sub.SwIfIndex, notHardware)
	}
	if err := v.Call(v.Context(), &vppif.DeleteSubif{SwIfIndex: sub.SwIfIndex}, &vppif.DeleteSubifReply{}); err != nil {
		v.Error(err)
	}
	if err := v.delete(i); err != nil {
		v.Error(err)
	}
	steer(true, "::", frames, 0, "0.0.0.0/0", i, api.INVALID_SW_IF_INDEX)
	next := v.loop()
	if next != i {
		v.Fatalf("the next interface has index %d; expected %d", next, i)
	}
	steer(true, "::", frames, 0, "0.0.0.0/0", i, 0) // it has stayed
	steer(true, "::", v6, 7, "::/0", none, 0)
	steer(true, "::", v6, 7, "::/0", none, notSteered)
}
