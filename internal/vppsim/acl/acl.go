// Package acl simulates VPP's plugin for access lists. It checks requests as the real one
// does, and refuses to delete an IP list that an interface has. A MACIP list leaves its
// interfaces when it is deleted, and an interface takes its lists with it.
//
// Numbers of lists are the only identity that VPP knows, and it reuses them. So tests find
// out whether a descriptor relies on a number that now means another list.
package acl

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/acl_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/l2"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// tagRoom is the size of a tag with the byte that ends it.
const tagRoom = 64

// A list is a named list of rules.
type list[R any] struct {
	tag   string
	rules []R
}

// lists are lists by number. VPP reuses the number that was released last.
type lists[R any] struct {
	all  map[uint32]list[R]
	free []uint32
}

func (l *lists[R]) has(number uint32) bool { _, has := l.all[number]; return has }

// set replaces a list, or makes one for core.None.
func (l *lists[R]) set(number uint32, tag string, rules []R) (uint32, core.Errno) {
	switch {
	case len(tag) >= tagRoom:
		return number, api.INVALID_VALUE
	case number != core.None && !l.has(number):
		return number, api.NO_SUCH_ENTRY
	case number == core.None && len(l.free) > 0:
		number = l.free[len(l.free)-1]
		l.free = l.free[:len(l.free)-1]
	case number == core.None:
		number = uint32(len(l.all))
	}
	l.all[number] = list[R]{tag, rules}
	return number, core.OK
}

// remove releases a number. The next new list gets it.
func (l *lists[R]) remove(number uint32) {
	delete(l.all, number)
	l.free = append(l.free, number)
}

// each yields the list of a number, or all of them for core.None.
func (l *lists[R]) each(number uint32, yield func(number uint32, one list[R])) {
	for _, n := range slices.Sorted(maps.Keys(l.all)) {
		if number == core.None || number == n {
			yield(n, l.all[n])
		}
	}
}

// vectors are the IP lists of an interface.
type vectors struct{ in, out []uint32 }

// A plugin has the lists of one VPP, and the lists of each interface.
type plugin struct {
	vpp       *core.VPP
	switching *l2.L2
	ip        lists[acl_types.ACLRule]
	macip     lists[acl_types.MacipACLRule]
	applied   map[uint32]vectors // by sw_if_index
	macipList map[uint32]uint32  // by sw_if_index
}

type index = interface_types.InterfaceIndex

// New adds the plugin.
func New(vpp *core.VPP, switching *l2.L2) {
	p := &plugin{
		vpp: vpp, switching: switching, applied: map[uint32]vectors{}, macipList: map[uint32]uint32{},
		ip: lists[acl_types.ACLRule]{all: map[uint32]list[acl_types.ACLRule]{}}, macip: lists[acl_types.MacipACLRule]{all: map[uint32]list[acl_types.MacipACLRule]{}},
	}
	vpp.Register(core.Plugin{
		Messages: []core.Message{
			core.Call(p.addReplace),
			core.Call(p.delete),
			core.On(vpp, func(q *acl.ACLInterfaceSetACLList) index { return q.SwIfIndex }, p.apply),
			core.Dump(p.dump),
			core.Dump(p.dumpApplied),
			core.Call(p.addReplaceMACIP),
			core.Call(p.deleteMACIP),
			core.On(vpp, func(q *acl.MacipACLInterfaceAddDel) index { return q.SwIfIndex }, p.applyMACIP),
			core.Dump(p.dumpMACIP),
			core.Dump(p.dumpAppliedMACIP),
		},
		Pages: map[string]func() string{"show acl-plugin": p.show},
		Removing: func(i *core.Interface) {
			p.setLists(i.Index, vectors{})
			p.setMACIP(i.Index, core.None)
		},
	})
}

// addReplace makes a list, or replaces its rules. A list without rules is accepted.
func (p *plugin) addReplace(q *acl.ACLAddReplace, r *acl.ACLAddReplaceReply) (errno core.Errno) {
	r.ACLIndex = q.ACLIndex
	for _, rule := range q.R {
		switch {
		case !valid(rule.SrcPrefix) || rule.SrcPrefix.Address.Af != rule.DstPrefix.Address.Af && valid(rule.DstPrefix):
			return api.INVALID_SRC_ADDRESS
		case !valid(rule.DstPrefix):
			return api.INVALID_DST_ADDRESS
		case rule.SrcportOrIcmptypeFirst > rule.SrcportOrIcmptypeLast || rule.DstportOrIcmpcodeFirst > rule.DstportOrIcmpcodeLast:
			return api.INVALID_VALUE_2
		}
	}
	r.ACLIndex, errno = p.ip.set(q.ACLIndex, q.Tag, q.R)
	return errno
}

