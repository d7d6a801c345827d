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
	"go.fd.io/govpp/binapi/nat44_ei"
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

func natEI(v *vpp) {
	set := func(on bool, want api.VPPApiError) {
		v.call("nat44_ei_plugin_enable_disable", want, &nat44_ei.Nat44EiPluginEnableDisable{Enable: on}, &nat44_ei.Nat44EiPluginEnableDisableReply{})
	}
	shows := func(enabled, forwarding bool) {
		var r nat44_ei.Nat44EiShowRunningConfigReply
		v.call("nat44_ei_show_running_config", 0, &nat44_ei.Nat44EiShowRunningConfig{}, &r)
		if (r.Sessions != 0) != enabled || r.ForwardingEnabled != forwarding {
			v.Errorf("the configuration is %+v; expected enabled %v, forwarding %v", r, enabled, forwarding)
		}
	}
	side := func(i index, flags nat44_ei.Nat44EiConfigFlags, add bool, want api.VPPApiError) {
		v.Helper()
		v.call("nat44_ei_interface_add_del_feature", want, &nat44_ei.Nat44EiInterfaceAddDelFeature{SwIfIndex: i, Flags: flags, IsAdd: add}, &nat44_ei.Nat44EiInterfaceAddDelFeatureReply{})
	}
	output := func(i index, add bool, want api.VPPApiError) {
		v.Helper()
		v.call("nat44_ei_add_del_output_interface", want, &nat44_ei.Nat44EiAddDelOutputInterface{SwIfIndex: i, IsAdd: add}, &nat44_ei.Nat44EiAddDelOutputInterfaceReply{})
	}
	pool := func(first, last string, add bool, want api.VPPApiError) {
		v.Helper()
		q := &nat44_ei.Nat44EiAddDelAddressRange{FirstIPAddress: ip4(first), LastIPAddress: ip4(last), VrfID: anyVRF, IsAdd: add}
		v.call("nat44_ei_add_del_address_range", want, q, &nat44_ei.Nat44EiAddDelAddressRangeReply{})
	}
	i, j := v.loop(), v.loop()
	shows(false, false)
	set(false, api.FEATURE_ALREADY_DISABLED)
	side(i, nat44_ei.NAT44_EI_IF_INSIDE, true, api.FEATURE_ALREADY_DISABLED)
	output(i, true, api.FEATURE_ALREADY_DISABLED)
	pool("10.0.0.1", "10.0.0.1", true, api.FEATURE_ALREADY_DISABLED)
	set(true, 0)
	set(true, api.FEATURE_ALREADY_ENABLED)
	v.call("forwarding", 0, &nat44_ei.Nat44EiForwardingEnableDisable{Enable: true}, &nat44_ei.Nat44EiForwardingEnableDisableReply{})
	shows(true, true)
	side(i, nat44_ei.NAT44_EI_IF_INSIDE, true, 0)
	side(i, nat44_ei.NAT44_EI_IF_OUTSIDE, true, 0)
	if all := dump[nat44_ei.Nat44EiInterfaceDetails](v, &nat44_ei.Nat44EiInterfaceDump{}); len(all) != 1 || all[0].Flags != nat44_ei.NAT44_EI_IF_INSIDE|nat44_ei.NAT44_EI_IF_OUTSIDE {
		v.Errorf("the interfaces are %+v", all)
	}
	output(i, true, api.VALUE_EXIST)
	output(j, true, 0)
	var outputs []nat44_ei.Nat44EiOutputInterfaceDetails
	get := conn.List(&nat44_ei.Nat44EiOutputInterfaceGet{}, &outputs)
	get.Reply = &nat44_ei.Nat44EiOutputInterfaceGetReply{}
	if err := v.Batch(v.Context(), get); err != nil || len(outputs) != 1 || outputs[0].SwIfIndex != j {
		v.Errorf("%+v translate on output, %v", outputs, err)
	}
	pool("10.0.0.1", "10.0.0.3", true, 0)
	pool("10.0.0.3", "10.0.0.3", true, api.VALUE_EXIST)
	pool("10.0.0.2", "10.0.0.2", false, 0)
	pool("10.0.0.2", "10.0.0.2", false, api.NO_SUCH_ENTRY)
	if all := dump[nat44_ei.Nat44EiAddressDetails](v, &nat44_ei.Nat44EiAddressDump{}); len(all) != 2 || all[1].IPAddress != ip4("10.0.0.3") || all[1].VrfID != anyVRF {
		v.Errorf("the addresses are %+v", all)
	}
	set(false, 0)
	shows(false, false)
	if all := dump[nat44_ei.Nat44EiAddressDetails](v, &nat44_ei.Nat44EiAddressDump{}); len(all) > 0 {
		v.Errorf("the addresses are %+v", all)
	}
}

