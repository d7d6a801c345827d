package vppsim

import (
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"

	"github.com/keyplane/keyplane/internal/vppwire"
)

func addressMessages() []entry {
	type index = interface_types.InterfaceIndex
	return []entry{
		on(func(q *vppif.SwInterfaceAddDelAddress) index { return q.SwIfIndex }, changeAddress),
		dump(dumpAddresses),
		on(func(q *vppif.SwInterfaceSetTable) index { return q.SwIfIndex }, setTable),
		call(func(w *world, q *vppif.SwInterfaceGetTable, r *vppif.SwInterfaceGetTableReply) errno {
			i, errno := w.at(q.SwIfIndex)
			if r.VrfID = none; errno == ok {
				r.VrfID = i.table[family(q.IsIPv6)]
			}
			return errno
		}),
		on(func(q *ip.SwInterfaceIP6GetLinkLocalAddress) index { return q.SwIfIndex }, linkLocalOf),
		call(setUnnumbered),
		dump(func(w *world, q *ip.IPUnnumberedDump, yield func(ip.IPUnnumberedDetails)) {
			for _, i := range w.interfaces.sorted() {
				lender, borrows := w.unnumbered[i.index]
				if borrows && (uint32(q.SwIfIndex) == none || uint32(q.SwIfIndex) == i.index) {
					yield(ip.IPUnnumberedDetails{SwIfIndex: index(i.index), IPSwIfIndex: index(lender)})
				}
			}
		}),
	}
}

// family is where things of an IP version are in a pair.
func family(ipv6 bool) int {
	if ipv6 {
		return 1
	}
	return 0
}

func changeAddress(w *world, i *iface, q *vppif.SwInterfaceAddDelAddress, _ *vppif.SwInterfaceAddDelAddressReply) errno {
	p := vppwire.PrefixOf(q.Prefix)
	switch {
	case i.device == nil:
		return api.UNSUPPORTED
	case q.DelAll:
		w.clearAddresses(i)
		return ok
	case p.Addr().Is6() && p.Addr().IsLinkLocalUnicast():
		return i.changeLinkLocal(p, q.IsAdd)
	case q.IsAdd:
		return w.addAddress(i, p)
	}
	if at := slices.IndexFunc(i.addresses, func(o netip.Prefix) bool { return o.Addr() == p.Addr() }); at >= 0 && i.addresses[at] != p {
		i.leak(i.addresses[at])
	}
	return w.deleteAddress(i, p.Addr())
}

// leak has nobody take back the routes of an address, but that to the address itself: so
// it is when it is deleted with another length.
func (i *iface) leak(p netip.Prefix) {
	for _, c := range connectedOf(p, i.index) {
		if c.prefix.Addr() != p.Addr() || !c.prefix.IsSingleIP() {
			i.claimed = slices.DeleteFunc(i.claimed, func(own ownClaim) bool { return own.prefix == c.prefix })
		}
	}
}

// changeLinkLocal: an interface has one, which dumps do not show and nothing deletes.
func (i *iface) changeLinkLocal(p netip.Prefix, add bool) errno {
	switch {
	case !add && p.Addr() == i.linkLocal:
		return api.ADDRESS_NOT_DELETABLE
	case !add:
		return api.ADDRESS_NOT_FOUND_FOR_INTERFACE
	case p.Bits() != 128:
		return api.ADDRESS_LENGTH_MISMATCH
	}
	i.linkLocal = p.Addr()
	return ok
}

// linkLocalOf: one that has an address of IPv6, but was given none of the link, makes that of its MAC address
// (VPP ip6_link.c, ip6_link_enable).
func linkLocalOf(_ *world, i *iface, _ *ip.SwInterfaceIP6GetLinkLocalAddress, r *ip.SwInterfaceIP6GetLinkLocalAddressReply) errno {
	has := func(p netip.Prefix) bool { return p.Addr().Is6() }
	switch {
	case i.linkLocal.IsValid():
		r.IP = i.linkLocal.As16()
	case !slices.ContainsFunc(i.addresses, has):
		return api.IP6_NOT_ENABLED
	default:
		m := i.mac
		r.IP = [16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]}
	}
	return ok
}

// addAddress refuses what overlaps with an address of the same table, unless that is on
// the same interface and of the same length.
func (w *world) addAddress(i *iface, p netip.Prefix) errno {
	inUse := api.ADDRESS_IN_USE
	if p.Addr().Is6() {
		inUse = api.DUPLICATE_IF_ADDRESS
	}
	key := tableKey{p.Addr().Is6(), i.table[family(p.Addr().Is6())]}
	at, free := w.nets[key].place(i, p)
	if !free {
		return inUse
	}
	if _, borrows := w.unnumbered[i.index]; borrows {
		return ok // dumps do not show it
	}
	i.addresses = append(i.addresses, p)
	w.nets[key] = slices.Insert(w.nets[key], at, network{p, i})
	w.connected(i)
	return ok
}

// deleteAddress does not look at the length.
func (w *world) deleteAddress(i *iface, a netip.Addr) errno {
	at := slices.IndexFunc(i.addresses, func(p netip.Prefix) bool { return p.Addr() == a })
	if at < 0 {
		return api.ADDRESS_NOT_FOUND_FOR_INTERFACE
	}
	w.forgetNet(i, i.addresses[at])
	i.addresses = slices.Delete(i.addresses, at, at+1)
	w.connected(i)
	return ok
}

func (w *world) clearAddresses(i *iface) {
	for _, p := range i.addresses {
		w.forgetNet(i, p)
	}
	i.addresses = nil
	w.connected(i)
}

// dumpAddresses yields nothing for an interface that is not there, and for ~0.
func dumpAddresses(w *world, q *ip.IPAddressDump, yield func(ip.IPAddressDetails)) {
	i, errno := w.at(q.SwIfIndex)
	if errno != ok {
		return
	}
	for _, p := range i.addresses {
		if p.Addr().Is6() == q.IsIPv6 {
			yield(ip.IPAddressDetails{SwIfIndex: q.SwIfIndex, Prefix: vppwire.AddressWithPrefix(p)})
		}
	}
}

func setTable(w *world, i *iface, q *vppif.SwInterfaceSetTable, _ *vppif.SwInterfaceSetTableReply) errno {
	f := family(q.IsIPv6)
	hasAddress := slices.ContainsFunc(i.addresses, func(p netip.Prefix) bool { return p.Addr().Is6() == q.IsIPv6 })
	switch {
	case w.tables.find(q.IsIPv6, q.VrfID) == nil:
		return api.NO_SUCH_FIB
	case hasAddress:
		return api.ADDRESS_FOUND_FOR_INTERFACE
	}
	i.table[f] = q.VrfID
	w.tables.unbound(w)
	return ok
}

// setUnnumbered names the lender first, and the borrower as the unnumbered one. A
// borrower loses its own addresses.
func setUnnumbered(w *world, q *vppif.SwInterfaceSetUnnumbered, _ *vppif.SwInterfaceSetUnnumberedReply) errno {
	borrower, errno := w.at(q.UnnumberedSwIfIndex)
	if errno != ok {
		return errno
	}
	if _, errno := w.at(q.SwIfIndex); errno != ok {
		return api.INVALID_SW_IF_INDEX_2
	}
	if !q.IsAdd {
		delete(w.unnumbered, borrower.index)
		return ok
	}
	borrower.claimed = nil // nobody takes back the routes to its addresses
	w.clearAddresses(borrower)
	w.unnumbered[borrower.index] = uint32(q.SwIfIndex)
	return ok
}
