package vppsim_test

import (
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	vppif "go.fd.io/govpp/binapi/interface"

	"github.com/keyplane/keyplane/internal/testkit"
)

func interfaceRows() []row {
	return []row{
		{"a new VPP has local0", newHasLocal0},
		{"a loopback as it is created", loopbackAsCreated},
		{"any MAC address is taken", func(v *vpp) {
			for _, mac := range []ethernet_types.MacAddress{{2, 0, 0, 0, 0, 1}, {1, 0, 0x5e, 0, 0, 1}, {2, 0, 0, 0, 0, 1}} {
				i := v.loop()
				v.call("set", 0, &vppif.SwInterfaceSetMacAddress{SwIfIndex: i, MacAddress: mac}, &vppif.SwInterfaceSetMacAddressReply{})
				if got := v.details(i).L2Address; got != mac {
					v.Errorf("%s is shown as %s", mac, got)
				}
			}
			for i, want := range map[index]api.VPPApiError{unknown: api.INVALID_SW_IF_INDEX, 0: api.UNIMPLEMENTED} {
				v.call("set", want, &vppif.SwInterfaceSetMacAddress{SwIfIndex: i}, &vppif.SwInterfaceSetMacAddressReply{})
			}
		}},
		{"an instance is there once", func(v *vpp) {
			for instance, want := range map[uint32]api.VPPApiError{4711: 0, 16383: 0, 16384: api.INVALID_REGISTRATION, ^uint32(0): api.INVALID_REGISTRATION} {
				q := &vppif.CreateLoopbackInstance{IsSpecified: true, UserInstance: instance}
				var first, second vppif.CreateLoopbackInstanceReply
				v.call("first", want, q, &first)
				v.call("second", api.INVALID_REGISTRATION, q, &second)
				if second.SwIfIndex != none {
					v.Errorf("what is refused has index %d", second.SwIfIndex)
				}
				if want == 0 {
					v.is("delete", v.delete(first.SwIfIndex), 0)
				}
			}
		}},
		{"what is unknown is not deleted", func(v *vpp) {
			gone := v.loop()
			v.is("delete", v.delete(gone), 0)
			for _, i := range []index{unknown, none, 0, gone} {
				v.is("delete", v.delete(i), api.INVALID_SW_IF_INDEX)
			}
		}},
		{"indexes are used again, the last freed first", func(v *vpp) {
			a, b, c := v.loop(), v.loop(), v.loop()
			for _, i := range []index{a, c, b} {
				v.is("delete", v.delete(i), 0)
			}
			if got, want := []index{v.loop(), v.loop(), v.loop()}, []index{b, c, a}; !slices.Equal(got, want) {
				v.Errorf("%v, want %v", got, want)
			}
		}},
		{"an index that is used again inherits nothing", inheritsNothing},
		{"tags", tags},
		{"only the flag for up counts", func(v *vpp) {
			i := v.loop()
			for _, step := range [][2]uint32{{1, 3}, {1, 3}, {2, 0}, {3, 3}, {0, 0}} {
				v.flags(i, adminLink(step[0]), 0)
				if got := v.details(i).Flags; got != adminLink(step[1]) {
					v.Errorf("%d shows as %d", step[0], got)
				}
			}
			v.flags(unknown, 1, api.INVALID_SW_IF_INDEX)
			v.flags(none, 1, api.INVALID_SW_IF_INDEX)
		}},
		{"an MTU is kept as it was sent", func(v *vpp) {
			i := v.loop()
			for _, mtu := range [][]uint32{{0, 0, 0, 0}, {64, 0, 0, 0}, {65535, 1400, 1300, 1200}, {1000000, 0, 0, 0}} {
				v.call("set", 0, &vppif.SwInterfaceSetMtu{SwIfIndex: i, Mtu: mtu}, &vppif.SwInterfaceSetMtuReply{})
				if d := v.details(i); !slices.Equal(d.Mtu, mtu) || d.LinkMtu != 9000 {
					v.Errorf("%v shows as %v, link %d", mtu, d.Mtu, d.LinkMtu)
				}
			}
			v.call("set", api.INVALID_SW_IF_INDEX, &vppif.SwInterfaceSetMtu{SwIfIndex: unknown, Mtu: make([]uint32, 4)}, &vppif.SwInterfaceSetMtuReply{})
		}},
		{"the MTU of the hardware of a loopback cannot be changed", func(v *vpp) {
			i := v.loop()
			for mtu, want := range map[uint16]api.VPPApiError{9000: 0, 64: -126, 0: -126, 65535: -126} {
				v.call("set", want, &vppif.HwInterfaceSetMtu{SwIfIndex: i, Mtu: mtu}, &vppif.HwInterfaceSetMtuReply{})
			}
			v.call("unknown", api.INVALID_SW_IF_INDEX, &vppif.HwInterfaceSetMtu{SwIfIndex: unknown, Mtu: 1500}, &vppif.HwInterfaceSetMtuReply{})
		}},
		{"names may be given twice, but not be empty", func(v *vpp) {
			a, b := v.loop(), v.loop()
			rename := func(i index, name string, want api.VPPApiError) {
				v.call("rename", want, &vppif.SwInterfaceSetInterfaceName{SwIfIndex: i, Name: name}, &vppif.SwInterfaceSetInterfaceNameReply{})
			}
			rename(a, "same", 0)
			rename(b, "same", 0)
			rename(a, "", api.INVALID_VALUE)
			rename(unknown, "x", api.INVALID_SW_IF_INDEX)
			if v.details(a).InterfaceName != "same" || v.details(b).InterfaceName != "same" {
				v.Error("they are not called so")
			}
		}},
		{"a dump may be filtered by index or by a part of the name", dumpFilter},
		{"the table of what is unknown", func(v *vpp) {
			var r vppif.SwInterfaceGetTableReply
			if v.call("get", api.INVALID_SW_IF_INDEX, &vppif.SwInterfaceGetTable{SwIfIndex: unknown}, &r); r.VrfID != ^uint32(0) {
				v.Errorf("it is %d", r.VrfID)
			}
		}},
	}
}

