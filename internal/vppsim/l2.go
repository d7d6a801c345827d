package vppsim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// mostBridges is the largest ID of a bridge domain.
const mostBridges = 1<<24 - 1

// A bridge is a bridge domain.
type bridge struct {
	id      uint32
	tag     string
	flags   l2.BdFlags
	macAge  uint8
	members []member // in the order in which they came
	arps    []l2.BdIPMac
	slot    *fdb
}

type member struct {
	index uint32
	port  l2.L2PortType
	shg   uint8
}

// An fdb is the L2 FIB of a bridge domain. It outlives the bridge domain: the next one
// takes it over.
type fdb struct {
	owner   *bridge // nil: it was deleted
	entries map[ethernet_types.MacAddress]l2.L2FibTableDetails
}

// switching is all of layer 2.
type switching struct {
	byID     map[uint32]*bridge
	fdbs     []*fdb
	xconnect map[uint32]uint32      // transmitting by receiving interface
	rewrites map[uint32]vlanRewrite // of tags; they outlive an interface that is in no bridge domain
	allotted uint32                 // IDs that VPP has chosen
}

func (all *switching) init() {
	all.byID, all.xconnect, all.rewrites = map[uint32]*bridge{}, map[uint32]uint32{}, map[uint32]vlanRewrite{}
	all.add(0, l2.BRIDGE_API_FLAG_NONE) // it is there, and never shown
}

// add makes a bridge domain, with the L2 FIB that the last deleted one has left.
func (all *switching) add(id uint32, flags l2.BdFlags) *bridge {
	b := &bridge{id: id, flags: flags}
	for _, left := range slices.Backward(all.fdbs) {
		if left.owner == nil {
			b.slot = left
			break
		}
	}
	if b.slot == nil {
		b.slot = &fdb{entries: map[ethernet_types.MacAddress]l2.L2FibTableDetails{}}
		all.fdbs = append(all.fdbs, b.slot)
	}
	b.slot.owner = b
	all.byID[id] = b
	return b
}

// bridges are all that are shown, by ID.
func (all *switching) bridges() []*bridge {
	out := slices.SortedFunc(maps.Values(all.byID), func(a, b *bridge) int { return cmp.Compare(a.id, b.id) })
	return slices.DeleteFunc(out, func(b *bridge) bool { return b.id == 0 })
}

// toL3 has an interface leave layer 2, and all that is known of it there.
func (all *switching) toL3(index uint32) {
	all.leave(index)
	delete(all.xconnect, index)
	delete(all.rewrites, index)
}

// leave takes an interface out of the bridge domain it is in.
func (all *switching) leave(index uint32) {
	for _, b := range all.byID {
		at := slices.IndexFunc(b.members, func(m member) bool { return m.index == index })
		if at < 0 {
			continue
		}
		if b.members[at].port == l2.L2_API_PORT_TYPE_BVI {
			maps.DeleteFunc(b.slot.entries, func(_ ethernet_types.MacAddress, e l2.L2FibTableDetails) bool {
				return e.BviMac && uint32(e.SwIfIndex) == index
			})
		}
		b.members = slices.Delete(b.members, at, at+1)
	}
}

// at finds a bridge domain that can be changed.
func (all *switching) at(id uint32) (*bridge, errno) {
	b := all.byID[id]
	switch {
	case id == 0:
		return nil, api.BD_NOT_MODIFIABLE
	case b == nil:
		return nil, api.NO_SUCH_ENTRY
	}
	return b, ok
}