// valid reports whether a network has no bits of a host (VPP ip_types.c, ip_prefix_validate).
func valid(p ip_types.Prefix) bool {
	network := vppwire.PrefixOf(p)
	return p.Address.Af <= ip_types.ADDRESS_IP6 && network.IsValid() && network == network.Masked()
}

// delete refuses a list that an interface has, and says in which direction, as the real
// plugin does. The incoming direction is reported first.
func (p *plugin) delete(q *acl.ACLDel, _ *acl.ACLDelReply) core.Errno {
	if !p.ip.has(q.ACLIndex) {
		return api.NO_SUCH_ENTRY
	}
	var in, out bool
	for _, v := range p.applied {
		in, out = in || slices.Contains(v.in, q.ACLIndex), out || slices.Contains(v.out, q.ACLIndex)
	}
	switch {
	case in:
		return api.ACL_IN_USE_INBOUND
	case out:
		return api.ACL_IN_USE_OUTBOUND
	}
	p.ip.remove(q.ACLIndex)
	return core.OK
}

// refused is the return value for a vector that has a list twice. VPP loses the real one
// (acl.c, "rv = rv || ...").
const refused = core.Errno(1)

// apply sets the lists of an interface. All must exist, and none may come twice in a
// direction. VPP sets the outgoing lists first and keeps them if it then refuses the
// incoming ones.
func (p *plugin) apply(i *core.Interface, q *acl.ACLInterfaceSetACLList, _ *acl.ACLInterfaceSetACLListReply) core.Errno {
	if slices.ContainsFunc(q.Acls, func(number uint32) bool { return !p.ip.has(number) }) {
		return api.NO_SUCH_ENTRY
	}
	n := min(int(q.NInput), len(q.Acls))
	was := p.applied[i.Index]
	if twice(q.Acls[n:]) {
		return refused
	}
	was.out = slices.Clone(q.Acls[n:])
	p.setLists(i.Index, was)
	if twice(q.Acls[:n]) {
		return refused
	}
	was.in = slices.Clone(q.Acls[:n])
	p.setLists(i.Index, was)
	return core.OK
}

// setLists sets the lists of an interface. The first one of a direction adds the feature that has
// VPP look at bridged packets, and without any the feature goes.
func (p *plugin) setLists(index uint32, to vectors) {
	was := p.applied[index]
	if p.applied[index] = to; len(to.in)+len(to.out) == 0 {
		delete(p.applied, index)
	}
	if (len(was.in) > 0) != (len(to.in) > 0) {
		p.switching.SetFeature(index, "l2-input-feat-arc", len(to.in) > 0)
	}
	if (len(was.out) > 0) != (len(to.out) > 0) {
		p.switching.SetFeature(index, "l2-output-feat-arc", len(to.out) > 0)
	}
}

// setMACIP sets the MACIP list of an interface; core.None: none.
func (p *plugin) setMACIP(index, list uint32) {
	if p.macipList[index] = list; list == core.None {
		delete(p.macipList, index)
	}
	p.switching.SetFeature(index, "l2-input-acl", list != core.None)
}

// twice reports whether a number occurs twice.
func twice(numbers []uint32) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(numbers)))) < len(numbers)
}

// dump lists the rules of one list, or of all for ~0.
func (p *plugin) dump(q *acl.ACLDump, yield func(acl.ACLDetails)) {
	p.ip.each(q.ACLIndex, func(n uint32, one list[acl_types.ACLRule]) {
		yield(acl.ACLDetails{ACLIndex: n, Tag: one.tag, R: one.rules})
	})
}

// dumpApplied lists one interface, or all of them, also those without lists.
func (p *plugin) dumpApplied(q *acl.ACLInterfaceListDump, yield func(acl.ACLInterfaceListDetails)) {
	for _, i := range p.vpp.Interfaces() {
		if uint32(q.SwIfIndex) == core.None || uint32(q.SwIfIndex) == i.Index {
			v := p.applied[i.Index]
			yield(acl.ACLInterfaceListDetails{SwIfIndex: index(i.Index), NInput: uint8(len(v.in)), Acls: slices.Concat(v.in, v.out)})
		}
	}
}

