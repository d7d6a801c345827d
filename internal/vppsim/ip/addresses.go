package ip

import (
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// addressMessages registers the messages of addresses and of the tables of interfaces.
func (p *IP) addressMessages() {
	p.vpp.Register(core.Plugin{Messages: []core.Message{
		core.On(p.vpp, func(q *vppif.SwInterfaceAddDelAddress) index { return q.SwIfIndex }, p.changeAddress),
		core.Dump(p.dumpAddresses),
		core.On(p.vpp, func(q *vppif.SwInterfaceSetTable) index { return q.SwIfIndex }, p.setTable),
		core.Call(p.tableOf),
		core.On(p.vpp, func(q *ip.SwInterfaceIP6GetLinkLocalAddress) index { return q.SwIfIndex }, p.linkLocal.get),
	}})
}

// changeAddress adds or deletes an address. DelAll deletes all addresses and adds none,
// even in a request to add. A delete ignores the prefix length. local0 has no addresses.
func (p *IP) changeAddress(i *core.Interface, q *vppif.SwInterfaceAddDelAddress, _ *vppif.SwInterfaceAddDelAddressReply) core.Errno {
	prefix := vppwire.PrefixOf(q.Prefix)
	switch {
	case i.Device == nil:
		return api.UNSUPPORTED
	case q.DelAll:
		p.clearAddresses(i)
		return core.OK
	case prefix.Addr().Is6() && prefix.Addr().IsLinkLocalUnicast():
		return p.linkLocal.change(i, prefix, q.IsAdd)
	case q.IsAdd:
		return p.AddAddress(i, prefix)
	}
	at := slices.IndexFunc(i.Addresses, func(o netip.Prefix) bool { return o.Addr() == prefix.Addr() })
	if at >= 0 && i.Addresses[at] != prefix {
		p.leak(i, i.Addresses[at])
	}
	return p.DeleteAddress(i, prefix.Addr())
}

// leak makes the routes of an address stay for ever, except the route to the address
// itself. VPP does that when an address is deleted with another prefix length.
func (p *IP) leak(i *core.Interface, a netip.Prefix) {
	for _, c := range connectedRoutes(a, i.Index) {
		if c.prefix.Addr() == a.Addr() && c.prefix.IsSingleIP() {
			continue
		}
		p.connected[i] = slices.DeleteFunc(p.connected[i], func(own ownRoute) bool { return own.prefix == c.prefix })
	}
}

// AddAddress adds an address. It is refused if it overlaps with an address of the same
// table, except for another address of the same network on the same interface. IPv4 and
// IPv6 refuse with different return values.
func (p *IP) AddAddress(i *core.Interface, a netip.Prefix) core.Errno {
	inUse := api.ADDRESS_IN_USE
	if a.Addr().Is6() {
		inUse = api.DUPLICATE_IF_ADDRESS
	}
	key := keyOf(i, a.Addr().Is6())
	at, free := p.networks[key].place(i, a)
	if !free {
		return inUse
	}
	if _, borrows := p.unnumbered[i.Index]; borrows {
		return core.OK // VPP accepts it, and no dump shows it
	}
	i.Addresses = append(i.Addresses, a)
	p.networks[key] = slices.Insert(p.networks[key], at, network{a, i})
	p.updateConnected(i)
	return core.OK
}

// DeleteAddress deletes an address, whatever its prefix length is.
func (p *IP) DeleteAddress(i *core.Interface, a netip.Addr) core.Errno {
	at := slices.IndexFunc(i.Addresses, func(o netip.Prefix) bool { return o.Addr() == a })
	if at < 0 {
		return api.ADDRESS_NOT_FOUND_FOR_INTERFACE
	}
	p.forgetNetwork(i, i.Addresses[at])
	i.Addresses = slices.Delete(i.Addresses, at, at+1)
	p.updateConnected(i)
	return core.OK
}

// clearAddresses removes all addresses with their connected routes.
func (p *IP) clearAddresses(i *core.Interface) {
	for _, a := range i.Addresses {
		p.forgetNetwork(i, a)
	}
	i.Addresses = nil
	p.updateConnected(i)
}

// dumpAddresses lists the addresses of one interface. An unknown index gives none, and so
// does ~0.
func (p *IP) dumpAddresses(q *ip.IPAddressDump, yield func(ip.IPAddressDetails)) {
	i, errno := p.vpp.At(q.SwIfIndex)
	if errno != core.OK {
		return
	}
	for _, a := range i.Addresses {
		if a.Addr().Is6() == q.IsIPv6 {
			yield(ip.IPAddressDetails{SwIfIndex: q.SwIfIndex, Prefix: vppwire.AddressWithPrefix(a)})
		}
	}
}

// keyOf returns the table of an interface.
func keyOf(i *core.Interface, ipv6 bool) Key { return Key{ipv6, i.Tables[Family(ipv6)]} }

// setTable binds an interface to a table. VPP refuses that while the interface has or borrows
// an address of the same IP version, even for the present table.
func (p *IP) setTable(i *core.Interface, q *vppif.SwInterfaceSetTable, _ *vppif.SwInterfaceSetTableReply) core.Errno {
	all := i.Addresses
	if lender, borrows := p.unnumbered[i.Index]; borrows && p.vpp.Interface(lender) != nil {
		all = p.vpp.Interface(lender).Addresses
	}
	hasAddress := slices.ContainsFunc(all, func(a netip.Prefix) bool { return a.Addr().Is6() == q.IsIPv6 })
	switch {
	case !p.HasTable(q.IsIPv6, q.VrfID):
		return api.NO_SUCH_FIB
	case hasAddress:
		return api.ADDRESS_FOUND_FOR_INTERFACE
	}
	i.Tables[Family(q.IsIPv6)] = q.VrfID
	p.Collect()
	return core.OK
}

// tableOf returns the table of an interface; ~0 together with an error.
func (p *IP) tableOf(q *vppif.SwInterfaceGetTable, r *vppif.SwInterfaceGetTableReply) core.Errno {
	r.VrfID = core.None
	i, errno := p.vpp.At(q.SwIfIndex)
	if errno == core.OK {
		r.VrfID = i.Tables[Family(q.IsIPv6)]
	}
	return errno
}
