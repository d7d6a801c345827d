package vppsim

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
)

// none is an index that nothing has.
const none = ^uint32(0)

const (
	adminUp = interface_types.IF_STATUS_API_FLAG_ADMIN_UP
	linkUp  = interface_types.IF_STATUS_API_FLAG_LINK_UP
)

// A device is what makes an interface what it is.
type device interface {
	// gone is called when the interface is deleted.
	gone(w *world, i *iface)
}

// An iface is an interface.
type iface struct {
	index, sup uint32
	name       string
	devType    string
	device     device // nil: local0
	tag        string
	mac        ethernet_types.MacAddress
	flags      interface_types.IfStatusFlags
	// noLink: the link does not come up by itself when the interface does.
	noLink  bool
	linkMTU uint16
	mtu     [4]uint32
	rx      []rxQueue

	// Of a sub-interface; zero otherwise.
	kind     interface_types.IfType
	subID    uint32
	tags     uint8
	outer    uint16
	subFlags interface_types.SubIfFlags

	table     [2]uint32      // of IPv4 and IPv6
	addresses []netip.Prefix // in the order in which they came
	linkLocal netip.Addr
	claimed   []ownClaim
}

// interfaces are all of them. Indexes of deleted ones are used again, the last freed first.
type interfaces struct {
	byIndex   map[uint32]*iface
	free      []uint32
	next      uint32
	instances map[string]*instances // by kind of device
}

func (all *interfaces) init() {
	all.byIndex = map[uint32]*iface{}
	all.instances = map[string]*instances{}
	all.add(&iface{name: "local0", devType: "local"})
}

// add gives i an index.
func (all *interfaces) add(i *iface) {
	if n := len(all.free); n > 0 {
		i.index, all.free = all.free[n-1], all.free[:n-1]
	} else {
		i.index = all.next
		all.next++
	}
	if i.kind == interface_types.IF_API_TYPE_HARDWARE {
		i.sup = i.index
	}
	all.byIndex[i.index] = i
}

// instances are the numbers of a kind of device that are in use.
type instances struct {
	used  map[uint32]bool
	first uint32 // none below is free
}

// instance takes a number of a kind of device: the lowest that is free, or wanted one.
func (all *interfaces) instance(kind string, specified bool, wanted uint32) (uint32, bool) {
	of := all.instances[kind]
	if of == nil {
		of = &instances{used: map[uint32]bool{}}
		all.instances[kind] = of
	}
	if !specified {
		for of.used[of.first] {
			of.first++
		}
		wanted = of.first
	}
	if of.used[wanted] {
		return 0, false
	}
	of.used[wanted] = true
	return wanted, true
}

func (all *interfaces) release(kind string, instance uint32) {
	of := all.instances[kind]
	delete(of.used, instance)
	of.first = min(of.first, instance)
}

// sorted is all of them by index.
func (all *interfaces) sorted() []*iface {
	return slices.SortedFunc(maps.Values(all.byIndex), func(a, b *iface) int { return cmp.Compare(a.index, b.index) })
}

// create adds an interface and tells of it.
func (w *world) create(i *iface) uint32 {
	w.interfaces.add(i)
	w.linkEvent(i, false)
	return i.index
}

// remove deletes an interface, with its sub-interfaces. What does not vanish with it
// in VPP stays here too: routes, cross-connects, L2 FIB entries that name it.
func (w *world) remove(i *iface) {
	for _, sub := range w.interfaces.sorted() {
		if sub.sup == i.index && sub != i {
			w.remove(sub)
		}
	}
	i.device.gone(w, i)
	w.clearAddresses(i)
	delete(w.unnumbered, i.index)
	if tx, connected := w.l2.xconnect[i.index]; connected {
		w.l2.toL3(tx)
		w.l2.toL3(i.index)
	}
	w.l2.leave(i.index)
	delete(w.bonded, i.index)
	w.forgetLearned(i.index)
	delete(w.interfaces.byIndex, i.index)
	w.interfaces.free = append(w.interfaces.free, i.index)
	i.flags = 0
	w.linkEvent(i, true)
	w.tables.unbound(w)
}

func (w *world) linkEvent(i *iface, deleted bool) { w.flagsEvent(i, i.flags, deleted) }

func (w *world) flagsEvent(i *iface, flags interface_types.IfStatusFlags, deleted bool) {
	index := interface_types.InterfaceIndex(i.index)
	w.emit("interface", func(pid uint32) api.Message {
		return &vppif.SwInterfaceEvent{PID: pid, SwIfIndex: index, Flags: flags, Deleted: deleted}
	})
}