// natEIMappings: a port is reserved in a pool, which a mapping of all ports does not need. A local
// side has one mapping.
func natEIMappings(v *vpp) {
	set := func(on bool) {
		v.Helper()
		v.call("nat44_ei_plugin_enable_disable", 0, &nat44_ei.Nat44EiPluginEnableDisable{Enable: on}, &nat44_ei.Nat44EiPluginEnableDisableReply{})
	}
	pool := func(first, last string, add bool, want api.VPPApiError) {
		v.Helper()
		q := &nat44_ei.Nat44EiAddDelAddressRange{FirstIPAddress: ip4(first), LastIPAddress: ip4(last), VrfID: anyVRF, IsAdd: add}
		v.call("nat44_ei_add_del_address_range", want, q, &nat44_ei.Nat44EiAddDelAddressRangeReply{})
	}
	type request = nat44_ei.Nat44EiAddDelStaticMapping
	static := func(change func(q *request), add bool, want api.VPPApiError) {
		v.Helper()
		q := &request{
			IsAdd: add, ExternalIPAddress: ip4("10.0.0.1"), ExternalPort: 80, LocalIPAddress: ip4("192.168.0.1"), LocalPort: 8080,
			Protocol: 6, ExternalSwIfIndex: none, Tag: "a",
		}
		change(q)
		v.call("nat44_ei_add_del_static_mapping", want, q, &nat44_ei.Nat44EiAddDelStaticMappingReply{})
	}
	type same = nat44_ei.Nat44EiAddDelIdentityMapping
	identity := func(change func(q *same), add bool, want api.VPPApiError) {
		v.Helper()
		q := &same{IsAdd: add, IPAddress: ip4("10.0.0.2"), Port: 22, Protocol: 6, SwIfIndex: none, Tag: "b"}
		change(q)
		v.call("nat44_ei_add_del_identity_mapping", want, q, &nat44_ei.Nat44EiAddDelIdentityMappingReply{})
	}
	has := func(want ...string) {
		v.Helper()
		var got []string
		for _, d := range dump[nat44_ei.Nat44EiStaticMappingDetails](v, &nat44_ei.Nat44EiStaticMappingDump{}) {
			got = append(got, fmt.Sprintf("%s:%d to %s:%d proto %d vrf %d flags %d tag %s", netip.AddrFrom4(d.ExternalIPAddress), d.ExternalPort,
				netip.AddrFrom4(d.LocalIPAddress), d.LocalPort, d.Protocol, d.VrfID, d.Flags, d.Tag))
		}
		for _, d := range dump[nat44_ei.Nat44EiIdentityMappingDetails](v, &nat44_ei.Nat44EiIdentityMappingDump{}) {
			got = append(got, fmt.Sprintf("%s:%d itself proto %d vrf %d flags %d tag %s", netip.AddrFrom4(d.IPAddress), d.Port, d.Protocol, d.VrfID, d.Flags, d.Tag))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			v.Errorf("the mappings are\n%q; expected\n%q", got, want)
		}
	}
	as := func(*request) {}
	asIdentity := func(*same) {}
	static(as, true, api.FEATURE_ALREADY_DISABLED)
	set(true)
	static(as, true, api.NO_SUCH_ENTRY)
	identity(asIdentity, true, api.NO_SUCH_ENTRY)
	has()
	pool("10.0.0.1", "10.0.0.3", true, 0)
	static(as, true, 0)
	static(as, true, api.VALUE_EXIST)
	static(func(q *request) { q.ExternalPort = 81 }, true, api.VALUE_EXIST) // the same local side
	static(func(q *request) { q.Protocol = 17; q.VrfID = 5 }, true, 0)
	identity(asIdentity, true, 0)
	identity(func(q *same) { q.VrfID = 5 }, true, 0)
	identity(asIdentity, true, api.VALUE_EXIST)
	has("10.0.0.1:80 to 192.168.0.1:8080 proto 17 vrf 5 flags 0 tag a", "10.0.0.1:80 to 192.168.0.1:8080 proto 6 vrf 0 flags 0 tag a",
		"10.0.0.2:22 itself proto 6 vrf 0 flags 0 tag b", "10.0.0.2:22 itself proto 6 vrf 5 flags 0 tag b")
	if name := v.tables()[5]; name == "" {
		v.Error("the mapping made no table")
	}
	pool("10.0.0.1", "10.0.0.1", false, api.UNSPECIFIED) // in use by a static mapping
	identity(asIdentity, false, 0)
	identity(func(q *same) { q.VrfID = 5 }, false, 0)
	identity(asIdentity, false, api.NO_SUCH_ENTRY)
	static(func(q *request) { q.Protocol = 17; q.VrfID = 5 }, false, 0)
	static(as, false, 0)
	static(as, false, api.NO_SUCH_ENTRY)
	has()
	pool("10.0.0.1", "10.0.0.3", false, 0)

	// Of all ports: without a pool.
	all := func(q *request) { q.Flags = nat44_ei.NAT44_EI_ADDR_ONLY_MAPPING }
	allIdentity := func(q *same) { q.Flags = nat44_ei.NAT44_EI_ADDR_ONLY_MAPPING; q.Port = 0; q.Protocol = 0 }
	static(all, true, 0)
	identity(allIdentity, true, 0)
	has("10.0.0.1:0 to 192.168.0.1:0 proto 0 vrf 0 flags 8 tag a", "10.0.0.2:0 itself proto 255 vrf 0 flags 8 tag b")
	pool("10.0.0.1", "10.0.0.1", true, 0)
	pool("10.0.0.1", "10.0.0.1", false, 0)
	static(all, false, 0)
	identity(allIdentity, false, 0)
	static(all, true, 0)
	set(false)
	has()
	set(true)
	has()
	set(false)
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

// A static is a request for a static mapping.
type static = nat44_ed.Nat44AddDelStaticMapping

// static sends a request for the mapping of port 80 of 10.0.0.1 to port 8080 of 192.168.0.1, with changes.
func (v *vpp) static(change func(q *static), add bool, want api.VPPApiError) {
	v.Helper()
	q := &static{
		IsAdd: add, Flags: nat_types.NAT_IS_OUT2IN_ONLY, ExternalIPAddress: ip4("10.0.0.1"), ExternalPort: 80, LocalIPAddress: ip4("192.168.0.1"), LocalPort: 8080,
		Protocol: 6, ExternalSwIfIndex: none, Tag: "a",
	}
	change(q)
	v.call("nat44_add_del_static_mapping", want, q, &nat44_ed.Nat44AddDelStaticMappingReply{})
}

// statics checks all static mappings. VPP lists them by their slots, of which it reuses the last
// that was freed, and those of interfaces at the end.
func (v *vpp) statics(want ...string) {
	v.Helper()
	var got []string
	for _, d := range dump[nat44_ed.Nat44StaticMappingDetails](v, &nat44_ed.Nat44StaticMappingDump{}) {
		text := fmt.Sprintf("%s:%d to %s:%d proto %d vrf %d flags %d tag %s", netip.AddrFrom4(d.ExternalIPAddress), d.ExternalPort,
			netip.AddrFrom4(d.LocalIPAddress), d.LocalPort, d.Protocol, d.VrfID, d.Flags, d.Tag)
		if d.ExternalSwIfIndex != none {
			text = "interface " + text
		}
		got = append(got, text)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		v.Errorf("the static mappings are\n%q; expected\n%q", got, want)
	}
}

func natStatic(v *vpp) {
	v.translates()
	v.static(func(*static) {}, true, 0)
	v.statics("10.0.0.1:80 to 192.168.0.1:8080 proto 6 vrf 0 flags 4 tag a")
	v.static(func(*static) {}, true, api.VALUE_EXIST)
	v.static(func(q *static) { q.LocalPort = 9 }, true, api.VALUE_EXIST)
	v.static(func(q *static) { q.ExternalPort = 81 }, true, 0) // the same local side
	v.static(func(q *static) { q.ExternalPort = 81 }, false, 0)
	v.static(func(q *static) { q.Protocol = 17; q.Flags |= nat_types.NAT_IS_TWICE_NAT; q.VrfID = 5 }, true, 0)
	v.statics("10.0.0.1:80 to 192.168.0.1:8080 proto 6 vrf 0 flags 4 tag a", "10.0.0.1:80 to 192.168.0.1:8080 proto 17 vrf 5 flags 5 tag a")
	if name := v.tables()[5]; name == "" {
		v.Error("the mapping made no table")
	}
	v.static(func(q *static) { q.LocalIPAddress = ip4("1.2.3.4"); q.LocalPort = 1; q.VrfID = 9 }, false, 0) // the local side does not matter
	v.static(func(*static) {}, false, api.NO_SUCH_ENTRY)
	v.static(func(q *static) { q.Protocol = 17; q.VrfID = 5 }, false, 0)
	v.statics()

	// Of all ports. Its own ports and protocol are not used.
	v.static(func(q *static) { q.Flags |= nat_types.NAT_IS_ADDR_ONLY }, true, 0)
	v.static(func(*static) {}, true, 0)
	v.statics("10.0.0.1:0 to 192.168.0.1:0 proto 0 vrf 0 flags 12 tag a", "10.0.0.1:80 to 192.168.0.1:8080 proto 6 vrf 0 flags 4 tag a")
	v.static(func(q *static) { q.Flags |= nat_types.NAT_IS_ADDR_ONLY | nat_types.NAT_IS_TWICE_NAT }, true, api.UNSUPPORTED)
	v.static(func(q *static) { q.Flags |= nat_types.NAT_IS_ADDR_ONLY | nat_types.NAT_IS_SELF_TWICE_NAT }, true, api.UNSUPPORTED)
	v.static(func(*static) {}, false, 0)
	v.static(func(q *static) { q.Flags |= nat_types.NAT_IS_ADDR_ONLY }, false, 0)

	// In both directions, a local side has one mapping.
	v.static(func(q *static) { q.Flags = 0 }, true, 0)
	v.static(func(q *static) { q.Flags, q.ExternalPort = 0, 81 }, true, api.VALUE_EXIST)
	v.static(func(q *static) { q.Flags = 0 }, false, 0)

	// With an address of twice-NAT, which need not be in the pool, and is not told.
	v2 := &nat44_ed.Nat44AddDelStaticMappingV2{
		IsAdd: true, MatchPool: true, PoolIPAddress: ip4("10.9.0.9"), Flags: nat_types.NAT_IS_TWICE_NAT | nat_types.NAT_IS_OUT2IN_ONLY, ExternalIPAddress: ip4("10.0.0.1"),
		ExternalPort: 80, LocalIPAddress: ip4("192.168.0.1"), LocalPort: 8080, Protocol: 6, ExternalSwIfIndex: none, Tag: strings.Repeat("x", 63),
	}
	v.call("nat44_add_del_static_mapping_v2", 0, v2, &nat44_ed.Nat44AddDelStaticMappingV2Reply{})
	v.statics("10.0.0.1:80 to 192.168.0.1:8080 proto 6 vrf 0 flags 5 tag " + strings.Repeat("x", 63))
	v.static(func(*static) {}, false, 0)
	v.statics()
}

func natOfInterface(v *vpp) {
	const unresolved = "interface 0.0.0.0:80 to 192.168.0.1:8080 proto 6 vrf 0 flags 0 tag a"
	v.translates()
	i := v.loop()
	of := func(q *static) { q.ExternalSwIfIndex = i }
	v.static(of, true, 0)
	v.static(of, true, api.VALUE_EXIST)
	v.statics(unresolved)
	if err := v.address(i, true, "10.0.0.1/24"); err != nil {
		v.Fatal(err)
	}
	v.statics("10.0.0.1:80 to 192.168.0.1:8080 proto 6 vrf 0 flags 4 tag a", unresolved)
	v.static(func(*static) {}, true, api.VALUE_EXIST)
	v.static(func(q *static) { of(q); q.LocalPort = 9 }, true, api.VALUE_EXIST) // its record goes, too
	v.statics("10.0.0.1:80 to 192.168.0.1:8080 proto 6 vrf 0 flags 4 tag a", unresolved)
	if err := v.address(i, false, "10.0.0.1/24"); err != nil {
		v.Fatal(err)
	}
	v.statics(unresolved)
	v.static(func(q *static) { of(q); q.LocalPort = 9 }, false, api.NO_SUCH_ENTRY)
	if err := v.address(i, true, "10.0.0.2/24"); err != nil {
		v.Fatal(err)
	}
	v.statics("10.0.0.2:80 to 192.168.0.1:8080 proto 6 vrf 0 flags 4 tag a", unresolved)
	v.static(of, false, 0)
	v.statics()
	v.static(func(q *static) { of(q); q.Flags |= nat_types.NAT_IS_SELF_TWICE_NAT }, true, 0)
	v.statics("10.0.0.2:80 to 192.168.0.1:8080 proto 6 vrf 0 flags 6 tag a", unresolved)
	if err := v.delete(i); err != nil {
		v.Fatal(err)
	}
	v.statics(unresolved) // for the next interface with the index
	v.static(of, false, 0)
	v.statics()
}

func natIdentity(v *vpp) {
	type request = nat44_ed.Nat44AddDelIdentityMapping
	set := func(change func(q *request), add bool, want api.VPPApiError) {
		v.Helper()
		q := &request{IsAdd: add, IPAddress: ip4("10.0.0.1"), Port: 80, Protocol: 6, SwIfIndex: none, Tag: "a"}
		change(q)
		v.call("nat44_add_del_identity_mapping", want, q, &nat44_ed.Nat44AddDelIdentityMappingReply{})
	}
	has := func(want ...string) {
		v.Helper()
		var got []string
		for _, d := range dump[nat44_ed.Nat44IdentityMappingDetails](v, &nat44_ed.Nat44IdentityMappingDump{}) {
			text := fmt.Sprintf("%s:%d proto %d vrf %d flags %d tag %s", netip.AddrFrom4(d.IPAddress), d.Port, d.Protocol, d.VrfID, d.Flags, d.Tag)
			if d.SwIfIndex != none {
				text = "interface " + text
			}
			got = append(got, text)
		}
		if !slices.Equal(got, want) {
			v.Errorf("the identity mappings are\n%q; expected\n%q", got, want)
		}
	}
	as := func(*request) {}
	in5 := func(q *request) { q.VrfID = 5; q.Tag = "b" }
	v.translates()
	set(as, true, 0)
	set(as, true, api.VALUE_EXIST)
	set(in5, true, 0) // the tag is that of the first
	has("10.0.0.1:80 proto 6 vrf 0 flags 0 tag a", "10.0.0.1:80 proto 6 vrf 5 flags 0 tag a")
	v.static(func(q *static) { q.VrfID = 5 }, true, api.VALUE_EXIST)
	v.statics()
	set(as, false, 0)
	has("10.0.0.1:80 proto 6 vrf 5 flags 0 tag a")
	set(as, false, api.NO_SUCH_ENTRY)
	set(in5, false, 0)
	v.static(func(*static) {}, true, 0)
	set(as, true, api.VALUE_EXIST)
	v.static(func(*static) {}, false, 0)
	set(func(q *request) { q.Flags = nat_types.NAT_IS_ADDR_ONLY }, true, 0)
	has("10.0.0.1:0 proto 0 vrf 0 flags 8 tag a")
	set(func(q *request) { q.Flags = nat_types.NAT_IS_ADDR_ONLY; q.Port = 0; q.Protocol = 0 }, false, 0)

	i := v.loop()
	of := func(q *request) { q.SwIfIndex = i }
	set(of, true, 0)
	has("interface 0.0.0.0:80 proto 6 vrf 0 flags 0 tag a")
	if err := v.address(i, true, "10.0.0.1/24"); err != nil {
		v.Fatal(err)
	}
	has("10.0.0.1:80 proto 6 vrf 0 flags 0 tag a", "interface 0.0.0.0:80 proto 6 vrf 0 flags 0 tag a")
	set(of, true, api.VALUE_EXIST)
	set(of, false, 0)
	set(of, false, api.NO_SUCH_ENTRY)
	has()
}

func natBalanced(v *vpp) {
	type request = nat44_ed.Nat44AddDelLbStaticMapping
	set := func(change func(q *request), add bool, want api.VPPApiError) {
		v.Helper()
		q := &request{
			IsAdd: add, Flags: nat_types.NAT_IS_OUT2IN_ONLY, ExternalAddr: ip4("10.0.0.1"), ExternalPort: 80, Protocol: 6, Affinity: 30, Tag: "a", LocalNum: 2,
			Locals: []nat44_ed.Nat44LbAddrPort{{Addr: ip4("192.168.0.1"), Port: 1, Probability: 40}, {Addr: ip4("192.168.0.2"), Port: 2, Probability: 60, VrfID: 5}},
		}
		change(q)
		v.call("nat44_add_del_lb_static_mapping", want, q, &nat44_ed.Nat44AddDelLbStaticMappingReply{})
	}
	all := func() []nat44_ed.Nat44LbStaticMappingDetails {
		return dump[nat44_ed.Nat44LbStaticMappingDetails](v, &nat44_ed.Nat44LbStaticMappingDump{})
	}
	as := func(*request) {}
	v.translates()
	set(as, true, 0)
	if got := all(); len(got) != 1 || got[0].Affinity != 0 || got[0].Tag != "a" || got[0].Flags != nat_types.NAT_IS_OUT2IN_ONLY || len(got[0].Locals) != 2 ||
		got[0].Locals[1] != (nat44_ed.Nat44LbAddrPort{Addr: ip4("192.168.0.2"), Port: 2, Probability: 60, VrfID: 5}) {
		v.Errorf("it is %+v", got)
	}
	v.statics()
	set(as, true, api.VALUE_EXIST)
	v.static(func(*static) {}, true, api.VALUE_EXIST)
	set(as, false, 0)
	set(as, false, api.NO_SUCH_ENTRY)
	set(func(q *request) { q.Locals, q.LocalNum = q.Locals[:1], 1 }, true, api.INVALID_VALUE)
	set(func(q *request) { q.Flags = 0 }, true, api.NO_SUCH_ENTRY) // the pool lacks the external address
	v.static(func(*static) {}, true, 0)
	set(as, false, api.INVALID_VALUE)
	v.static(func(*static) {}, false, 0)
	if got := all(); len(got) > 0 {
		v.Errorf("left is %+v", got)
	}
}