func l2Messages() []entry {
	type index = interface_types.InterfaceIndex
	return []entry{
		call(func(w *world, q *l2.BridgeDomainAddDel, _ *l2.BridgeDomainAddDelReply) errno {
			if q.IsAdd && q.BdID > mostBridges {
				return api.BD_ID_EXCEED_MAX
			}
			_, errno := w.changeBridge(l2.BridgeDomainAddDelV2(*q))
			return errno
		}),
		call(func(w *world, q *l2.BridgeDomainAddDelV2, r *l2.BridgeDomainAddDelV2Reply) (e errno) {
			r.BdID, e = w.changeBridge(*q)
			return e
		}),
		call(func(w *world, q *l2.BridgeFlags, r *l2.BridgeFlagsReply) errno {
			b, errno := w.l2.at(q.BdID)
			if errno != ok {
				return errno
			}
			if b.flags &^= q.Flags; q.IsSet {
				b.flags |= q.Flags & 63
			}
			r.ResultingFeatureBitmap = uint32(b.flags)
			return ok
		}),
		dump(dumpBridges),
		on(func(q *l2.SwInterfaceSetL2Bridge) index { return q.RxSwIfIndex }, setBridge),
		call(changeFIB),
		dump(func(w *world, q *l2.L2FibTableDump, yield func(l2.L2FibTableDetails)) {
			for _, f := range w.l2.fdbs {
				for _, e := range f.entries {
					e.BdID = none
					if f.owner != nil {
						e.BdID = f.owner.id
					}
					if q.BdID == none || q.BdID == e.BdID {
						yield(e)
					}
				}
			}
		}),
		call(changeARPTermination),
		dump(func(w *world, q *l2.BdIPMacDump, yield func(l2.BdIPMacDetails)) {
			for _, b := range w.l2.bridges() {
				for _, e := range b.arps {
					if q.BdID == none || q.BdID == b.id {
						yield(l2.BdIPMacDetails{Entry: e})
					}
				}
			}
		}),
		on(func(q *l2.SwInterfaceSetL2Xconnect) index { return q.RxSwIfIndex }, setXconnect),
		dump(func(w *world, _ *l2.L2XconnectDump, yield func(l2.L2XconnectDetails)) {
			for _, rx := range slices.Sorted(maps.Keys(w.l2.xconnect)) {
				yield(l2.L2XconnectDetails{RxSwIfIndex: index(rx), TxSwIfIndex: index(w.l2.xconnect[rx])})
			}
		}),
	}
}

// changeBridge makes a bridge domain or deletes it. One that is there stays as it is.
func (w *world) changeBridge(q l2.BridgeDomainAddDelV2) (uint32, errno) {
	if !q.IsAdd {
		b, errno := w.l2.at(q.BdID)
		if errno == ok && len(b.members) > 0 {
			errno = api.BD_IN_USE
		}
		if errno == ok {
			b.slot.owner = nil
			delete(w.l2.byID, q.BdID)
		}
		return q.BdID, errno
	}
	if q.BdID == none {
		q.BdID = w.l2.choose()
	}
	if w.l2.byID[q.BdID] != nil {
		return q.BdID, api.BD_ALREADY_EXISTS
	}
	b := w.l2.add(q.BdID, flagsOf(q))
	b.tag, b.macAge = q.BdTag[:min(len(q.BdTag), 63)], q.MacAge
	return q.BdID, ok
}

// choose is an ID that looks as random as VPP's.
func (all *switching) choose() uint32 {
	for {
		all.allotted++
		if id := all.allotted * 7271263 & mostBridges; all.byID[id] == nil {
			return id
		}
	}
}

func flagsOf(q l2.BridgeDomainAddDelV2) (flags l2.BdFlags) {
	for _, one := range []struct {
		on   bool
		flag l2.BdFlags
	}{
		{q.Flood, l2.BRIDGE_API_FLAG_FLOOD}, {q.UuFlood, l2.BRIDGE_API_FLAG_UU_FLOOD}, {q.Forward, l2.BRIDGE_API_FLAG_FWD},
		{q.Learn, l2.BRIDGE_API_FLAG_LEARN}, {q.ArpTerm, l2.BRIDGE_API_FLAG_ARP_TERM}, {q.ArpUfwd, l2.BRIDGE_API_FLAG_ARP_UFWD},
	} {
		if one.on {
			flags |= one.flag
		}
	}
	return flags
}

