package vppwire

import (
	"fmt"
	"net"
	"net/netip"

	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/ip_types"
)

// Address is a as messages have it.
func Address(a netip.Addr) (out ip_types.Address) {
	if a.Is4() {
		out.Af = ip_types.ADDRESS_IP4
		out.Un.SetIP4(a.As4())
	} else {
		out.Af = ip_types.ADDRESS_IP6
		out.Un.SetIP6(a.As16())
	}
	return out
}

// Addr is an address of a message.
func Addr(a ip_types.Address) netip.Addr { return AddrIn(a.Un, a.Af == ip_types.ADDRESS_IP6) }

// AddrIn is an address of a message that tells the IP version elsewhere.
func AddrIn(un ip_types.AddressUnion, ipv6 bool) netip.Addr {
	if ipv6 {
		return netip.AddrFrom16(un.GetIP6())
	}
	return netip.AddrFrom4(un.GetIP4())
}

// Prefix is a network as messages have it.
func Prefix(p netip.Prefix) ip_types.Prefix {
	return ip_types.Prefix{Address: Address(p.Addr()), Len: uint8(p.Bits())}
}

// AddressWithPrefix is an address of an interface as messages have it.
func AddressWithPrefix(p netip.Prefix) ip_types.AddressWithPrefix {
	return ip_types.AddressWithPrefix(Prefix(p))
}

// PrefixOf is a network of a message, or an address with the length of its prefix.
func PrefixOf[P ip_types.Prefix | ip_types.AddressWithPrefix](p P) netip.Prefix {
	q := ip_types.Prefix(p)
	return netip.PrefixFrom(Addr(q.Address), int(q.Len))
}

// MAC reads a MAC address, in any of the forms that net.ParseMAC knows. Longer ones are none.
func MAC(text string) (ethernet_types.MacAddress, error) {
	mac, err := net.ParseMAC(text)
	if err != nil {
		return ethernet_types.MacAddress{}, err
	}
	if len(mac) != len(ethernet_types.MacAddress{}) {
		return ethernet_types.MacAddress{}, fmt.Errorf("%s: %d bytes, want a MAC address of 6", text, len(mac))
	}
	return ethernet_types.MacAddress(mac), nil
}

// SameMAC compares MAC addresses, however they are spelled.
func SameMAC(a, b string) bool {
	p, errP := MAC(a)
	q, errQ := MAC(b)
	return a == b || errP == nil && errQ == nil && p == q
}
