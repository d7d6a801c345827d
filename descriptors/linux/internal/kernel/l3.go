package kernel

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Addrs implements Kernel.
func (k *real) Addrs(index int) ([]Addr, error) {
	var of netlink.Link
	if index != 0 {
		of = at(index)
	}
	found, err := dump(func() ([]netlink.Addr, error) { return k.nl.AddrList(of, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, fmt.Errorf("listing addresses: %w", err)
	}
	addrs := make([]Addr, 0, len(found))
	for _, one := range found {
		if p, ok := prefixOf(one.IPNet); ok {
			addrs = append(addrs, Addr{Link: one.LinkIndex, Prefix: p, Temporary: one.Flags&unix.IFA_F_PERMANENT == 0})
		}
	}
	return addrs, nil
}

// AddAddr implements Kernel.
func (k *real) AddAddr(a Addr) error {
	err := k.nl.AddrAdd(at(a.Link), &netlink.Addr{IPNet: ipNet(a.Prefix)})
	return about(err, "giving %v the address %v", k.named(a.Link), a.Prefix)
}

// DelAddr implements Kernel.
func (k *real) DelAddr(a Addr) error {
	err := k.nl.AddrDel(at(a.Link), &netlink.Addr{IPNet: ipNet(a.Prefix)})
	return about(err, "taking the address %v from %v", a.Prefix, k.named(a.Link))
}

// AddRoutes implements Kernel.
func (k *real) AddRoutes(routes ...Route) []error {
	messages := make([][]byte, len(routes))
	for i, r := range routes {
		messages[i] = routeMessage(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, r)
	}
	errs := k.changes.doAll(messages)
	for i, r := range routes {
		errs[i] = about(errs[i], "adding route %v", r.Dst)
	}
	return errs
}

// AddRouteBeside implements Kernel.
func (k *real) AddRouteBeside(r Route, behind bool) error {
	flags := uint16(unix.NLM_F_CREATE)
	if behind {
		flags |= unix.NLM_F_APPEND
	}
	return about(k.changes.do(routeMessage(unix.RTM_NEWROUTE, flags, r)), "adding route %v", r.Dst)
}

// DelRoute implements Kernel.
func (k *real) DelRoute(r Route) error {
	return about(k.changes.do(routeMessage(unix.RTM_DELROUTE, 0, r)), "removing route %v", r.Dst)
}

// ipNet converts a prefix to the form of the netlink library.
func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// prefixOf converts a network of the netlink library, whose IPv4 addresses may have 16
// bytes.
func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	ip, ok := netip.AddrFromSlice(n.IP)
	ones, bits := n.Mask.Size()
	if bits == 32 {
		ip = ip.Unmap()
	}
	return netip.PrefixFrom(ip, ones), ok
}