// dumpBridges shows nothing when it is filtered by an interface.
func dumpBridges(w *world, q *l2.BridgeDomainDump, yield func(l2.BridgeDomainDetails)) {
	if uint32(q.SwIfIndex) != none && q.SwIfIndex != 0 {
		return
	}
	for _, b := range w.l2.bridges() {
		if q.BdID == none || q.BdID == b.id {
			yield(b.details())
		}
	}
}

func (b *bridge) details() l2.BridgeDomainDetails {
	has := func(f l2.BdFlags) bool { return b.flags&f != 0 }
	d := l2.BridgeDomainDetails{
		BdID: b.id, BdTag: b.tag, MacAge: b.macAge,
		Flood: has(l2.BRIDGE_API_FLAG_FLOOD), UuFlood: has(l2.BRIDGE_API_FLAG_UU_FLOOD), Forward: has(l2.BRIDGE_API_FLAG_FWD),
		Learn: has(l2.BRIDGE_API_FLAG_LEARN), ArpTerm: has(l2.BRIDGE_API_FLAG_ARP_TERM), ArpUfwd: has(l2.BRIDGE_API_FLAG_ARP_UFWD),
		BviSwIfIndex: interface_types.InterfaceIndex(none), UuFwdSwIfIndex: interface_types.InterfaceIndex(none),
	}
	for _, m := range b.members {
		one := l2.BridgeDomainSwIf{SwIfIndex: interface_types.InterfaceIndex(m.index), Shg: m.shg}
		switch m.port {
		case l2.L2_API_PORT_TYPE_UU_FWD:
			d.UuFwdSwIfIndex = one.SwIfIndex
		case l2.L2_API_PORT_TYPE_BVI:
			d.BviSwIfIndex = one.SwIfIndex
			d.SwIfDetails = slices.Insert(d.SwIfDetails, 0, one)
		default:
			d.SwIfDetails = append(d.SwIfDetails, one)
		}
	}
	return d
}

// ofMember are the flags of a bridge domain that is made for a member.
const ofMember = l2.BRIDGE_API_FLAG_LEARN | l2.BRIDGE_API_FLAG_FWD | l2.BRIDGE_API_FLAG_FLOOD | l2.BRIDGE_API_FLAG_UU_FLOOD

// setBridge moves an interface. A bridge domain that is not there is made; which one is to
// be left is not looked at. Who is refused as a BVI has left all the same.
func setBridge(w *world, i *iface, q *l2.SwInterfaceSetL2Bridge, _ *l2.SwInterfaceSetL2BridgeReply) errno {
	if q.PortType > l2.L2_API_PORT_TYPE_UU_FWD {
		return api.INVALID_VALUE
	}
	if !q.Enable {
		w.l2.toL3(i.index)
		return ok
	}
	b := w.l2.byID[q.BdID]
	if b == nil {
		b = w.l2.add(q.BdID, ofMember)
	}
	w.l2.leave(i.index)
	delete(w.l2.xconnect, i.index)
	if q.PortType == l2.L2_API_PORT_TYPE_BVI {
		if slices.ContainsFunc(b.members, func(m member) bool { return m.port == l2.L2_API_PORT_TYPE_BVI }) {
			return alreadyHasBVI
		}
		b.slot.entries[i.mac] = l2.L2FibTableDetails{Mac: i.mac, SwIfIndex: interface_types.InterfaceIndex(i.index), StaticMac: true, BviMac: true}
	}
	b.members = append(b.members, member{i.index, q.PortType, q.Shg})
	return ok
}

// alreadyHasBVI is VPP's BD_ALREADY_HAS_BVI.
const alreadyHasBVI errno = -152

