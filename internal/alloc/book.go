package alloc

import "net/netip"

// Descriptor is the name of the descriptor that keeps allocations. What is read back with
// references in it is read after them.
const Descriptor = "netalloc-ip-address"

// An Allocation is an address that a network has given to an interface, and its gateway
// (zero: it has none), each with the length of its prefix.
type Allocation struct{ Address, Gateway netip.Prefix }

// A Book has the allocations that stand, by "network/<network>/interface/<interface>".
type Book interface {
	Get(name string) (Allocation, bool)
}

// After is what is read back before values with references that b resolves, followed by
// others; b may be nil, and then there is no such descriptor.
func After(b Book, others ...string) []string {
	if b == nil {
		return others
	}
	return append([]string{Descriptor}, others...)
}

// find is what text, in a value of the given interface, refers to; b may be nil.
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

// Address is text, with an address and the length of its prefix in place of a reference
// from a value of the given interface. A reference to what b does not have stays as it is.
func Address(b Book, text, iface string) string {
	if p, ok := find(b, text, iface); ok {
		return p.String()
	}
	return text
}

// Network is like Address, with the network that the address is in.
func Network(b Book, text, iface string) string {
	if p, ok := find(b, text, iface); ok {
		return p.Masked().String()
	}
	return text
}

// Host is like Address, without the length of the prefix.
func Host(b Book, text, iface string) string {
	if p, ok := find(b, text, iface); ok {
		return p.Addr().String()
	}
	return text
}
