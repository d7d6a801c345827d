package iface

import (
	"maps"
	"math"
	"net/netip"
	"slices"
)

// conflictsOf finds prefixes that VPP does not accept together on one interface. VPP
// accepts two addresses of one network. It refuses an address twice, and a network that
// contains another one (VPP ip4_forward.c, ip4_add_del_interface_address_internal).
//
// The result maps the index of a prefix to the first earlier prefix that it conflicts
// with. Invalid prefixes are ignored. The networks are sorted, so that the networks that
// contain each other are neighbours; the time is O(n log n).
func conflictsOf(all []netip.Prefix) map[int]int {
	// Repetitions first: an equal prefix is a clearer error than one in the same network.
	overlaps, exact, networks := map[int]int{}, map[netip.Prefix]int{}, map[netip.Prefix]*network{}
	for i, p := range all {
		if !p.IsValid() {
			continue
		}
		if first, twice := exact[p]; twice {
			overlaps[i] = first
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
		if same, twice := overlaps[i]; before < i && (!twice || before < same) {
			overlaps[i] = before
		}
	}
	return overlaps
}

// nobody is larger than the index of any prefix.
const nobody = math.MaxInt

// A network is the network of one or more prefixes.
type network struct {
	netip.Prefix
	first          int // index of its first prefix
	around, within int // indexes of the first prefix in a network that contains it, and in one that it contains
}

// relate finds the networks that contain others. Sorted by address and then by length, a
// network follows the networks that contain it.
func relate(networks map[netip.Prefix]*network) {
	var open []*network // each is contained in the one before
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
