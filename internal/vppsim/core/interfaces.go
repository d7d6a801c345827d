package core

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
)

const (
	// AdminUp is the flag of an interface that somebody has set up.
	AdminUp = interface_types.IF_STATUS_API_FLAG_ADMIN_UP
	// LinkUp is the flag of an interface with a link.
	LinkUp = interface_types.IF_STATUS_API_FLAG_LINK_UP
)

// An Interface is a line of VPP's interface table. The plugin that creates it fills in the
// exported fields.
type Interface struct {
	Index   uint32 // set by VPP.Add
	Sup     uint32 // index of the parent; the interface's own index if it has none
	Name    string
	DevType string
	// Device is the state that the creating plugin keeps, of a type of that plugin. It is
	// nil for local0 only.
	Device  any
	Number  Number // released when the interface is deleted
	Tag     string
	MAC     ethernet_types.MacAddress
	NoMAC   bool // it is for IP packets: it has no MAC address, and gets none
	Flags   interface_types.IfStatusFlags
	NoLink  bool // the link stays down when the interface is set up
	LinkMTU uint16
	MTU     [4]uint32 // of L3, IPv4, IPv6 and MPLS; 0: not set

	RX         []Queue // empty: VPP shows no receive queue
	NoAdaptive bool    // the receive queues have no adaptive mode

	// Only a sub-interface has these fields.
	Kind     interface_types.IfType
	SubID    uint32
	Tags     uint8
	Outer    uint16
	SubFlags interface_types.SubIfFlags

	// Plugin ip changes these fields; all plugins may read them.
	Tables    [2]uint32      // IDs of the IPv4 and the IPv6 table
	Addresses []netip.Prefix // in the order of addition, as dumps list them
}

// A Queue is a receive queue of an interface.
type Queue struct {
	Thread uint32 // 0 is the main thread, 1 the first worker
	Mode   interface_types.RxMode
}

// Receive gives an interface its receive queues, at least one. The main thread serves all
// of them.
func (i *Interface) Receive(queues uint16, mode interface_types.RxMode) {
	i.RX = make([]Queue, max(queues, 1))
	for n := range i.RX {
		i.RX[n].Mode = mode
	}
}

// IsUp returns whether the interface is set up.
func (i *Interface) IsUp() bool { return i.Flags&AdminUp != 0 }

// IsSub returns whether the interface is a sub-interface.
func (i *Interface) IsSub() bool { return i.Kind == interface_types.IF_API_TYPE_SUB }

// interfaces is the interface table. VPP uses the indexes of deleted interfaces again, the
// last freed one first.
type interfaces struct {
	byIndex map[uint32]*Interface
	free    []uint32
	next    uint32
	numbers map[string]*numbers // by kind of device
}

// newInterfaces returns a table without interfaces.
func newInterfaces() interfaces {
	return interfaces{byIndex: map[uint32]*Interface{}, numbers: map[string]*numbers{}}
}

// Interface returns the interface of an index, or nil.
func (v *VPP) Interface(index uint32) *Interface { return v.interfaces.byIndex[index] }

// HasMAC returns whether an interface has a MAC address. A sub-interface has that of its parent,
// although no dump shows it.
func (v *VPP) HasMAC(i *Interface) bool {
	parent := v.Interface(i.Sup)
	return parent != nil && parent.Device != nil && !parent.NoMAC
}

// At returns the interface of an index, or INVALID_SW_IF_INDEX.
func (v *VPP) At(index interface_types.InterfaceIndex) (*Interface, Errno) {
	i := v.Interface(uint32(index))
	if i == nil {
		return nil, api.INVALID_SW_IF_INDEX
	}
	return i, OK
}

// Interfaces returns all interfaces by ascending index, the order of VPP's dump.
func (v *VPP) Interfaces() []*Interface {
	all := maps.Values(v.interfaces.byIndex)
	return slices.SortedFunc(all, func(a, b *Interface) int { return cmp.Compare(a.Index, b.Index) })
}

// Each yields the interfaces whose device is a D, by ascending index, with their devices.
// A filter other than None selects the interface of that index.
func Each[D any](v *VPP, filter interface_types.InterfaceIndex) iter.Seq2[*Interface, D] {
	return func(yield func(*Interface, D) bool) {
		for _, i := range v.Interfaces() {
			d, is := i.Device.(D)
			if !is || uint32(filter) != None && uint32(filter) != i.Index {
				continue
			}
			if !yield(i, d) {
				return
			}
		}
	}
}

// Find returns the interface whose device is a D for which is returns true, or nil.
func Find[D any](v *VPP, is func(D) bool) *Interface {
	for _, i := range v.interfaces.byIndex {
		if d, of := i.Device.(D); of && is(d) {
			return i
		}
	}
	return nil
}

// Delete deletes the interface of an index if its device is a D, and returns refused otherwise.
func Delete[D any](v *VPP, index interface_types.InterfaceIndex, refused Errno) Errno {
	i := v.Interface(uint32(index))
	if i == nil {
		return refused
	}
	if _, is := i.Device.(D); !is {
		return refused
	}
	v.Remove(i)
	return OK
}

// NextIndex returns an index that no interface has had yet.
func (v *VPP) NextIndex() uint32 { return v.interfaces.next }

// NameOf returns the name of an interface. For the index of a deleted interface it returns
// a text with the index.
func (v *VPP) NameOf(index uint32) string {
	if i := v.Interface(index); i != nil {
		return i.Name
	}
	return fmt.Sprintf("DELETED (%d)", index)
}

