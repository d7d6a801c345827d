package vppsim_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/l2"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// rule returns a rule of an IP list by its networks.
func rule(source, destination string) acl_types.ACLRule {
	return acl_types.ACLRule{
		SrcPrefix: vppwire.Prefix(netip.MustParsePrefix(source)), DstPrefix: vppwire.Prefix(netip.MustParsePrefix(destination)),
		SrcportOrIcmptypeLast: 65535, DstportOrIcmpcodeLast: 65535,
	}
}

// list makes an IP list, or replaces one, for the time of the row.
func (v *vpp) list(number uint32, tag string, want api.VPPApiError, rules ...acl_types.ACLRule) uint32 {
	v.Helper()
	var r acl.ACLAddReplaceReply
	v.call("acl_add_replace", want, &acl.ACLAddReplace{ACLIndex: number, Tag: tag, R: rules}, &r)
	if want == 0 {
		v.Cleanup(func() {
			_ = v.Call(context.WithoutCancel(v.Context()), &acl.ACLDel{ACLIndex: r.ACLIndex}, &acl.ACLDelReply{}) // the row may have deleted it
		})
	}
	return r.ACLIndex
}

func (v *vpp) applyLists(i index, incoming int, want api.VPPApiError, numbers ...uint32) {
	v.Helper()
	v.call("acl_interface_set_acl_list", want, &acl.ACLInterfaceSetACLList{SwIfIndex: i, NInput: uint8(incoming), Acls: numbers}, &acl.ACLInterfaceSetACLListReply{})
}

// listsOf checks the lists of an interface.
func (v *vpp) listsOf(i index, incoming int, want ...uint32) {
	v.Helper()
	all := dump[acl.ACLInterfaceListDetails](v, &acl.ACLInterfaceListDump{SwIfIndex: i})
	if len(all) != 1 || int(all[0].NInput) != incoming || !slices.Equal(all[0].Acls, want) {
		v.Errorf("interface %d has %+v; expected %v, %d of them incoming", i, all, want, incoming)
	}
}

