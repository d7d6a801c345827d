// Package alloc reads references to allocated addresses, which may stand where a
// value has an address: "alloc:<network>", "alloc:<network>/<interface>",
// "alloc:<network>/GW", "alloc:<network>/<interface>/GW"; and puts the address in their place.
package alloc

import "strings"

const (
	mark    = "alloc:"
	gateway = "GW"
)

// A Ref refers to the address that a network has for an interface.
type Ref struct {
	Network   string
	Interface string // empty: that of the value the reference is in
	Gateway   bool   // not the address itself but its gateway
}

// Is tells a reference, well-formed or not, from an address.
func Is(s string) bool { return strings.HasPrefix(s, mark) }

// Parse reads s, which may be anything; ok tells whether it is a reference.
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

// String is the reference as Parse reads it.
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

// Key is the key of the allocation that r, in a value of the given interface, refers to.
func (r Ref) Key(iface string) string {
	return "config/netalloc/v1/ip/" + r.name(iface)
}

func (r Ref) name(iface string) string {
	return "network/" + r.Network + "/interface/" + r.InterfaceOr(iface)
}

// InterfaceOr is the interface of r, or iface where it names none.
func (r Ref) InterfaceOr(iface string) string {
	if r.Interface != "" {
		return r.Interface
	}
	return iface
}

// NeighGateways begins the keys of NeighGateway.
const NeighGateways = "netalloc/neigh-gw/"

// NeighGateway is the key of an allocated gateway that is a neighbour on the interface.
func NeighGateway(network, iface string) string {
	return NeighGateways + Ref{Network: network}.name(iface)
}
