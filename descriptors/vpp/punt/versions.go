package punt

import (
	"go.fd.io/govpp/binapi/ip_types"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/proto/ligato/vpp/punt"
)

// ipv4 and ipv6 are the indexes of a pair.
const (
	ipv4 = iota
	ipv6
)

// versionsOf returns the IP versions of a protocol; an unknown one has none.
func versionsOf(l3 punt.L3Protocol) []int {
	switch l3 {
	case punt.L3Protocol_IPV4:
		return []int{ipv4}
	case punt.L3Protocol_IPV6:
		return []int{ipv6}
	case punt.L3Protocol_ALL:
		return []int{ipv4, ipv6}
	case punt.L3Protocol_UNDEFINED_L3:
	}
	return nil
}

// partsOf returns a value for both IP versions as one for each: VPP makes and removes them one after the other.
func partsOf[V proto.Message](v V, l3 punt.L3Protocol, set func(V, punt.L3Protocol)) (out []V) {
	if l3 != punt.L3Protocol_ALL {
		return nil
	}
	for _, one := range []punt.L3Protocol{punt.L3Protocol_IPV4, punt.L3Protocol_IPV6} {
		part := proto.CloneOf(v)
		set(part, one)
		out = append(out, part)
	}
	return out
}

// family is the address family of an IP version in messages.
func family(version int) ip_types.AddressFamily { return ip_types.AddressFamily(version) }

// A pair is VPP's state for both IP versions. nil: VPP has none, or it is taken.
type pair[T comparable] [2]*T

// take takes the state for a declared value out of the pair. ok is false unless all its IP
// versions have the same state: otherwise the value counts as missing, and is made again.
func (p *pair[T]) take(l3 punt.L3Protocol) (state T, ok bool) {
	versions := versionsOf(l3)
	for i, version := range versions {
		one := p[version]
		p[version] = nil
		switch {
		case i == 0 && one != nil:
			state, ok = *one, true
		case one == nil || *one != state:
			ok = false
		}
	}
	return state, ok
}

// rest returns the state that no declared value has taken: for ALL, if both IP versions are
// equal.
func (p *pair[T]) rest() map[punt.L3Protocol]T {
	if p[ipv4] != nil && p[ipv6] != nil && *p[ipv4] == *p[ipv6] {
		return map[punt.L3Protocol]T{punt.L3Protocol_ALL: *p[ipv4]}
	}
	out := map[punt.L3Protocol]T{}
	for version, l3 := range []punt.L3Protocol{punt.L3Protocol_IPV4, punt.L3Protocol_IPV6} {
		if p[version] != nil {
			out[l3] = *p[version]
		}
	}
	return out
}
