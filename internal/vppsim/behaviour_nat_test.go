package vppsim_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
)

const anyVRF = ^uint32(0)

func ip4(text string) ip_types.IP4Address { return netip.MustParseAddr(text).As4() }

// translates enables endpoint-dependent NAT44 for the time of the row.
func (v *vpp) translates() {
	v.Helper()
	v.call("enable", 0, &nat44_ed.Nat44EdPluginEnableDisable{Enable: true, Flags: nat44_ed.NAT44_IS_ENDPOINT_DEPENDENT}, &nat44_ed.Nat44EdPluginEnableDisableReply{})
	v.Cleanup(func() {
		q := &nat44_ed.Nat44EdPluginEnableDisable{}
		_ = v.Call(context.WithoutCancel(v.Context()), q, &nat44_ed.Nat44EdPluginEnableDisableReply{}) // the row may have disabled it
	})
}

func (v *vpp) side(i index, flags nat_types.NatConfigFlags, add bool, want api.VPPApiError) {
	v.Helper()
	v.call("nat44_interface_add_del_feature", want, &nat44_ed.Nat44InterfaceAddDelFeature{SwIfIndex: i, Flags: flags, IsAdd: add}, &nat44_ed.Nat44InterfaceAddDelFeatureReply{})
}

func (v *vpp) output(i index, add bool, want api.VPPApiError) {
	v.Helper()
	v.call("nat44_ed_add_del_output_interface", want, &nat44_ed.Nat44EdAddDelOutputInterface{SwIfIndex: i, IsAdd: add}, &nat44_ed.Nat44EdAddDelOutputInterfaceReply{})
}

// sides checks the sides of an interface; 0: it has none.
func (v *vpp) sides(i index, want nat_types.NatConfigFlags) {
	v.Helper()
	var got nat_types.NatConfigFlags
	for _, d := range dump[nat44_ed.Nat44InterfaceDetails](v, &nat44_ed.Nat44InterfaceDump{}) {
		if d.SwIfIndex == i {
			got = d.Flags
		}
	}
	if got != want {
		v.Errorf("the sides of interface %d are %v; expected %v", i, got, want)
	}
}

// outputs checks the interfaces that translate on output.
func (v *vpp) outputs(want ...index) {
	v.Helper()
	var all []nat44_ed.Nat44EdOutputInterfaceDetails
	one := conn.List(&nat44_ed.Nat44EdOutputInterfaceGet{}, &all)
	one.Reply = &nat44_ed.Nat44EdOutputInterfaceGetReply{}
	if err := v.Batch(v.Context(), one); err != nil {
		v.Fatal(err)
	}
	var got []index
	for _, d := range all {
		got = append(got, d.SwIfIndex)
	}
	if !slices.Equal(got, want) {
		v.Errorf("%v translate on output; expected %v", got, want)
	}
}

func (v *vpp) pool(first, last string, vrf uint32, flags nat_types.NatConfigFlags, add bool, want api.VPPApiError) {
	v.Helper()
	q := &nat44_ed.Nat44AddDelAddressRange{FirstIPAddress: ip4(first), LastIPAddress: ip4(last), VrfID: vrf, Flags: flags, IsAdd: add}
	v.call("nat44_add_del_address_range", want, q, &nat44_ed.Nat44AddDelAddressRangeReply{})
}