func accessRows() []row {
	const newList = ^uint32(0)
	return []row{
		{"access lists come, change and go", func(v *vpp) {
			a := v.list(newList, "a", 0, rule("10.0.0.0/8", "0.0.0.0/0"))
			b := v.list(newList, "a", 0)
			if a == b {
				v.Error("the second list with a tag took the number of the first")
			}
			if n := v.list(a, "c", 0, rule("fd00::/8", "::/0"), rule("10.0.0.0/8", "0.0.0.0/0")); n != a {
				v.Errorf("replacing gave the number %d, not %d", n, a)
			}
			if all := dump[acl.ACLDetails](v, &acl.ACLDump{ACLIndex: a}); len(all) != 1 || all[0].Tag != "c" || len(all[0].R) != 2 || all[0].R[0] != rule("fd00::/8", "::/0") {
				v.Errorf("it is %+v", all)
			}
			v.list(a+b+1000, "a", api.NO_SUCH_ENTRY)
			v.call("delete", api.NO_SUCH_ENTRY, &acl.ACLDel{ACLIndex: a + b + 1000}, &acl.ACLDelReply{})
			v.call("delete", 0, &acl.ACLDel{ACLIndex: a}, &acl.ACLDelReply{})
			if n := v.list(newList, "d", 0); n != a {
				v.Errorf("a new list got the number %d; expected %d, the one that was released last", n, a)
			}
			if all := dump[acl.ACLDetails](v, &acl.ACLDump{ACLIndex: a + b + 1000}); len(all) > 0 {
				v.Errorf("a list that does not exist is %+v", all)
			}
		}},
		{"rules that are refused", func(v *vpp) {
			v.list(newList, "a", api.INVALID_SRC_ADDRESS, rule("10.0.0.1/8", "0.0.0.0/0"))
			v.list(newList, "a", api.INVALID_DST_ADDRESS, rule("0.0.0.0/0", "10.0.0.1/8"))
			v.list(newList, "a", api.INVALID_SRC_ADDRESS, rule("fd00::/8", "0.0.0.0/0"))
			ports := rule("0.0.0.0/0", "0.0.0.0/0")
			ports.SrcportOrIcmptypeFirst, ports.SrcportOrIcmptypeLast = 2, 1
			v.list(newList, "a", api.INVALID_VALUE_2, ports)
			long := rule("0.0.0.0/0", "0.0.0.0/0")
			long.SrcPrefix.Len = 33
			v.list(newList, "a", api.INVALID_SRC_ADDRESS, long)
			v.list(newList, strings.Repeat("x", 63), 0)
		}},
		{"access lists of an interface that leaves layer 2", func(v *vpp) {
			i := v.loop()
			a := v.list(newList, "a", 0)
			var macip acl.MacipACLAddReplaceReply
			v.call("macip_acl_add_replace", 0, &acl.MacipACLAddReplace{ACLIndex: newList, Tag: "m", R: []acl_types.MacipACLRule{{IsPermit: acl_types.ACL_ACTION_API_PERMIT}}}, &macip)
			applyMACIP := func(add bool) {
				v.Helper()
				v.call("macip_acl_interface_add_del", 0, &acl.MacipACLInterfaceAddDel{IsAdd: add, SwIfIndex: i, ACLIndex: macip.ACLIndex}, &acl.MacipACLInterfaceAddDelReply{})
			}
			looks := func(when string, in, out, hosts bool) {
				v.Helper()
				text := v.command("show interface features " + v.details(i).InterfaceName)
				if strings.Contains(text, "l2-input-feat-arc") != in || strings.Contains(text, "l2-output-feat-arc") != out || strings.Contains(text, "l2-input-acl") != hosts {
					v.Errorf("%s: expected lists for incoming packets %t, outgoing %t, of hosts %t:\n%s", when, in, out, hosts, text)
				}
			}
			v.applyLists(i, 1, 0, a, a)
			applyMACIP(true)
			v.bridge(10, true, 0)
			v.member(i, 10, l2.L2_API_PORT_TYPE_NORMAL, true, 0)
			looks("bridged", true, true, true)
			v.member(i, 10, l2.L2_API_PORT_TYPE_NORMAL, false, 0)
			v.member(i, 10, l2.L2_API_PORT_TYPE_NORMAL, true, 0)
			looks("bridged again", false, false, false)
			v.listsOf(i, 1, a, a)
			v.applyLists(i, 1, 0, a, a)
			looks("the same lists are set", false, false, false)
			v.applyLists(i, 0, 0)
			v.applyLists(i, 1, 0, a, a)
			applyMACIP(false)
			applyMACIP(true)
			looks("they were taken away and set", true, true, true)
			v.applyLists(i, 0, 0)
			applyMACIP(false)
			looks("without lists", false, false, false)
			v.call("macip_acl_del", 0, &acl.MacipACLDel{ACLIndex: macip.ACLIndex}, &acl.MacipACLDelReply{})
		}},
		{"access lists on interfaces", func(v *vpp) {
			i := v.loop()
			a, b, c := v.list(newList, "a", 0), v.list(newList, "b", 0), v.list(newList, "c", 0)
			v.Cleanup(func() { // before the lists are deleted
				q := &acl.ACLInterfaceSetACLList{SwIfIndex: i}
				_ = v.Call(context.WithoutCancel(v.Context()), q, &acl.ACLInterfaceSetACLListReply{}) // the interface may be gone
			})
			v.listsOf(i, 0)
			v.applyLists(i, 2, 0, b, a, c)
			v.listsOf(i, 2, b, a, c)
			v.applyLists(i, 1, 0, a, a)
			v.listsOf(i, 1, a, a)
			v.applyLists(i, 0, 1, b, b)
			v.listsOf(i, 1, a, a)
			v.applyLists(i, 2, 1, b, b, c) // the outgoing lists are set nevertheless
			v.listsOf(i, 1, a, c)
			v.applyLists(i, 1, api.NO_SUCH_ENTRY, a+b+c+1000)
			v.applyLists(unknown, 0, api.INVALID_SW_IF_INDEX)
			v.call("delete", api.ACL_IN_USE_INBOUND, &acl.ACLDel{ACLIndex: a}, &acl.ACLDelReply{})
			v.call("delete", api.ACL_IN_USE_OUTBOUND, &acl.ACLDel{ACLIndex: c}, &acl.ACLDelReply{})
			v.call("delete", 0, &acl.ACLDel{ACLIndex: b}, &acl.ACLDelReply{})
			if err := v.delete(i); err != nil {
				v.Error(err)
			}
			v.call("delete", 0, &acl.ACLDel{ACLIndex: a}, &acl.ACLDelReply{})
			v.call("delete", 0, &acl.ACLDel{ACLIndex: c}, &acl.ACLDelReply{})
			again := v.loop()
			v.listsOf(again, 0)
		}},
		{"MACIP lists", macipLists},
	}
}

