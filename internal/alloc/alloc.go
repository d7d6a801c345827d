// Package alloc reads references to allocated addresses, and replaces them by the
// addresses. A value may have one in place of an address: "alloc:<network>",
// "alloc:<network>/<interface>", "alloc:<network>/GW", "alloc:<network>/<interface>/GW".
//
// A value with a reference depends on the allocation, so it is PENDING until the address
// is known, and is updated when the address changes. The package only reads text; package
// netalloc has the descriptors.
package alloc

import "strings"

const (
	mark    = "alloc:"
	gateway = "GW"
)

// A Ref refers to the address of an interface in a network. The zero Ref refers to
// nothing.
type Ref struct {
	Network   string
	Interface string // empty: the interface of the value with the reference
	Gateway   bool   // refers to the gateway of the address
}

// Is reports whether s is a reference, well-formed or not.
func Is(s string) bool { return strings.HasPrefix(s, mark) }

// Parse reads s, which may be any text; ok is false if it is no reference.
func Parse(s string) (ref Ref, ok bool) {
	rest, ok := strings.CutPrefix(s, mark)
	if !ok {
		return Ref{}, false
	}
	rest, ref.Gateway = strings.CutSuffix(rest, "/"+gateway)
	ref.Network, ref.Interface, ok = strings.Cut(rest, "/")
	if ref.Network == "" || ok && ref.Interface == "" {
		return Ref{}, false
	}
	return ref, true
}

// String returns the reference in the form that Parse reads.
func (r Ref) String() string {
	s := mark + r.Network
	if r.Interface != "" {
		s += "/" + r.Interface
	}
	if r.Gateway {
		s += "/" + gateway
	}
	return s
}

// Key returns the key of the allocation of r. iface is the interface of the value with the
// reference.
func (r Ref) Key(iface string) string {
	return "config/netalloc/v1/ip/" + r.name(iface)
}

// name returns the name of the allocation: the network and the interface.
func (r Ref) name(iface string) string {
	return "network/" + r.Network + "/interface/" + r.InterfaceOr(iface)
}

// InterfaceOr returns the interface of r, or iface if r names none.
func (r Ref) InterfaceOr(iface string) string {
	if r.Interface != "" {
		return r.Interface
	}
	return iface
}

// NeighGateways begins the keys of NeighGateway.
const NeighGateways = "netalloc/neigh-gw/"

// NeighGateway returns the key of an allocated gateway that is a neighbour on the
// interface.
func NeighGateway(network, iface string) string {
	return NeighGateways + Ref{Network: network}.name(iface)
}
