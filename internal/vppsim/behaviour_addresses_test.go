package vppsim_test

import (
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
)

func adminLink(flags uint32) interface_types.IfStatusFlags {
	return interface_types.IfStatusFlags(flags)
}

func addressRows() []row {
	const inUse4, inUse6 = api.ADDRESS_IN_USE, api.DUPLICATE_IF_ADDRESS
	return []row{
		{"addresses that overlap", func(v *vpp) {
			a, b := v.loop(), v.loop()
			for _, step := range []struct {
				on   index
				addr string
				want api.VPPApiError
			}{
				{a, "10.0.0.1/24", 0}, {a, "10.0.0.1/24", inUse4}, {a, "10.0.0.1/16", inUse4}, {a, "10.0.0.2/24", 0}, {a, "10.0.0.3/25", inUse4},
				{a, "10.0.1.1/16", inUse4}, {b, "10.0.0.9/24", inUse4}, {b, "10.0.0.9/28", inUse4}, {b, "10.0.0.1/32", inUse4}, {b, "10.0.0.9/8", inUse4},
				{a, "2001:db8::1/64", 0}, {a, "2001:db8::1/64", inUse6}, {a, "2001:db8::2/64", 0}, {b, "2001:db8::3/64", inUse6},
				{b, "30.0.0.0/24", 0}, {b, "31.0.0.255/24", 0}, {b, "224.0.0.1/24", 0}, {b, "127.0.0.1/8", 0}, {b, "12.0.0.0/31", 0}, {b, "13.0.0.1/32", 0},
				{b, "32.0.0.1/0", inUse4},
			} {
				v.is(step.addr, v.address(step.on, true, step.addr), step.want)
			}
			if got := v.addresses(a, false); !slices.Equal(got, []string{"10.0.0.1/24", "10.0.0.2/24"}) {
				v.Errorf("in the order of adding: %v", got)
			}
		}},
		{"of what is unknown", func(v *vpp) {
			for _, i := range []index{unknown, none} {
				v.is("add", v.address(i, true, "10.0.0.1/24"), api.INVALID_SW_IF_INDEX)
				v.is("delete", v.address(i, false, "10.0.0.1/24"), api.INVALID_SW_IF_INDEX)
				if got := v.addresses(i, false); len(got) > 0 {
					v.Errorf("%d has %v", i, got)
				}
			}
			v.is("local0", v.address(0, true, "10.0.0.1/24"), -126)
		}},
		{"the length is not looked at when one is deleted", func(v *vpp) {
			i := v.loop()
			v.is("add", v.address(i, true, "10.0.0.1/24"), 0)
			v.is("delete another", v.address(i, false, "99.0.0.1/24"), api.ADDRESS_NOT_FOUND_FOR_INTERFACE)
			v.own() // a VPP does not live long with what now stays
			v.is("delete", v.address(i, false, "10.0.0.1/25"), 0)
			if got := v.addresses(i, false); len(got) > 0 {
				v.Errorf("it has %v", got)
			}
			if v.paths(0, "10.0.0.0/32") == nil || v.paths(0, "10.0.0.1/32") != nil {
				v.Error("the routes of its network do not stay")
			}
		}},
		{"all are deleted, even by adding", func(v *vpp) {
			i := v.loop()
			for _, add := range []bool{false, false, true} {
				v.is("add", v.address(i, true, "10.0.0.1/24"), 0)
				v.call("all", 0, &vppif.SwInterfaceAddDelAddress{SwIfIndex: i, IsAdd: add, DelAll: true}, &vppif.SwInterfaceAddDelAddressReply{})
				if got := v.addresses(i, false); len(got) > 0 {
					v.Errorf("it has %v", got)
				}
			}
		}},
		{"the address of the link", func(v *vpp) {
			i := v.loop()
			its := &ip.SwInterfaceIP6GetLinkLocalAddressReply{}
			v.call("before", api.IP6_NOT_ENABLED, &ip.SwInterfaceIP6GetLinkLocalAddress{SwIfIndex: i}, its)
			v.call("of none", api.INVALID_SW_IF_INDEX, &ip.SwInterfaceIP6GetLinkLocalAddress{SwIfIndex: 9999}, its)
			v.is("length", v.address(i, true, "fe80::5/64"), api.ADDRESS_LENGTH_MISMATCH)
			v.is("first", v.address(i, true, "fe80::5/128"), 0)
			v.is("second", v.address(i, true, "fe80::6/128"), 0)
			v.call("now", 0, &ip.SwInterfaceIP6GetLinkLocalAddress{SwIfIndex: i}, its)
			if got := netip.AddrFrom16(its.IP).String(); got != "fe80::6" {
				v.Errorf("it is %s", got)
			}
			v.is("delete the first", v.address(i, false, "fe80::5/128"), api.ADDRESS_NOT_FOUND_FOR_INTERFACE)
			v.is("delete the second", v.address(i, false, "fe80::6/128"), api.ADDRESS_NOT_DELETABLE)
			if got := v.addresses(i, true); len(got) > 0 {
				v.Errorf("it is shown: %v", got)
			}
		}},
		{"the table of an interface", func(v *vpp) {
			v.table(10, "")
			a, b := v.loop(), v.loop()
			set := func(i index, id uint32, want api.VPPApiError) {
				v.Helper()
				v.call("set", want, &vppif.SwInterfaceSetTable{SwIfIndex: i, VrfID: id}, &vppif.SwInterfaceSetTableReply{})
			}
			set(a, 77, api.NO_SUCH_FIB)
			set(a, 10, 0)
			set(a, 10, 0)
			v.is("in one table", v.address(a, true, "60.0.0.1/24"), 0)
			v.is("in another", v.address(b, true, "60.0.0.2/24"), 0)
			set(a, 10, api.ADDRESS_FOUND_FOR_INTERFACE)
			set(a, 0, api.ADDRESS_FOUND_FOR_INTERFACE)
		}},
		{"unnumbered interfaces", unnumbered},
		{"routes to the addresses that a borrower had stay, even without it", func(v *vpp) {
			v.own() // a VPP does not live long with them
			lender, borrower := v.loop(), v.loop()
			v.is("its own", v.address(borrower, true, "10.0.0.1/24"), 0)
			v.call("borrow", 0, &vppif.SwInterfaceSetUnnumbered{IsAdd: true, SwIfIndex: lender, UnnumberedSwIfIndex: borrower}, &vppif.SwInterfaceSetUnnumberedReply{})
			if got := v.addresses(borrower, false); len(got) > 0 {
				v.Errorf("its own address stays: %v", got)
			}
			v.is("delete", v.delete(borrower), 0)
			if v.paths(0, "10.0.0.1/24") == nil {
				v.Error("the route is gone")
			}
		}},
	}
}