// macipLists makes two MACIP lists. An interface has one at a time, and loses it with the list.
func macipLists(v *vpp) {
	const newList = ^uint32(0)
	i := v.loop()
	set := func(number uint32, want api.VPPApiError) uint32 {
		var r acl.MacipACLAddReplaceReply
		rules := []acl_types.MacipACLRule{{IsPermit: 1, SrcPrefix: vppwire.Prefix(netip.MustParsePrefix("10.0.0.1/32")), SrcMac: [6]byte{2}, SrcMacMask: [6]byte{255}}}
		v.call("macip_acl_add_replace", want, &acl.MacipACLAddReplace{ACLIndex: number, Tag: "m", R: rules}, &r)
		return r.ACLIndex
	}
	remove := func(number uint32, want api.VPPApiError) {
		v.call("macip_acl_del", want, &acl.MacipACLDel{ACLIndex: number}, &acl.MacipACLDelReply{})
	}
	apply := func(number uint32, add bool, want api.VPPApiError) {
		v.call("macip_acl_interface_add_del", want, &acl.MacipACLInterfaceAddDel{SwIfIndex: i, ACLIndex: number, IsAdd: add}, &acl.MacipACLInterfaceAddDelReply{})
	}
	has := func(want ...uint32) {
		var got []uint32
		for _, d := range dump[acl.MacipACLInterfaceListDetails](v, &acl.MacipACLInterfaceListDump{SwIfIndex: none}) {
			if d.SwIfIndex == i {
				got = append(got, d.Acls...)
			}
		}
		if !slices.Equal(got, want) {
			v.Errorf("the interface has %v; expected %v", got, want)
		}
	}
	a, b := set(newList, 0), set(newList, 0)
	if all := dump[acl.MacipACLDetails](v, &acl.MacipACLDump{ACLIndex: a}); len(all) != 1 || all[0].Tag != "m" || len(all[0].R) != 1 || all[0].R[0].SrcPrefix.Len != 32 {
		v.Errorf("it is %+v", all)
	}
	has()
	apply(a, true, 0)
	apply(b, true, 0) // takes the place of the first
	has(b)
	set(b, 0)
	has(b)
	apply(a, false, 0) // removes the other one
	has()
	apply(a, false, api.NO_SUCH_ENTRY)
	apply(a, true, 0)
	remove(a, 0)
	has()
	remove(a, api.NO_SUCH_ENTRY)
	set(a, api.NO_SUCH_ENTRY)
	apply(a, true, api.NO_SUCH_ENTRY)
	apply(b, true, 0)
	if err := v.delete(i); err != nil {
		v.Error(err)
	}
	has()
	remove(b, 0)
}