// Add gives i an index and adds it to the table, without an event.
func (v *VPP) Add(i *Interface) {
	all := &v.interfaces
	if n := len(all.free); n > 0 {
		i.Index, all.free = all.free[n-1], all.free[:n-1]
	} else {
		i.Index = all.next
		all.next++
	}
	if !i.IsSub() {
		i.Sup = i.Index
	}
	all.byIndex[i.Index] = i
}

// Create adds an interface and sends the event of its creation.
func (v *VPP) Create(i *Interface) interface_types.InterfaceIndex {
	v.Add(i)
	v.linkEvent(i, i.Flags, false)
	return interface_types.InterfaceIndex(i.Index)
}

// Remove deletes an interface and its sub-interfaces. State that outlives its interface in
// the real VPP stays here too: routes, cross-connects, and L2 FIB entries go on naming the
// index, and the next interface of that index inherits them. Addresses, the tag, MTUs and
// table bindings end with the interface.
func (v *VPP) Remove(i *Interface) {
	for _, sub := range v.Interfaces() {
		if sub.Sup == i.Index && sub != i {
			v.Remove(sub)
		}
	}
	for _, p := range v.plugins {
		if p.Removing != nil {
			p.Removing(i)
		}
	}
	v.Free(i.Number)
	delete(v.interfaces.byIndex, i.Index)
	delete(v.counted.interfaces, i.Index)
	v.interfaces.free = append(v.interfaces.free, i.Index)
	i.Flags = 0
	v.linkEvent(i, 0, true)
	for _, p := range v.plugins {
		if p.Removed != nil {
			p.Removed()
		}
	}
}

// Hide takes an interface out of the table without an event. Its index stays in use. See
// Unhide.
func (v *VPP) Hide(i *Interface) { delete(v.interfaces.byIndex, i.Index) }

// Unhide puts a hidden interface back, at its old index and without an event.
func (v *VPP) Unhide(i *Interface) { v.interfaces.byIndex[i.Index] = i }

// SetFlags sets the administrative state of an interface; VPP ignores the other flags. The
// link follows, except for a sub-interface, which has the link of its parent. A
// sub-interface cannot be up while its parent is down.
func (v *VPP) SetFlags(i *Interface, flags interface_types.IfStatusFlags) Errno {
	up := flags&AdminUp != 0
	if up && i.IsSub() && !v.Interface(i.Sup).IsUp() {
		return api.UNSPECIFIED
	}
	before := i.Flags
	switch {
	case up == i.IsUp():
		return OK // no event, and an existing link stays
	case !up:
		i.Flags = 0
	case i.NoLink || i.Device == nil || i.IsSub():
		i.Flags = AdminUp
	default:
		i.Flags = AdminUp | LinkUp
	}
	v.linkEvent(i, i.Flags&^(before&LinkUp), false) // VPP does not report a link again that was up before
	for _, p := range v.plugins {
		if p.Flags != nil {
			p.Flags(i)
		}
	}
	return OK
}

// SetLink gives an interface that is up a link, or takes it away. One that is down gets it when it
// is set up.
func (v *VPP) SetLink(i *Interface, up bool) {
	i.NoLink = !up
	flags := i.Flags &^ LinkUp
	if up && i.IsUp() {
		flags |= LinkUp
	}
	if flags == i.Flags {
		return
	}
	i.Flags = flags
	v.linkEvent(i, flags&LinkUp, false) // it does not say that the interface is up
	for _, p := range v.plugins {
		if p.Flags != nil {
			p.Flags(i)
		}
	}
}

// linkEvent tells the clients that want events about a link. The event has the state after
// the change.
func (v *VPP) linkEvent(i *Interface, flags interface_types.IfStatusFlags, deleted bool) {
	index := interface_types.InterfaceIndex(i.Index)
	v.Emit("interface", func(pid uint32) api.Message {
		return &vppif.SwInterfaceEvent{PID: pid, SwIfIndex: index, Flags: flags, Deleted: deleted}
	})
}

// DetailsOf returns an interface as a dump shows it. A sub-interface shows the link of its
// parent.
func (v *VPP) DetailsOf(i *Interface) vppif.SwInterfaceDetails {
	d := vppif.SwInterfaceDetails{
		SwIfIndex: interface_types.InterfaceIndex(i.Index), SupSwIfIndex: i.Sup, L2Address: i.MAC, Flags: i.Flags,
		Type: i.Kind, LinkMtu: i.LinkMTU, Mtu: slices.Clone(i.MTU[:]), SubID: i.SubID, SubNumberOfTags: i.Tags,
		SubOuterVlanID: i.Outer, SubIfFlags: i.SubFlags, InterfaceName: i.Name, InterfaceDevType: i.DevType, Tag: i.Tag,
	}
	if i.IsSub() {
		d.Flags |= v.Interface(i.Sup).Flags & LinkUp
	}
	for _, p := range v.plugins {
		if p.Details != nil {
			p.Details(i, &d)
		}
	}
	return d
}

// RandomMAC returns a MAC address of the form that VPP makes up, 02:fe:... It depends on
// the seed only.
func RandomMAC(seed uint32) ethernet_types.MacAddress {
	seed = seed*2654435761 + 97
	return ethernet_types.MacAddress{0x02, 0xfe, byte(seed >> 24), byte(seed >> 16), byte(seed >> 8), byte(seed)}
}