// addReplaceMACIP makes a MACIP list, or replaces its rules. The real plugin checks
// nothing of them.
func (p *plugin) addReplaceMACIP(q *acl.MacipACLAddReplace, r *acl.MacipACLAddReplaceReply) (errno core.Errno) {
	r.ACLIndex, errno = p.macip.set(q.ACLIndex, q.Tag, q.R)
	return errno
}

// deleteMACIP deletes a list and takes it from all interfaces.
func (p *plugin) deleteMACIP(q *acl.MacipACLDel, _ *acl.MacipACLDelReply) core.Errno {
	if !p.macip.has(q.ACLIndex) {
		return api.NO_SUCH_ENTRY
	}
	for index, number := range maps.Clone(p.macipList) {
		if number == q.ACLIndex {
			p.setMACIP(index, core.None)
		}
	}
	p.macip.remove(q.ACLIndex)
	return core.OK
}

// applyMACIP replaces the list of an interface, or removes whichever it has.
func (p *plugin) applyMACIP(i *core.Interface, q *acl.MacipACLInterfaceAddDel, _ *acl.MacipACLInterfaceAddDelReply) core.Errno {
	if _, has := p.macipList[i.Index]; q.IsAdd && !p.macip.has(q.ACLIndex) || !q.IsAdd && !has {
		return api.NO_SUCH_ENTRY
	}
	if q.IsAdd {
		p.setMACIP(i.Index, q.ACLIndex)
	} else {
		p.setMACIP(i.Index, core.None)
	}
	return core.OK
}

// dumpMACIP lists the rules of one MACIP list, or of all for ~0.
func (p *plugin) dumpMACIP(q *acl.MacipACLDump, yield func(acl.MacipACLDetails)) {
	p.macip.each(q.ACLIndex, func(n uint32, one list[acl_types.MacipACLRule]) {
		yield(acl.MacipACLDetails{ACLIndex: n, Tag: one.tag, R: one.rules})
	})
}

// dumpAppliedMACIP lists the interfaces that have a list.
func (p *plugin) dumpAppliedMACIP(q *acl.MacipACLInterfaceListDump, yield func(acl.MacipACLInterfaceListDetails)) {
	for _, i := range slices.Sorted(maps.Keys(p.macipList)) {
		if uint32(q.SwIfIndex) == core.None || uint32(q.SwIfIndex) == i {
			yield(acl.MacipACLInterfaceListDetails{SwIfIndex: index(i), Acls: []uint32{p.macipList[i]}})
		}
	}
}

// show prints each list with the number of its rules, and the lists of each interface in order.
func (p *plugin) show() string {
	var b strings.Builder
	p.ip.each(core.None, func(_ uint32, one list[acl_types.ACLRule]) {
		fmt.Fprintf(&b, "%s rules %d\n", untagged(one.tag), len(one.rules))
	})
	p.macip.each(core.None, func(_ uint32, one list[acl_types.MacipACLRule]) {
		fmt.Fprintf(&b, "%s macip rules %d\n", untagged(one.tag), len(one.rules))
	})
	for _, i := range slices.Sorted(maps.Keys(p.applied)) {
		if v := p.applied[i]; len(v.in)+len(v.out) > 0 {
			fmt.Fprintf(&b, "%s in [%s] out [%s]\n", p.vpp.NameOf(i), p.names(v.in), p.names(v.out))
		}
	}
	for _, i := range slices.Sorted(maps.Keys(p.macipList)) {
		fmt.Fprintf(&b, "%s macip %s\n", p.vpp.NameOf(i), untagged(p.macip.all[p.macipList[i]].tag))
	}
	return b.String()
}

// names returns the names of lists, for the page that tests compare.
func (p *plugin) names(numbers []uint32) string {
	var out []string
	for _, n := range numbers {
		out = append(out, untagged(p.ip.all[n].tag))
	}
	return strings.Join(out, " ")
}

// untagged returns the name in a tag.
func untagged(tag string) string {
	name, _ := core.ParseTag(tag)
	return name
}