func newHasLocal0(v *vpp) {
	testkit.Need(v, "a new VPP (VPP=binary instead of VPP_SOCKET)", v.fresh)
	all := dump[vppif.SwInterfaceDetails](v, &vppif.SwInterfaceDump{SwIfIndex: none})
	if len(all) != 1 || all[0].InterfaceName != "local0" || all[0].InterfaceDevType != "local" || all[0].Flags != 0 || all[0].LinkMtu != 0 {
		v.Errorf("it has %+v", all)
	}
}

func loopbackAsCreated(v *vpp) {
	i := v.loop()
	v.flags(i, 0, 0)
	d := v.details(i)
	if !strings.HasPrefix(d.InterfaceName, "loop") || d.InterfaceDevType != "Loopback" || d.LinkMtu != 9000 || !slices.Equal(d.Mtu, []uint32{9000, 0, 0, 0}) ||
		d.Flags != 0 || d.SupSwIfIndex != uint32(i) || d.Type != 0 || d.Tag != "" || !strings.HasPrefix(d.L2Address.String(), "de:ad:00:00:00:") {
		v.Errorf("it is %+v", d)
	}
}

func inheritsNothing(v *vpp) {
	v.table(22, "")
	i := v.loop()
	before := v.details(i)
	v.call("table", 0, &vppif.SwInterfaceSetTable{SwIfIndex: i, VrfID: 22}, &vppif.SwInterfaceSetTableReply{})
	v.is("address", v.address(i, true, "10.0.0.1/24"), 0)
	v.call("mtu", 0, &vppif.SwInterfaceSetMtu{SwIfIndex: i, Mtu: []uint32{1300, 0, 0, 0}}, &vppif.SwInterfaceSetMtuReply{})
	v.call("tag", 0, &vppif.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: i, Tag: "tag"}, &vppif.SwInterfaceTagAddDelReply{})
	v.is("delete", v.delete(i), 0)
	if again := v.loop(); again != i {
		v.Fatalf("%d is not used again, but %d", i, again)
	}
	d := v.details(i)
	var table vppif.SwInterfaceGetTableReply
	v.call("table", 0, &vppif.SwInterfaceGetTable{SwIfIndex: i}, &table)
	if d.Tag != "" || d.Mtu[0] != 9000 || d.InterfaceName != before.InterfaceName || table.VrfID != 0 || len(v.addresses(i, false)) > 0 {
		v.Errorf("it has %+v, table %d, addresses %v", d, table.VrfID, v.addresses(i, false))
	}
}

func tags(v *vpp) {
	i := v.loop()
	set := func(i index, add bool, tag string, want api.VPPApiError) {
		v.Helper()
		v.call("tag", want, &vppif.SwInterfaceTagAddDel{IsAdd: add, SwIfIndex: i, Tag: tag}, &vppif.SwInterfaceTagAddDelReply{})
	}
	shows := func(want string) {
		v.Helper()
		if got := v.details(i).Tag; got != want {
			v.Errorf("the tag is %q, want %q", got, want)
		}
	}
	set(i, true, "one", 0)
	set(i, true, "two", 0)
	shows("two")
	set(i, true, "", api.INVALID_VALUE)
	shows("two")
	set(i, false, "other", 0)
	shows("")
	set(i, false, "", 0)
	set(i, true, strings.Repeat("x", 63), 0)
	shows(strings.Repeat("x", 63))
	set(unknown, true, "x", api.INVALID_SW_IF_INDEX)
	set(none, true, "x", api.INVALID_SW_IF_INDEX)
}

func dumpFilter(v *vpp) {
	a, b := v.loop(), v.loop()
	for i, name := range map[index]string{a: "first-one", b: "second-one"} {
		v.call("rename", 0, &vppif.SwInterfaceSetInterfaceName{SwIfIndex: i, Name: name}, &vppif.SwInterfaceSetInterfaceNameReply{})
	}
	tests := []struct {
		q    vppif.SwInterfaceDump
		want []index
	}{
		{vppif.SwInterfaceDump{SwIfIndex: a}, []index{a}},
		{vppif.SwInterfaceDump{SwIfIndex: unknown}, nil},
		{vppif.SwInterfaceDump{SwIfIndex: none, NameFilterValid: true, NameFilter: "RST-O"}, []index{a}},
		{vppif.SwInterfaceDump{SwIfIndex: none, NameFilterValid: true, NameFilter: "-one"}, slices.Sorted(slices.Values([]index{a, b}))}, // indexes are used again, in any order
	}
	for _, tt := range tests {
		var got []index
		for _, d := range dump[vppif.SwInterfaceDetails](v, &tt.q) {
			got = append(got, d.SwIfIndex)
		}
		if !slices.Equal(got, tt.want) {
			v.Errorf("%+v gives %v, want %v", tt.q, got, tt.want)
		}
	}
	all := len(dump[vppif.SwInterfaceDetails](v, &vppif.SwInterfaceDump{SwIfIndex: none}))
	zero := len(dump[vppif.SwInterfaceDetails](v, &vppif.SwInterfaceDump{SwIfIndex: 0}))
	if all < 3 || zero != all {
		v.Errorf("all are %d, with index 0 %d", all, zero)
	}
}
