package l3

import (
	"net/netip"
	"strings"

	"go.fd.io/govpp/binapi/fib_types"

	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// validateRoute checks a route.
func validateRoute(_ string, v *l3.Route) error {
	var f faults
	f.destination(v.GetDstNetwork())
	f.nextHop(v)
	f.kind(v)
	f.table("vrf_id", v.GetVrfId())
	return f.Err()
}

// destination checks the network, which may be a reference.
func (f *faults) destination(dst string) {
	if alloc.Is(dst) {
		if ref, ok := alloc.Parse(dst); !ok || ref.Interface == "" {
			f.Add("dst_network", dst, `"alloc:NETWORK/INTERFACE" or "alloc:NETWORK/INTERFACE/GW"`)
		}
		return
	}
	p, err := netip.ParsePrefix(dst)
	switch {
	case err != nil:
		f.Add("dst_network", dst, `a network with prefix length, such as "10.2.0.0/16" or "::/0"`)
	// VPP would mask it silently, and the key would name another network than VPP.
	case p != p.Masked():
		f.Add("dst_network", dst, "a network without bits of a host: %s", p.Masked())
	}
}

// nextHop checks the next hop, which may be a reference or absent.
func (f *faults) nextHop(v *l3.Route) {
	gw := v.GetNextHopAddr()
	if gw == "" {
		return
	}
	if alloc.Is(gw) {
		switch ref, ok := alloc.Parse(gw); {
		case !ok || !ref.Gateway:
			f.Add("next_hop_addr", gw, `"alloc:NETWORK/GW" or "alloc:NETWORK/INTERFACE/GW"`)
		case ref.InterfaceOr(v.GetOutgoingInterface()) == "":
			f.Add("next_hop_addr", gw, `"alloc:NETWORK/INTERFACE/GW", as there is no outgoing_interface`)
		}
		return
	}
	via, err := netip.ParseAddr(gw)
	to, toErr := netip.ParsePrefix(v.GetDstNetwork())
	switch {
	case err != nil || via.Zone() != "":
		f.Add("next_hop_addr", gw, `an address, such as "10.1.0.1" or "fd00::1"`)
	// VPP can route IPv4 over an IPv6 next hop, but not the reverse.
	case toErr == nil && to.Addr().Is6() && via.Is4():
		f.Add("next_hop_addr", gw, "an IPv6 address, as dst_network is one of IPv6")
	case via.IsMulticast():
		f.Add("next_hop_addr", gw, "the address of one host, not of a group")
	}
}

// kind checks the fields that depend on the type of the route.
func (f *faults) kind(v *l3.Route) {
	switch v.GetType() {
	case l3.Route_INTRA_VRF: // VPP takes one without an interface and without a next hop, too
	case l3.Route_INTER_VRF:
		f.table("via_vrf_id", v.GetViaVrfId())
		if v.GetViaVrfId() == v.GetVrfId() {
			f.Add("via_vrf_id", v.GetViaVrfId(), "another VRF than vrf_id")
		}
	case l3.Route_DROP:
	default:
		f.Add("type", int32(v.GetType()), "INTRA_VRF, INTER_VRF or DROP")
	}
}

// equivalentRoute compares the path that VPP would get, so that another notation is no
// change. A reference counts as its address.
func (h handler) equivalentRoute(_ string, old, new *l3.Route) bool {
	old, new = h.withoutReferences(old), h.withoutReferences(new)
	return old.GetType() == new.GetType() && old.GetOutgoingInterface() == new.GetOutgoingInterface() &&
		old.GetVrfId() == new.GetVrfId() && old.GetViaVrfId() == new.GetViaVrfId() &&
		max(old.GetWeight(), 1) == max(new.GetWeight(), 1) && old.GetPreference() == new.GetPreference() &&
		samePrefix(old.GetDstNetwork(), new.GetDstNetwork()) && sameNextHop(old, new)
}

// samePrefix compares networks independent of notation. References without an address yet compare as text.
func samePrefix(a, b string) bool {
	p, errP := netip.ParsePrefix(a)
	q, errQ := netip.ParsePrefix(b)
	return a == b || errP == nil && errQ == nil && p == q
}

// sameNextHop compares next hops as VPP has them. No next hop equals the unspecified address.
func sameNextHop(a, b *l3.Route) bool {
	if a.GetNextHopAddr() == b.GetNextHopAddr() {
		return true
	}
	p, errP := nextHop(a)
	q, errQ := nextHop(b)
	return errP == nil && errQ == nil && p == q
}

// nextHop returns the next hop as VPP has it: see nextHopTo.
func nextHop(v *l3.Route) (netip.Addr, error) {
	dst, _ := netip.ParsePrefix(v.GetDstNetwork())
	return nextHopTo(dst, v)
}

// nextHopTo is nextHop for a given destination, which is invalid while a reference is
// unresolved. A route without next hop has the unspecified address. If it leads to one host
// by an interface, VPP makes that host its next hop (fib_table.c, fib_table_route_path_fixup).
func nextHopTo(dst netip.Prefix, v *l3.Route) (netip.Addr, error) {
	hop := v.GetNextHopAddr()
	next, err := netip.ParseAddr(hop)
	switch {
	case hop != "" && err != nil:
		return netip.Addr{}, ErrUnallocated
	case hop != "" && !next.IsUnspecified():
		return next, nil
	case !dst.IsValid():
		return netip.Addr{}, ErrUnallocated
	case dst.IsSingleIP() && v.GetOutgoingInterface() != "":
		return dst.Addr(), nil
	case hop != "":
		return next, nil
	case dst.Addr().Is4():
		return netip.IPv4Unspecified(), nil
	}
	return netip.IPv6Unspecified(), nil
}

// isPathOfItsOwn reports whether no other key means the same path in VPP. VPP adds a path that
// it has without an error. If it then removed the one of the other key, both would be gone. So
// these are not paths of their own: references, whose address may be that of another route;
// next hops in another notation than ours, or that mean none or are the destination itself; and
// fields in the key that the type does not use. It is called for each route several times, so it
// makes no key to compare.
func isPathOfItsOwn(key string, v *l3.Route) bool {
	hop := v.GetNextHopAddr()
	switch {
	case alloc.Is(v.GetDstNetwork()) || alloc.Is(hop):
		return false
	case v.GetType() == l3.Route_DROP && strings.Contains(key, "/if/"):
		return false
	case hop == "":
		return !strings.Contains(key, "/gw/")
	}
	address, err := netip.ParseAddr(hop)
	rest, atEnd := strings.CutSuffix(key, hop)
	return err == nil && !address.IsUnspecified() && !address.Is4In6() && atEnd && strings.HasSuffix(rest, "/gw/") &&
		!strings.Contains(rest, "/dst/"+hop+"/")
}

// routeDependencies requires the interface, the tables, and the allocated addresses of
// references.
func routeDependencies(_ string, v *l3.Route) (deps []scheduler.Dependency) {
	add := func(label, key string) {
		deps = append(deps, scheduler.Dependency{Label: label, Key: key})
	}
	if out := v.GetOutgoingInterface(); out != "" {
		add("interface-exists", keys.Interface(out).Key())
	}
	table := func(label string, id uint32, ipv6 bool) {
		switch {
		case id == 0:
		// A table of either version will do.
		case alloc.Is(v.GetDstNetwork()): // the IP version is unknown before the allocation
			deps = append(deps, scheduler.Dependency{Label: label, Prefixes: []string{keys.VRFTables(id)}})
		default:
			add(label, keys.VRFTable(id, ipv6))
		}
	}
	// VPP looks for the next hop in the table of the next hop's IP version.
	ipv6 := isIPv6Route(v)
	next, err := netip.ParseAddr(v.GetNextHopAddr())
	nextIPv6 := ipv6 || err == nil && next.Is6()
	table("vrf-table-exists", v.GetVrfId(), ipv6)
	switch {
	case v.GetType() == l3.Route_INTER_VRF:
		table("via-vrf-table-exists", v.GetViaVrfId(), nextIPv6)
	case nextIPv6 != ipv6 && v.GetOutgoingInterface() == "":
		table("next-hop-vrf-table-exists", v.GetVrfId(), nextIPv6)
	}
	if ref, ok := alloc.Parse(v.GetDstNetwork()); ok {
		add("dst_network-"+v.GetDstNetwork(), ref.Key(v.GetOutgoingInterface()))
	}
	if ref, ok := alloc.Parse(v.GetNextHopAddr()); ok {
		add("gw_addr-"+v.GetNextHopAddr(), ref.Key(v.GetOutgoingInterface()))
	}
	return deps
}

// isIPv6Route returns the IP version of the destination or, for an unresolved reference, of
// the next hop.
func isIPv6Route(v *l3.Route) bool {
	dst, err := netip.ParsePrefix(v.GetDstNetwork())
	if err != nil {
		gw, _ := netip.ParseAddr(v.GetNextHopAddr())
		return gw.Is6()
	}
	return dst.Addr().Is6()
}

// protocolOf returns VPP's number of an IP version for paths.
func protocolOf(ipv6 bool) fib_types.FibPathNhProto {
	if ipv6 {
		return fib_types.FIB_API_PATH_NH_PROTO_IP6
	}
	return fib_types.FIB_API_PATH_NH_PROTO_IP4
}
