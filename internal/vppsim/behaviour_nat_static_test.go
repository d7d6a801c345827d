package vppsim_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
)

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
