package iface

import (
	"maps"
	"math"
	"net/netip"
	"slices"
)

// conflictsOf returns, by index, the first prefix that stands before another and that VPP does
// not have beside it on one interface: it has two of one network, but none whose networks are
// within each other (VPP ip4_forward.c, ip4_add_del_interface_address_internal), and none twice.
// Prefixes that are not valid are left out. It sorts the networks, so that what each is within, and
// what is within it, follows from their order; the time is proportional to n log n.
func conflictsOf(all []netip.Prefix) map[int]int {
	rivals, exact, networks := map[int]int{}, map[netip.Prefix]int{}, map[netip.Prefix]*network{}
	for i, p := range all {
		if !p.IsValid() {
			continue
		}
		if first, twice := exact[p]; twice {
			rivals[i] = first
		} else {
			exact[p] = i
		}
		if masked := p.Masked(); networks[masked] == nil {
			networks[masked] = &network{Prefix: masked, first: i, around: nobody, within: nobody}
		}
	}
	relate(networks)
	for i, p := range all {
		if !p.IsValid() {
			continue
		}
		n := networks[p.Masked()]
		before := min(n.around, n.within)
		if same, twice := rivals[i]; before < i && (!twice || before < same) {
			rivals[i] = before
		}
	}
	return rivals
}

// nobody is behind the index of any prefix.
const nobody = math.MaxInt

// A network is that of one or more prefixes.
type network struct {
	netip.Prefix
	first          int // index of its first prefix
	around, within int // of the first prefix of all networks that it is within, and that are within it
}

// relate finds out which networks are within others. kinds.Sorted by address and then by length, a
// network comes right behind those that it is within.
func relate(networks map[netip.Prefix]*network) {
	var open []*network // each within the one before
	leave := func() {
		last := open[len(open)-1]
		if open = open[:len(open)-1]; len(open) > 0 {
			above := open[len(open)-1]
			above.within = min(above.within, last.first, last.within)
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(networks), netip.Prefix.Compare) {
		n := networks[p]
		for len(open) > 0 && !open[len(open)-1].Contains(p.Addr()) {
			leave()
		}
		if len(open) > 0 {
			above := open[len(open)-1]
			n.around = min(above.around, above.first)
		}
		open = append(open, n)
	}
	for len(open) > 0 {
		leave()
	}
}