func unnumbered(v *vpp) {
	lender, borrower, third := v.loop(), v.loop(), v.loop()
	set := func(add bool, from, to index, want api.VPPApiError) {
		v.Helper()
		v.call("set", want, &vppif.SwInterfaceSetUnnumbered{IsAdd: add, SwIfIndex: from, UnnumberedSwIfIndex: to}, &vppif.SwInterfaceSetUnnumberedReply{})
	}
	shows := func(want ...index) {
		v.Helper()
		var got []index
		for _, d := range dump[ip.IPUnnumberedDetails](v, &ip.IPUnnumberedDump{SwIfIndex: borrower}) {
			got = append(got, d.IPSwIfIndex)
		}
		if !slices.Equal(got, want) {
			v.Errorf("it borrows from %v, want %v", got, want)
		}
	}
	set(true, lender, borrower, 0)
	shows(lender)
	set(true, third, borrower, 0)
	shows(third)
	set(true, borrower, borrower, 0)
	shows(borrower)
	set(true, lender, borrower, 0)
	v.table(10, "")
	bind := func(want api.VPPApiError, vrf uint32) {
		v.Helper()
		v.call("sw_interface_set_table", want, &vppif.SwInterfaceSetTable{SwIfIndex: borrower, VrfID: vrf}, &vppif.SwInterfaceSetTableReply{})
	}
	bind(0, 10)
	bind(0, 0)
	v.is("an address to borrow", v.address(lender, true, "10.0.0.1/24"), 0)
	bind(api.ADDRESS_FOUND_FOR_INTERFACE, 10)
	set(true, unknown, borrower, api.INVALID_SW_IF_INDEX_2)
	set(true, lender, unknown, api.INVALID_SW_IF_INDEX)
	v.is("delete the lender", v.delete(lender), 0)
	shows(lender)
	set(false, third, borrower, 0)
	set(false, third, borrower, 0)
	shows()
}
