package ip

import (
	"net/netip"

	"go.fd.io/govpp/binapi/fib_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// An ownRoute is a route that an interface's address has made.
type ownRoute struct {
	table  Key
	prefix netip.Prefix
}

// updateConnected withdraws the routes of an interface's addresses, and declares them
// again if the interface is up. An interface that is down keeps its addresses and has none
// of these routes.
func (p *IP) updateConnected(i *core.Interface) {
	for _, own := range p.connected[i] {
		if t := p.tables.byKey[own.table]; t != nil {
			t.routes.declare(own.prefix, connected, nil)
		}
	}
	delete(p.connected, i)
	if !i.IsUp() {
		return
	}
	for _, a := range i.Addresses {
		key := keyOf(i, a.Addr().Is6())
		t := p.tables.byKey[key]
		if t == nil {
			continue
		}
		for _, d := range connectedRoutes(a, i.Index) {
			p.connected[i] = append(p.connected[i], ownRoute{key, d.prefix})
			t.routes.declare(d.prefix, connected, &d)
		}
	}
}

// connectedRoutes returns the routes of an address. For 10.0.0.1/24 they are the network,
// which VPP shows with the host bits of the address, the address itself as a local route,
// and drop routes for both ends of the network. IPv6 has no drop routes and shows the
// network without host bits. A /31 has a route to the peer instead of drop routes. A /32
// has the local route only.
func connectedRoutes(a netip.Prefix, index uint32) []declaration {
	host := netip.PrefixFrom(a.Addr(), a.Addr().BitLen())
	via := func(kind fib_types.FibPathType, index uint32, next netip.Addr) []fib_types.FibPath {
		p := fib_types.FibPath{SwIfIndex: index, Weight: 1, Type: kind}
		if a.Addr().Is6() {
			p.Proto = fib_types.FIB_API_PATH_NH_PROTO_IP6
		}
		if next.IsValid() {
			p.Nh.Address = vppwire.Address(next).Un
		}
		return []fib_types.FibPath{p}
	}
	local := declaration{host, via(fib_types.FIB_API_PATH_TYPE_LOCAL, index, a.Addr())}
	if a.IsSingleIP() {
		return []declaration{local}
	}
	network := a
	if a.Addr().Is6() {
		network = a.Masked()
	}
	out := []declaration{{network, via(fib_types.FIB_API_PATH_TYPE_NORMAL, index, netip.Addr{})}, local}
	if a.Addr().Is6() {
		return out
	}
	first, last := a.Masked().Addr(), lastOf(a)
	if a.Bits() == 31 {
		peer := first
		if a.Addr() == first {
			peer = last
		}
		return append(out, declaration{netip.PrefixFrom(peer, 32), via(fib_types.FIB_API_PATH_TYPE_NORMAL, index, peer)})
	}
	for _, end := range []netip.Addr{first, last} {
		if end != a.Addr() {
			drop := via(fib_types.FIB_API_PATH_TYPE_DROP, core.None, netip.Addr{})
			out = append(out, declaration{netip.PrefixFrom(end, 32), drop})
		}
	}
	return out
}

// lastOf returns the last address of an IPv4 network.
func lastOf(p netip.Prefix) netip.Addr {
	four := p.Masked().Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		four[bit/8] |= 0x80 >> (bit % 8)
	}
	return netip.AddrFrom4(four)
}