// at finds an interface.
func (w *world) at(index interface_types.InterfaceIndex) (*iface, errno) {
	i := w.interfaces.byIndex[uint32(index)]
	if i == nil {
		return nil, api.INVALID_SW_IF_INDEX
	}
	return i, ok
}

// on is a call about an interface that is to be there.
func on[Q, R any, PQ message[Q], PR message[R]](index func(*Q) interface_types.InterfaceIndex, serve func(w *world, i *iface, q *Q, r *R) errno) entry {
	return call[Q, R, PQ, PR](func(w *world, q *Q, r *R) errno {
		i, errno := w.at(index(q))
		if errno != ok {
			return errno
		}
		return serve(w, i, q, r)
	})
}

func interfaceMessages() []entry {
	type index = interface_types.InterfaceIndex
	return []entry{
		call(func(w *world, q *vppif.WantInterfaceEvents, _ *vppif.WantInterfaceEventsReply) errno {
			return w.want("interface", q.EnableDisable != 0, q.PID)
		}).with(&vppif.SwInterfaceEvent{}),
		dump(dumpInterfaces),
		call(func(w *world, q *vppif.CreateLoopback, r *vppif.CreateLoopbackReply) (e errno) {
			r.SwIfIndex, e = w.createLoopback(q.MacAddress, false, 0)
			return e
		}),
		call(func(w *world, q *vppif.CreateLoopbackInstance, r *vppif.CreateLoopbackInstanceReply) (e errno) {
			r.SwIfIndex, e = w.createLoopback(q.MacAddress, q.IsSpecified, q.UserInstance)
			return e
		}),
		on(func(q *vppif.DeleteLoopback) index { return q.SwIfIndex },
			func(w *world, i *iface, _ *vppif.DeleteLoopback, _ *vppif.DeleteLoopbackReply) errno {
				if _, is := i.device.(loopback); !is {
					return api.INVALID_SW_IF_INDEX
				}
				w.remove(i)
				return ok
			}),
		on(func(q *vppif.SwInterfaceTagAddDel) index { return q.SwIfIndex }, setTag),
		on(func(q *vppif.SwInterfaceSetFlags) index { return q.SwIfIndex },
			func(w *world, i *iface, q *vppif.SwInterfaceSetFlags, _ *vppif.SwInterfaceSetFlagsReply) errno {
				return w.setFlags(i, q.Flags)
			}),
		on(func(q *vppif.SwInterfaceSetMacAddress) index { return q.SwIfIndex },
			func(_ *world, i *iface, q *vppif.SwInterfaceSetMacAddress, _ *vppif.SwInterfaceSetMacAddressReply) errno {
				if i.device == nil {
					return api.UNIMPLEMENTED
				}
				i.mac = q.MacAddress
				return ok
			}),
		on(func(q *vppif.SwInterfaceSetMtu) index { return q.SwIfIndex },
			func(_ *world, i *iface, q *vppif.SwInterfaceSetMtu, _ *vppif.SwInterfaceSetMtuReply) errno {
				copy(i.mtu[:], q.Mtu)
				return ok
			}),
		on(func(q *vppif.HwInterfaceSetMtu) index { return q.SwIfIndex }, setHardwareMTU),
		call(setName),
	}
}

// dumpInterfaces lists one, or all for index 0 as well as for ~0.
func dumpInterfaces(w *world, q *vppif.SwInterfaceDump, yield func(vppif.SwInterfaceDetails)) {
	if q.SwIfIndex != 0 && uint32(q.SwIfIndex) != none {
		if i := w.interfaces.byIndex[uint32(q.SwIfIndex)]; i != nil {
			yield(w.details(i))
		}
		return
	}
	filter := strings.ToLower(q.NameFilter)
	for _, i := range w.interfaces.sorted() {
		if !q.NameFilterValid || strings.Contains(strings.ToLower(i.name), filter) {
			yield(w.details(i))
		}
	}
}

func (w *world) details(i *iface) vppif.SwInterfaceDetails {
	vtr, flags := w.l2.rewrites[i.index], i.flags
	if i.kind == interface_types.IF_API_TYPE_SUB {
		flags |= w.interfaces.byIndex[i.sup].flags & linkUp
	}
	return vppif.SwInterfaceDetails{
		SwIfIndex: interface_types.InterfaceIndex(i.index), SupSwIfIndex: i.sup, L2Address: i.mac, Flags: flags,
		Type: i.kind, LinkMtu: i.linkMTU, Mtu: slices.Clone(i.mtu[:]), SubID: i.subID, SubNumberOfTags: i.tags,
		SubOuterVlanID: i.outer, SubIfFlags: i.subFlags, VtrOp: vtr.op, VtrPushDot1q: vtr.push,
		VtrTag1: vtr.tag1, VtrTag2: vtr.tag2,
		InterfaceName: i.name, InterfaceDevType: i.devType, Tag: i.tag,
	}
}

