package vppsim_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ei"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
)

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

	// A port is reserved once for all VRFs, and freed once for each of them.
	used := func(want string) {
		v.Helper()
		_, of, _ := strings.Cut(v.command("show nat44 ei addresses"), "10.0.0.2\n")
		if of, _, _ = strings.Cut(of, "10.0.0."); !strings.Contains(of, "  "+want+" busy tcp ports") {
			v.Errorf("expected %s used ports of 10.0.0.2:\n%s", want, of)
		}
	}
	counted := func(vrf uint32) func(*same) { return func(q *same) { q.Port, q.VrfID = 2000, vrf } }
	used("-1") // of port 22
	identity(counted(0), true, 0)
	identity(counted(5), true, 0)
	used("0")
	identity(counted(0), false, 0)
	identity(counted(5), false, 0)
	used("-2")
	pool("10.0.0.2", "10.0.0.2", false, 0)
	pool("10.0.0.2", "10.0.0.2", true, 0)
	used("0") // of the address that is new
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
