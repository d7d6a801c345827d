package kernel

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// The kernel adds routes with each address of a link that is up. It does not add them again if somebody removes
// them, such as by "ip route flush dev veth1" or "ip route flush table local dev veth1".
//
//	route                  table          without it
//	to the network         main           no way to the neighbours; the connected route
//	to the address itself  local          the host does not take packets to the address
//	broadcast, IPv4        local          the host does not take broadcasts of the network
//	multicast, IPv6        local          no multicast leaves by the link; one for all addresses of the link
//
// Links in a VRF, and the VRF itself, have all of them in the table of the VRF.

const (
	// metricConnected is the metric of connected routes of IPv6 (IP6_RT_PRIO_ADDRCONF); that of IPv4 is 0.
	metricConnected = 256
	// localTable is the table of addresses outside of any VRF.
	localTable = unix.RT_TABLE_LOCAL
)

// multicast6 is the network of all multicast addresses of IPv6.
var multicast6 = netip.MustParsePrefix("ff00::/8")

// Bare implements Kernel.
func (k *real) Bare() ([]Addr, error) {
	lacking, err := k.lacking(func(Addr) bool { return true })
	var bare []Addr
	for a := range lacking {
		bare = append(bare, a)
	}
	return bare, err
}

// Connect implements Kernel. The kernel takes a route to an IPv6 address itself only with the address: one that is added
// by hand has another metric, and stays when the address goes. So the address is removed and added again.
func (k *real) Connect(a Addr) error {
	lacking, err := k.lacking(func(one Addr) bool { return one == a })
	if err != nil {
		return err
	}
	for _, r := range lacking[a] {
		if r.Type == unix.RTN_LOCAL && r.Dst.Addr().Is6() {
			return k.renew(a)
		}
	}
	for _, r := range lacking[a] {
		if err := k.AddRouteBeside(r, true); err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	return nil
}

// lacking returns the routes that the kernel has added with these addresses and that are not there.
func (k *real) lacking(asked func(Addr) bool) (map[Addr][]Route, error) {
	wanted, err := k.withAddresses(asked)
	if err != nil || len(wanted) == 0 {
		return nil, err
	}
	// A route of another program with another metric serves as well. One in the very place of a connected route would
	// be in the way, unless the kernel has made it for another link.
	type target struct {
		link  int
		dst   netip.Prefix
		table uint32
		local bool // in a VRF, a single address of IPv6 also has a connected route there
	}
	of := func(r Route) target { return target{r.Link, r.Dst, r.Table, r.Type == unix.RTN_LOCAL} }
	there, places := map[target]bool{}, map[Place]bool{}
	for _, routes := range wanted {
		for _, r := range routes {
			there[of(r)], places[r.Place()] = false, false
		}
	}
	_, err = k.Routes(func(r Route) bool {
		if _, ok := there[of(r)]; ok {
			there[of(r)] = true
		}
		if _, ok := places[r.Place()]; ok && r.Protocol != unix.RTPROT_KERNEL {
			places[r.Place()] = true
		}
		return false
	})
	if err != nil {
		return nil, err
	}
	for a, routes := range wanted {
		wanted[a] = slices.DeleteFunc(routes, func(r Route) bool {
			return there[of(r)] || r.Type == 0 && places[r.Place()]
		})
		if len(wanted[a]) == 0 {
			delete(wanted, a)
		}
	}
	return wanted, nil
}

// withAddresses returns the routes that the kernel adds with each of these addresses, as it writes them.
func (k *real) withAddresses(asked func(Addr) bool) (map[Addr][]Route, error) {
	links, err := k.Links()
	if err != nil {
		return nil, err
	}
	vrfs, up := map[int]uint32{}, map[int]Link{}
	for _, l := range links {
		if l.Kind == "vrf" {
			vrfs[l.Index] = l.Table
		}
		if l.Up {
			up[l.Index] = l
		}
	}
	found, err := dump(func() ([]listedAddr, error) { return k.listAddrs(0) })
	if err != nil {
		return nil, about(err, "listing addresses")
	}
	out := map[Addr][]Route{}
	primary := map[Addr]netip.Addr{} // the first address of each network of IPv4 on a link
	for _, one := range found {
		l, isUp := up[one.Link]
		if !isUp || one.Peer.IsValid() {
			continue
		}
		network := Addr{Link: one.Link, Prefix: one.Prefix.Masked()}
		if _, known := primary[network]; !known {
			primary[network] = one.Prefix.Addr()
		}
		a := Addr{Link: one.Link, Prefix: one.Prefix}
		if asked(a) {
			table := cmp.Or(vrfs[l.Index], vrfs[l.Master])
			out[a] = routesWith(one, l, table, primary[network])
		}
	}
	return out, nil
}

// routesWith returns the routes that the kernel adds with an address of a link. table is that of the VRF of the link,
// primary the first address of its network.
func routesWith(a listedAddr, l Link, table uint32, primary netip.Addr) (out []Route) {
	ip, network := a.Prefix.Addr(), a.Prefix.Masked()
	lo := l.Name == "lo"
	add := func(kind uint8, dst netip.Prefix, scope uint8, metric uint32) {
		r := Route{Link: l.Index, Dst: dst, Metric: metric, Type: kind, Protocol: unix.RTPROT_KERNEL, Table: cmp.Or(table, localTable)}
		if kind == 0 {
			r.Table = cmp.Or(table, MainTable)
		}
		if ip.Is4() {
			r.Scope, r.More = scope, string(attribute(nil, unix.RTA_PREFSRC, primary.AsSlice()...))
		}
		out = append(out, r)
	}
	if !a.Tentative && !a.Duplicate { // the kernel adds it after it has tested an IPv6 address
		add(unix.RTN_LOCAL, netip.PrefixFrom(ip, ip.BitLen()), unix.RT_SCOPE_HOST, 0)
	}
	connects := a.flags&unix.IFA_F_NOPREFIXROUTE == 0
	if ip.Is6() && connects && !ip.IsLoopback() { // the kernel makes ::1 without
		add(0, network, 0, metricConnected)
	}
	if ip.Is6() && hasMulticast6(l) {
		add(unix.RTN_MULTICAST, multicast6, 0, metricConnected)
	}
	switch {
	case ip.Is6(), a.Prefix.IsSingleIP():
	case connects && lo:
		add(unix.RTN_LOCAL, network, unix.RT_SCOPE_HOST, 0)
	case connects:
		add(0, network, unix.RT_SCOPE_LINK, 0)
	}
	if last, ok := broadcast(a.Prefix); ok {
		add(unix.RTN_BROADCAST, netip.PrefixFrom(last, last.BitLen()), unix.RT_SCOPE_LINK, 0)
	}
	return out
}

// hasMulticast6 reports whether the kernel adds a route for the multicast of IPv6 to a link.
func hasMulticast6(l Link) bool {
	return l.About.Encapsulation == "ether" && l.About.Flags&unix.IFF_SLAVE == 0 && l.Kind != "vrf"
}

// renew removes an address and adds it again with all that the kernel tells of it, such as its maker and its lifetimes.
func (k *real) renew(a Addr) error {
	found, err := dump(func() ([]listedAddr, error) { return k.listAddrs(a.Link) })
	if err != nil {
		return about(err, "listing addresses")
	}
	i := slices.IndexFunc(found, func(one listedAddr) bool { return one.Prefix == a.Prefix })
	if i < 0 {
		return nil
	}
	if err := k.DelAddr(a); err != nil {
		return err
	}
	request, err := k.request(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	if err != nil {
		return err
	}
	request.AddRawData(found[i].message)
	_, err = request.Execute(unix.NETLINK_ROUTE, 0)
	return about(err, "giving %v the address %v again", k.named(a.Link), a.Prefix)
}
