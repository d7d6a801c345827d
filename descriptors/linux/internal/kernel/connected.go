package kernel

import (
	"cmp"
	"errors"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The kernel adds a route to the network of each address of a link that is up, its connected route. It does not
// add it again if somebody removes it, such as by "ip route flush dev veth1".

// metricConnected is the metric of connected routes of IPv6 (IP6_RT_PRIO_ADDRCONF); that of IPv4 is 0.
const metricConnected = 256

// Bare implements Kernel.
func (k *real) Bare() ([]Addr, error) {
	wanted, err := k.connected()
	if err != nil || len(wanted) == 0 {
		return nil, err
	}
	places := map[Place]bool{}
	for _, r := range wanted {
		places[r.Place()] = true
	}
	type target struct {
		link  int
		dst   netip.Prefix
		table uint32
	}
	there := map[target]bool{}
	// A route of another program with another metric serves as well. One in the very place would be in the way.
	taken, err := k.Routes(func(r Route) bool {
		there[target{r.Link, r.Dst, r.Table}] = true
		return places[r.Place()]
	})
	if err != nil {
		return nil, err
	}
	for _, r := range taken {
		delete(places, r.Place())
	}
	var bare []Addr
	for a, r := range wanted {
		if places[r.Place()] && !there[target{r.Link, r.Dst, r.Table}] {
			bare = append(bare, a)
		}
	}
	return bare, nil
}

// Connect implements Kernel.
func (k *real) Connect(a Addr) error {
	wanted, err := k.connected()
	r, ok := wanted[a]
	if err != nil || !ok {
		return err
	}
	if err := k.AddRoutes(r)[0]; !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// connected returns the connected route of each address that has one, as the kernel writes it.
func (k *real) connected() (map[Addr]Route, error) {
	links, err := k.Links()
	if err != nil {
		return nil, err
	}
	tables, up := map[int]uint32{}, map[int]Link{}
	for _, l := range links {
		if l.Kind == "vrf" {
			tables[l.Index] = l.Table
		}
		if l.Up && l.Name != "lo" {
			up[l.Index] = l
		}
	}
	found, err := dump(func() ([]netlink.Addr, error) { return k.nl.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, about(err, "listing addresses")
	}
	out := map[Addr]Route{}
	first := map[Route]netip.Addr{} // the primary address of each network of IPv4
	for _, one := range found {
		p, ok := prefixOf(one.IPNet)
		l, isUp := up[one.LinkIndex]
		if !ok || !isUp || !connects(one, p) {
			continue
		}
		r := Route{Link: l.Index, Dst: p.Masked(), Table: cmp.Or(tables[l.Master], MainTable), Protocol: unix.RTPROT_KERNEL}
		if p.Addr().Is6() {
			r.Metric = metricConnected
		} else {
			r.Scope = unix.RT_SCOPE_LINK
			if _, known := first[r]; !known {
				first[r] = p.Addr()
			}
			r.More = string(attribute(nil, unix.RTA_PREFSRC, first[r].AsSlice()...))
		}
		out[Addr{Link: l.Index, Prefix: p}] = r
	}
	return out, nil
}

// connects reports whether the kernel adds a connected route for an address with the prefix p.
func connects(a netlink.Addr, p netip.Prefix) bool {
	return a.Flags&unix.IFA_F_NOPREFIXROUTE == 0 && (a.Peer == nil || a.Peer.IP.Equal(a.IP)) &&
		(p.Addr().Is6() || !p.IsSingleIP()) && !p.Addr().IsLinkLocalUnicast()
}
