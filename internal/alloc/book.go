package alloc

import "net/netip"

// Descriptor is the name of the descriptor that keeps allocations. Values with references
// are read back after it.
const Descriptor = "netalloc-ip-address"

// An Allocation is the address of an interface in a network, and its gateway (zero: none).
// Both have a prefix length.
type Allocation struct{ Address, Gateway netip.Prefix }

// A Book contains the present allocations, by "network/<network>/interface/<interface>".
type Book interface {
	Get(name string) (Allocation, bool)
}

// After returns the descriptors that are read back before values with references: the one
// of allocations, and others. If b is nil, there are no allocations, and After returns
// only others.
func After(b Book, others ...string) []string {
	if b == nil {
		return others
	}
	return append([]string{Descriptor}, others...)
}

// find returns the allocation for the reference text in a value of the interface iface; b
// may be nil.
func find(b Book, text, iface string) (netip.Prefix, bool) {
	ref, ok := Parse(text)
	if !ok || b == nil {
		return netip.Prefix{}, false
	}
	a, ok := b.Get(ref.name(iface))
	if ref.Gateway {
		return a.Gateway, ok && a.Gateway.IsValid()
	}
	return a.Address, ok
}

// Address replaces a reference in a value of the interface iface by the address with its
// prefix length. Other text, and a reference that b does not contain, is returned
// unchanged.
func Address(b Book, text, iface string) string {
	if p, ok := find(b, text, iface); ok {
		return p.String()
	}
	return text
}

// Network is like Address, but returns the network of the address.
func Network(b Book, text, iface string) string {
	if p, ok := find(b, text, iface); ok {
		return p.Masked().String()
	}
	return text
}

// Host is like Address, but without the prefix length.
func Host(b Book, text, iface string) string {
	if p, ok := find(b, text, iface); ok {
		return p.Addr().String()
	}
	return text
}
