package models

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// invalid replaces an address that does not parse in a name.
const invalid = "<invalid>"

// allocPrefix is the start of a reference to an allocated address,
// "alloc:NETWORK/INTERFACE", which may replace an address.
const allocPrefix = "alloc:"

// network returns a network as it appears in a name: masked, "10.1.2.3/16" as
// "10.1.0.0/16". A reference to an allocated address is not changed.
func network(cidr string) string {
	if strings.HasPrefix(cidr, allocPrefix) {
		return cidr
	}
	if p, err := netip.ParsePrefix(cidr); err == nil && p.Addr().Is4() && p == p.Masked() {
		return cidr // in the only spelling there is
	}
	_, n, err := net.ParseCIDR(cidr)
	if err != nil {
		return invalid + "/0"
	}
	ones, _ := n.Mask.Size()
	return n.IP.String() + "/" + strconv.Itoa(ones)
}

// family returns the part of an address that counts in names which contain only the
// family.
func family(addr string) string {
	ip := net.ParseIP(addr)
	switch {
	case ip == nil:
		return invalid
	case ip.To4() != nil:
		return "IPv4"
	default:
		return "IPv6"
	}
}

// number formats a number for a name.
func number(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
