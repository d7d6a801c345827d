package models

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// invalid stands in a name for an address that does not parse.
const invalid = "<invalid>"

// allocPrefix begins a reference to an allocated address, "alloc:NETWORK/INTERFACE",
// which stands where an address would.
const allocPrefix = "alloc:"

// network is how a network stands in a name: masked, "10.1.2.3/16" as
// "10.1.0.0/16". A reference to an allocated address stands as it is.
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

// family is how an address stands in a name where only its family counts.
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

// number is how a number stands in a name.
func number(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
