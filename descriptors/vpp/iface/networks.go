package iface

import (
	"net/netip"
	"sync"

	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
)

// networks are the prefixes to which VPP makes routes by itself, since interfaces have addresses in
// them. Addresses that leave stay until all interfaces are read: a user asks VPP about each of them.
type networks struct {
	mu  sync.Mutex // guards all fields
	has map[netip.Prefix]bool
}

// add notes the routes of an address: to its network, to itself and, with IPv4, to the first and the
// last address of the network.
func (n *networks) add(address netip.Prefix) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.has == nil {
		n.has = map[netip.Prefix]bool{}
	}
	for _, p := range routesOf(address) {
		n.has[p] = true
	}
}

// learn notes all addresses that were read; whole: no other interface has one.
func (n *networks) learn(all []*kinds.Found, whole bool) {
	if whole {
		n.mu.Lock()
		n.has = nil
		n.mu.Unlock()
	}
	for _, f := range all {
		for _, address := range f.Addresses {
			n.add(address)
		}
	}
}

// contains tells whether VPP may have a route of its own to exactly this prefix.
func (n *networks) contains(p netip.Prefix) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.has[p]
}

// routesOf returns the prefixes of the routes that VPP makes with an address.
func routesOf(address netip.Prefix) []netip.Prefix {
	network := address.Masked()
	host := func(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
	out := []netip.Prefix{network, host(address.Addr())}
	if address.Addr().Is4() {
		last := network.Addr().As4()
		for bit := network.Bits(); bit < 32; bit++ {
			last[bit/8] |= 0x80 >> (bit % 8)
		}
		out = append(out, host(network.Addr()), host(netip.AddrFrom4(last)))
	}
	return out
}
