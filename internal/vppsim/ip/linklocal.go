package ip

import (
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// linkLocals are the IPv6 link-local addresses that somebody has set. An interface has
// one, a new one replaces it, and nothing deletes it. Dumps of addresses do not show it.
type linkLocals map[*core.Interface]netip.Addr

// change sets the one link-local address of an interface. VPP replaces it, and never
// deletes it.
func (l linkLocals) change(i *core.Interface, a netip.Prefix, add bool) core.Errno {
	switch {
	case !add && a.Addr() == l[i]:
		return api.ADDRESS_NOT_DELETABLE
	case !add:
		return api.ADDRESS_NOT_FOUND_FOR_INTERFACE
	case a.Bits() != 128:
		return api.ADDRESS_LENGTH_MISMATCH
	}
	l[i] = a.Addr()
	return core.OK
}

// get returns the link-local address. An interface with another IPv6 address and no
// explicit link-local one derives it from its MAC address (VPP ip6_link.c,
// ip6_link_enable).
func (l linkLocals) get(i *core.Interface, _ *ip.SwInterfaceIP6GetLinkLocalAddress, r *ip.SwInterfaceIP6GetLinkLocalAddressReply) core.Errno {
	isIPv6 := func(a netip.Prefix) bool { return a.Addr().Is6() }
	switch {
	case l[i].IsValid():
		r.IP = l[i].As16()
	case !slices.ContainsFunc(i.Addresses, isIPv6):
		return api.IP6_NOT_ENABLED
	default:
		m := i.MAC
		r.IP = [16]byte{0: 0xfe, 1: 0x80, 8: m[0] ^ 2, 9: m[1], 10: m[2], 11: 0xff, 12: 0xfe, 13: m[3], 14: m[4], 15: m[5]}
	}
	return core.OK
}
