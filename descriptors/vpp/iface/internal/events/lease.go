package events

import (
	"net/netip"

	"go.fd.io/govpp/binapi/dhcp"

	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// Leased returns the address of a lease; the zero Prefix: none.
func Leased(l dhcp.DHCPLease) netip.Prefix {
	if a := vppwire.Addr(l.HostAddress); !a.IsUnspecified() {
		return netip.PrefixFrom(a, int(l.MaskWidth))
	}
	return netip.Prefix{}
}

// LeaseOf returns a lease as a value; nil: there is none.
func LeaseOf(name string, l dhcp.DHCPLease) *interfaces.DHCPLease {
	address := Leased(l)
	if !address.IsValid() {
		return nil
	}
	v := &interfaces.DHCPLease{
		InterfaceName: name, HostName: l.Hostname, IsIpv6: l.IsIPv6,
		HostPhysAddress: l.HostMac.String(), HostIpAddress: address.String(),
	}
	if router := vppwire.Addr(l.RouterAddress); !router.IsUnspecified() {
		v.RouterIpAddress = netip.PrefixFrom(router, int(l.MaskWidth)).String()
	}
	return v
}