// pooled checks the addresses of all pools, in order.
func (v *vpp) pooled(want ...string) {
	v.Helper()
	var got []string
	for _, d := range dump[nat44_ed.Nat44AddressDetails](v, &nat44_ed.Nat44AddressDump{}) {
		text := fmt.Sprintf("%s vrf %d", netip.AddrFrom4(d.IPAddress), int32(d.VrfID))
		if d.Flags&nat_types.NAT_IS_TWICE_NAT != 0 {
			text += " twice"
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		v.Errorf("the addresses are %q; expected %q", got, want)
	}
}

func natRows() []row {
	return []row{
		{"NAT44 is enabled and disabled", natEnabled},
		{"sides of interfaces", natSides},
		{"addresses to translate to", natPools},
		{"endpoint-independent NAT44", natEI},
		{"mappings of endpoint-independent NAT44", natEIMappings},
		{"tables of VRFs to translate between", natVRFs},
		{"static mappings", natStatic},
		{"mappings of an interface's address", natOfInterface},
		{"identity mappings", natIdentity},
		{"mappings with several local sides", natBalanced},
		{"virtual reassembly", func(v *vpp) {
			var was, now ip.IPReassemblyGetReply
			get := &ip.IPReassemblyGet{Type: ip.IP_REASS_TYPE_SHALLOW_VIRTUAL}
			v.call("ip_reassembly_get", 0, get, &was)
			if was.TimeoutMs != 100 || was.MaxReassemblies != 1024 || was.MaxReassemblyLength != 3 {
				v.Errorf("the defaults are %+v", was)
			}
			set := func(timeout, reassemblies, length uint32) {
				q := &ip.IPReassemblySet{
					Type: ip.IP_REASS_TYPE_SHALLOW_VIRTUAL, TimeoutMs: timeout, MaxReassemblies: reassemblies, MaxReassemblyLength: length,
					ExpireWalkIntervalMs: was.ExpireWalkIntervalMs,
				}
				v.call("ip_reassembly_set", 0, q, &ip.IPReassemblySetReply{})
			}
			set(2000, 2048, 5)
			v.call("ip_reassembly_get", 0, get, &now)
			if now.TimeoutMs != 2000 || now.MaxReassemblies != 2048 || now.MaxReassemblyLength != 5 || now.ExpireWalkIntervalMs != was.ExpireWalkIntervalMs {
				v.Errorf("it is %+v", now)
			}
			set(was.TimeoutMs, was.MaxReassemblies, was.MaxReassemblyLength)
		}},
	}
}

func natEnabled(v *vpp) {
	shows := func(enabled, forwarding bool) {
		var r nat44_ed.Nat44ShowRunningConfigReply
		v.call("nat44_show_running_config", 0, &nat44_ed.Nat44ShowRunningConfig{}, &r)
		if (r.Sessions != 0) != enabled || r.ForwardingEnabled != forwarding || r.Flags != nat44_ed.NAT44_IS_ENDPOINT_DEPENDENT {
			v.Errorf("the configuration is %+v; expected enabled %v, forwarding %v", r, enabled, forwarding)
		}
	}
	forward := func(on bool) {
		v.call("forwarding", 0, &nat44_ed.Nat44ForwardingEnableDisable{Enable: on}, &nat44_ed.Nat44ForwardingEnableDisableReply{})
	}
	set := func(on bool, want api.VPPApiError) {
		q := &nat44_ed.Nat44EdPluginEnableDisable{Enable: on, Flags: nat44_ed.NAT44_IS_ENDPOINT_DEPENDENT}
		v.call("nat44_ed_plugin_enable_disable", want, q, &nat44_ed.Nat44EdPluginEnableDisableReply{})
	}
	i := v.loop()
	shows(false, false)
	set(false, api.FEATURE_ALREADY_DISABLED)
	v.side(i, nat_types.NAT_IS_INSIDE, true, api.UNSUPPORTED)
	v.output(i, true, api.UNSUPPORTED)
	v.pool("10.0.0.1", "10.0.0.1", anyVRF, 0, true, api.UNSUPPORTED)
	v.pool("10.0.0.1", "10.0.0.1", anyVRF, 0, false, api.NO_SUCH_ENTRY)
	v.static(func(*static) {}, true, api.UNSUPPORTED)
	forward(true)
	shows(false, true)
	set(true, 0)
	shows(true, false)
	set(true, api.FEATURE_ALREADY_ENABLED)
	forward(true)
	shows(true, true)
	v.side(i, nat_types.NAT_IS_INSIDE, true, 0)
	v.pool("10.0.0.1", "10.0.0.1", anyVRF, 0, true, 0)
	v.static(func(*static) {}, true, 0)
	set(false, 0)
	shows(false, false)
	v.sides(i, 0)
	v.pooled()
	set(true, 0)
	v.pooled()
	v.statics()
	set(false, 0)
	refused := &nat44_ed.Nat44EdPluginEnableDisable{Enable: true, Flags: nat44_ed.NAT44_IS_STATIC_MAPPING_ONLY}
	v.call("static mappings only", api.UNSUPPORTED, refused, &nat44_ed.Nat44EdPluginEnableDisableReply{})
}

func natSides(v *vpp) {
	const (
		in  = nat_types.NAT_IS_INSIDE
		out = nat_types.NAT_IS_OUTSIDE
	)
	v.translates()
	i, j := v.loop(), v.loop()
	v.outputs()
	v.side(i, in, true, 0)
	v.side(i, in, true, 0)
	v.sides(i, in)
	v.side(i, out, true, 0)
	v.sides(i, in|out)
	v.output(i, true, api.VALUE_EXIST)
	v.side(i, in, false, 0)
	v.sides(i, out)
	v.side(i, in, false, 0) // the other side, which it does not have, goes with it
	v.sides(i, 0)
	v.side(i, in, false, api.NO_SUCH_ENTRY)
	v.side(i, 0, true, 0) // neither flag is outside
	v.sides(i, out)
	v.output(j, true, 0)
	v.output(j, true, api.VALUE_EXIST)
	v.outputs(j)
	v.side(j, in, true, api.VALUE_EXIST)
	v.side(j, in, false, api.NO_SUCH_ENTRY)
	v.output(j, false, 0)
	v.output(j, false, api.NO_SUCH_ENTRY)
	v.outputs()
	v.output(j, true, 0)
	v.side(unknown, in, true, api.INVALID_SW_IF_INDEX)
	v.output(unknown, true, api.INVALID_SW_IF_INDEX)
	for _, one := range []index{i, j} {
		if err := v.delete(one); err != nil {
			v.Error(err)
		}
	}
	v.sides(i, 0)
	v.outputs()
}

func natPools(v *vpp) {
	const twice = nat_types.NAT_IS_TWICE_NAT
	v.translates()
	v.table(77, "seven")
	v.pool("10.0.0.1", "10.0.0.3", anyVRF, 0, true, 0)
	v.pool("10.0.0.2", "10.0.0.2", 77, twice, true, 0)
	v.pooled("10.0.0.1 vrf -1", "10.0.0.2 vrf -1", "10.0.0.3 vrf -1", "10.0.0.2 vrf 77 twice")
	v.pool("10.0.0.2", "10.0.0.2", 77, 0, true, api.VALUE_EXIST)
	v.pool("10.0.0.5", "10.0.0.5", 0, 0, true, 0)
	v.pool("10.0.0.4", "10.0.0.6", anyVRF, 0, true, api.VALUE_EXIST) // the first of them stays
	v.pooled("10.0.0.1 vrf -1", "10.0.0.2 vrf -1", "10.0.0.3 vrf -1", "10.0.0.5 vrf 0", "10.0.0.4 vrf -1", "10.0.0.2 vrf 77 twice")
	v.pool("10.0.0.1", "10.0.0.1", 5, 0, false, 0) // the VRF does not matter
	v.pooled("10.0.0.4 vrf -1", "10.0.0.2 vrf -1", "10.0.0.3 vrf -1", "10.0.0.5 vrf 0", "10.0.0.2 vrf 77 twice")
	v.pool("10.0.0.5", "10.0.0.6", 0, 0, false, api.NO_SUCH_ENTRY) // the first of them goes
	v.pooled("10.0.0.4 vrf -1", "10.0.0.2 vrf -1", "10.0.0.3 vrf -1", "10.0.0.2 vrf 77 twice")
	v.pool("10.0.0.9", "10.0.0.8", 0, 0, true, 0) // no address
	v.pooled("10.0.0.4 vrf -1", "10.0.0.2 vrf -1", "10.0.0.3 vrf -1", "10.0.0.2 vrf 77 twice")
	v.pool("10.0.1.1", "10.0.1.1", 78, 0, true, 0)
	if name := v.tables()[78]; name == "" {
		v.Error("the address made no table")
	}
	v.pool("10.0.1.1", "10.0.1.1", 78, 0, false, 0)
	if name, has := v.tables()[78]; has {
		v.Errorf("the table %s stays", name)
	}
}

func natVRFs(v *vpp) {
	table := func(id uint32, add bool, want api.VPPApiError) {
		v.Helper()
		v.call("nat44_ed_add_del_vrf_table", want, &nat44_ed.Nat44EdAddDelVrfTable{TableVrfID: id, IsAdd: add}, &nat44_ed.Nat44EdAddDelVrfTableReply{})
	}
	route := func(from, to uint32, add bool, want api.VPPApiError) {
		v.Helper()
		v.call("nat44_ed_add_del_vrf_route", want, &nat44_ed.Nat44EdAddDelVrfRoute{TableVrfID: from, VrfID: to, IsAdd: add}, &nat44_ed.Nat44EdAddDelVrfRouteReply{})
	}
	// The second version of the dump is answered with details of the first.
	all := func() (out map[uint32][]uint32) {
		v.Helper()
		out = map[uint32][]uint32{}
		for _, d := range dump[nat44_ed.Nat44EdVrfTablesDetails](v, &nat44_ed.Nat44EdVrfTablesV2Dump{}) {
			out[d.TableVrfID] = d.VrfIds
		}
		return out
	}
	v.translates()
	route(7, 8, true, api.NO_SUCH_ENTRY)
	table(7, true, 0)
	table(7, true, api.VALUE_EXIST)
	route(7, 8, true, 0)
	route(7, 8, true, api.VALUE_EXIST)
	route(7, 9, true, 0)
	if got := all(); len(got) != 1 || !slices.Equal(got[7], []uint32{8, 9}) {
		v.Errorf("the tables are %v", got)
	}
	if old := dump[nat44_ed.Nat44EdVrfTablesDetails](v, &nat44_ed.Nat44EdVrfTablesDump{}); len(old) != 1 || old[0].TableVrfID != 0 || !slices.Equal(old[0].VrfIds, []uint32{8 << 24, 9 << 24}) {
		v.Errorf("the first version of the dump says %+v", old)
	}
	var cli vlib.CliInbandReply
	v.call("show nat44 vrf tables", 0, &vlib.CliInband{Cmd: "show nat44 vrf tables"}, &cli)
	if strings.ReplaceAll(cli.Reply, "\r", "") != "table 7:\n[0] vrf-id 8\n[1] vrf-id 9\n" {
		v.Errorf("the page is %q", cli.Reply)
	}
	route(7, 8, false, 0)
	route(7, 8, false, api.NO_SUCH_ENTRY)
	if got := all(); len(got) != 1 || len(got[7]) != 2 || got[7][0] != 9 { // behind it is some memory
		v.Errorf("the tables are %v", got)
	}
	v.call("show nat44 vrf tables", 0, &vlib.CliInband{Cmd: "show nat44 vrf tables"}, &cli)
	if strings.ReplaceAll(cli.Reply, "\r", "") != "table 7:\n[0] vrf-id 9\n" {
		v.Errorf("the page is %q", cli.Reply)
	}
	table(7, false, 0)
	table(7, false, api.NO_SUCH_ENTRY)
	table(7, true, 0)
	if got := all(); len(got) != 1 || len(got[7]) > 0 {
		v.Errorf("the tables are %v", got)
	}
	v.call("disable", 0, &nat44_ed.Nat44EdPluginEnableDisable{}, &nat44_ed.Nat44EdPluginEnableDisableReply{})
	if got := all(); len(got) > 0 {
		v.Errorf("the tables are %v", got)
	}
}
