package ip

import (
	"net/netip"
	"slices"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// A network is the network of an interface's address.
type network struct {
	netip.Prefix
	of *core.Interface
}

// networks are the networks of one table, sorted by address. They do not overlap, except
// for equal networks of one interface. So a binary search finds every overlap.
type networks []network

// first returns the position of the first network that overlaps with p, or the position to
// insert p at.
func (n networks) first(p netip.Prefix) int {
	at, _ := slices.BinarySearchFunc(n, p, func(one network, p netip.Prefix) int {
		if one.Overlaps(p) {
			return 0
		}
		return one.Addr().Compare(p.Addr())
	})
	return at
}

// place returns the position to insert an address of i at. It returns false if the address
// overlaps with an existing one, except for another address of the same network of the
// same interface.
func (n networks) place(i *core.Interface, p netip.Prefix) (at int, free bool) {
	at = n.first(p)
	for _, one := range n[at:] {
		if !one.Overlaps(p) {
			break
		}
		if one.of != i || one.Bits() != p.Bits() || one.Addr() == p.Addr() {
			return at, false
		}
	}
	return at, true
}

// forgetNetwork removes the network of an address of i.
func (p *IP) forgetNetwork(i *core.Interface, a netip.Prefix) {
	key := keyOf(i, a.Addr().Is6())
	at := p.networks[key].first(a)
	for p.networks[key][at] != (network{a, i}) {
		at++
	}
	p.networks[key] = slices.Delete(p.networks[key], at, at+1)
}