// setFlags knows but the administrative state. Of a link that is up already VPP does not say
// so again: the event has not all flags then. A sub-interface has the link of its parent.
func (w *world) setFlags(i *iface, flags interface_types.IfStatusFlags) errno {
	up := flags&adminUp != 0
	if up && i.kind == interface_types.IF_API_TYPE_SUB {
		if w.interfaces.byIndex[i.sup].flags&adminUp == 0 {
			return api.UNSPECIFIED
		}
	}
	before := i.flags
	switch {
	case up == (before&adminUp != 0):
		return ok // a link that is up stays so
	case !up:
		i.flags = 0
	case i.noLink || i.device == nil || i.kind == interface_types.IF_API_TYPE_SUB:
		i.flags = adminUp
	default:
		i.flags = adminUp | linkUp
	}
	if !up {
		w.forgetLearned(i.index)
	}
	w.flagsEvent(i, i.flags&^(before&linkUp), false)
	w.connected(i)
	return ok
}

func setTag(_ *world, i *iface, q *vppif.SwInterfaceTagAddDel, _ *vppif.SwInterfaceTagAddDelReply) errno {
	switch {
	case !q.IsAdd:
		i.tag = ""
	case q.Tag == "":
		return api.INVALID_VALUE
	default:
		i.tag = q.Tag[:min(len(q.Tag), 63)]
	}
	return ok
}

func setHardwareMTU(_ *world, i *iface, q *vppif.HwInterfaceSetMtu, _ *vppif.HwInterfaceSetMtuReply) errno {
	switch _, is := i.device.(loopback); {
	case i.device == nil:
		return api.FEATURE_DISABLED
	case is && q.Mtu != i.linkMTU:
		return api.UNSUPPORTED
	}
	i.linkMTU = q.Mtu
	return ok
}

// setName takes any name, in use or not. Before 25.10 an unknown index meant local0.
func setName(w *world, q *vppif.SwInterfaceSetInterfaceName, _ *vppif.SwInterfaceSetInterfaceNameReply) errno {
	i, errno := w.at(q.SwIfIndex)
	if errno != ok && w.before("25.10") {
		i, errno = w.at(0)
	}
	switch {
	case errno != ok:
		return errno
	case q.Name == "":
		return api.INVALID_VALUE
	}
	i.name = q.Name
	return ok
}

// A loopback has an instance: that of its name.
type loopback struct{ instance uint32 }

const mostLoopbacks = 16384

func (w *world) createLoopback(mac ethernet_types.MacAddress, specified bool, instance uint32) (interface_types.InterfaceIndex, errno) {
	if specified && instance >= mostLoopbacks {
		return interface_types.InterfaceIndex(none), api.INVALID_REGISTRATION
	}
	instance, free := w.interfaces.instance("loop", specified, instance)
	if !free {
		return interface_types.InterfaceIndex(none), api.INVALID_REGISTRATION
	}
	if mac == (ethernet_types.MacAddress{}) {
		mac = ethernet_types.MacAddress{0xde, 0xad, 0, 0, 0, byte(instance)}
	}
	return interface_types.InterfaceIndex(w.create(&iface{
		name: fmt.Sprintf("loop%d", instance), devType: "Loopback", device: loopback{instance},
		mac: mac, linkMTU: 9000, mtu: [4]uint32{9000},
	})), ok
}

func (l loopback) gone(w *world, _ *iface) { w.interfaces.release("loop", l.instance) }

func (w *world) showInterfaces() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-6s %-24s %-24s %-10s %-6s %s\n", "index", "name", "tag", "state", "table", "addresses")
	for _, i := range w.interfaces.sorted() {
		state := "down"
		if i.flags&adminUp != 0 {
			state = "up"
		}
		var words []string
		for _, a := range i.addresses {
			words = append(words, a.String())
		}
		if op := w.l2.rewrites[i.index].op; op != 0 {
			words = append(words, fmt.Sprint("rewrites ", op))
		}
		name, owner := nameIn(i.tag)
		if owner != "" {
			words = append(words, "of "+owner)
		}
		fmt.Fprintf(&b, "%-6d %-24s %-24s %-10s %-6d %s\n", i.index, i.name, name, state, i.table[0], strings.Join(words, " "))
	}
	return b.String()
}