func changeFIB(w *world, q *l2.L2fibAddDel, _ *l2.L2fibAddDelReply) errno {
	b := w.l2.byID[q.BdID]
	if b == nil {
		return api.NO_SUCH_ENTRY
	}
	if !q.IsAdd {
		if e, has := b.slot.entries[q.Mac]; !has || !e.FilterMac && e.SwIfIndex != q.SwIfIndex {
			return api.NO_SUCH_ENTRY
		}
		delete(b.slot.entries, q.Mac)
		return ok
	}
	if !q.FilterMac {
		inside := slices.ContainsFunc(b.members, func(m member) bool { return m.index == uint32(q.SwIfIndex) })
		if _, errno := w.at(q.SwIfIndex); errno != ok || !inside && b.id != 0 {
			return api.INVALID_SW_IF_INDEX
		}
	}
	e := l2.L2FibTableDetails{Mac: q.Mac, SwIfIndex: q.SwIfIndex, StaticMac: q.StaticMac || q.FilterMac, FilterMac: q.FilterMac, BviMac: q.BviMac}
	if q.FilterMac {
		e.SwIfIndex = interface_types.InterfaceIndex(none)
	}
	b.slot.entries[q.Mac] = e
	return ok
}

func changeARPTermination(w *world, q *l2.BdIPMacAddDel, _ *l2.BdIPMacAddDelReply) errno {
	b, errno := w.l2.at(q.Entry.BdID)
	if errno != ok {
		return errno
	}
	at := slices.IndexFunc(b.arps, func(e l2.BdIPMac) bool { return e.IP == q.Entry.IP })
	switch {
	case q.IsAdd && at >= 0:
		b.arps[at] = q.Entry
	case q.IsAdd:
		b.arps = append(b.arps, q.Entry)
		slices.SortStableFunc(b.arps, func(x, y l2.BdIPMac) int { return cmp.Compare(x.IP.Af, y.IP.Af) })
	case at < 0 || b.arps[at].Mac != q.Entry.Mac:
		return api.UNSPECIFIED
	default:
		b.arps = slices.Delete(b.arps, at, at+1)
	}
	return ok
}

func setXconnect(w *world, i *iface, q *l2.SwInterfaceSetL2Xconnect, _ *l2.SwInterfaceSetL2XconnectReply) errno {
	if !q.Enable {
		w.l2.toL3(i.index)
		return ok
	}
	if _, errno := w.at(q.TxSwIfIndex); errno != ok {
		return errno
	}
	w.l2.leave(i.index)
	w.l2.xconnect[i.index] = uint32(q.TxSwIfIndex)
	return ok
}

func (w *world) nameAt(index uint32) string {
	if i := w.interfaces.byIndex[index]; i != nil {
		return i.name
	}
	return fmt.Sprintf("DELETED(%d)", index)
}

func (w *world) showBridges() string {
	var b strings.Builder
	for _, one := range w.l2.bridges() {
		name, owner := nameIn(one.tag)
		fmt.Fprintf(&b, "%d %s flags %d age %d", one.id, name, one.flags, one.macAge)
		if owner != "" {
			b.WriteString(" of " + owner)
		}
		b.WriteByte('\n')
		for _, m := range one.members {
			fmt.Fprintf(&b, "  %s %s shg %d\n", w.nameAt(m.index), [...]string{"normal", "bvi", "uu-fwd"}[m.port], m.shg)
		}
		for _, e := range one.arps {
			fmt.Fprintf(&b, "  arp %s %s\n", vppwire.Addr(e.IP), e.Mac)
		}
	}
	for _, rx := range slices.Sorted(maps.Keys(w.l2.xconnect)) {
		fmt.Fprintf(&b, "xconnect %s to %s\n", w.nameAt(rx), w.nameAt(w.l2.xconnect[rx]))
	}
	return b.String()
}

func (w *world) showL2FIB() string {
	var lines []string
	for _, f := range w.l2.fdbs {
		for mac, e := range f.entries {
			bd := "deleted"
			if f.owner != nil {
				name, _ := nameIn(f.owner.tag)
				bd = fmt.Sprintf("%d %s", f.owner.id, name)
			}
			where := "drop"
			if !e.FilterMac {
				where = w.nameAt(uint32(e.SwIfIndex))
			}
			lines = append(lines, fmt.Sprintf("%s %s %s static %t bvi %t\n", bd, mac, where, e.StaticMac, e.BviMac))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
