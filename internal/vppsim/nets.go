package vppsim

import (
	"net/netip"
	"slices"
)

// A network is that of an interface's address.
type network struct {
	netip.Prefix
	of *iface
}

// nets are those of a table, sorted. They do not overlap, but for those of one interface
// that are the same.
type nets []network

// first is where those begin that overlap with p, or where it would be put.
func (n nets) first(p netip.Prefix) int {
	at, _ := slices.BinarySearchFunc(n, p, func(one network, p netip.Prefix) int {
		if one.Overlaps(p) {
			return 0
		}
		return one.Addr().Compare(p.Addr())
	})
	return at
}

// place is where an address of i may be put, if nothing that overlaps is in its way: but
// another one of the same network of the same interface.
func (n nets) place(i *iface, p netip.Prefix) (at int, free bool) {
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

// forgetNet forgets the network of an address of i.
func (w *world) forgetNet(i *iface, p netip.Prefix) {
	key := tableKey{p.Addr().Is6(), i.table[family(p.Addr().Is6())]}
	at := w.nets[key].first(p)
	for w.nets[key][at] != (network{p, i}) {
		at++
	}
	w.nets[key] = slices.Delete(w.nets[key], at, at+1)
}
