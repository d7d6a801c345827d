package l3

import (
	"net/netip"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// metricIPv6 is the metric that the kernel substitutes for 0 (IP6_RT_PRIO_USER).
const metricIPv6 = 1024

// faults collects the errors of a value.
type faults struct{ models.Faults }

// validateRoute checks a route. References are checked as text; their addresses are
// checked when they are known.
func validateRoute(_ string, v *l3.Route) error {
	var f faults
	if v.GetOutgoingInterface() == "" {
		f.Add("outgoing_interface", "", "the name of an interface")
	}
	f.destination(v.GetDstNetwork())
	f.gateway(v.GetGwAddr(), v.GetDstNetwork())
	f.scope(v)
	if v.GetOnLink() && v.GetGwAddr() == "" {
		f.Add("on_link", true, "a gw_addr beside it, or false: without a gateway the destination itself is on the link")
	}
	return f.Err()
}

// destination checks the network, which may be a reference.
func (f *faults) destination(dst string) {
	if alloc.Is(dst) {
		if ref, ok := alloc.Parse(dst); !ok || ref.Interface == "" {
			f.Add("dst_network", dst, `"alloc:NETWORK/INTERFACE" or "alloc:NETWORK/INTERFACE/GW"`)
		}
	} else if _, err := netip.ParsePrefix(dst); err != nil {
		f.Add("dst_network", dst, `a network with prefix length, such as "10.2.0.0/16" or "::/0"`)
	}
}

// gateway checks the next hop against the network: the kernel takes only one IP version.
func (f *faults) gateway(gw, dst string) {
	if gw == "" {
		return
	}
	if alloc.Is(gw) {
		if ref, ok := alloc.Parse(gw); !ok || !ref.Gateway {
			f.Add("gw_addr", gw, `"alloc:NETWORK/GW" or "alloc:NETWORK/INTERFACE/GW"`)
		}
		return
	}
	via, err := netip.ParseAddr(gw)
	to, toErr := netip.ParsePrefix(dst)
	switch {
	case err != nil || via.Zone() != "":
		f.Add("gw_addr", gw, `an address, such as "10.1.0.1" or "fd00::1"`)
	case toErr == nil && to.Addr().Is4() != via.Is4():
		f.Add("gw_addr", gw, "an address of the same IP version as dst_network")
	}
}

// scope checks the scope. The kernel refuses a gateway for a destination that is on the
// link or on this host.
func (f *faults) scope(v *l3.Route) {
	switch scope := v.GetScope(); {
	case l3.Route_Scope_name[int32(scope)] == "":
		f.Add("scope", int32(scope), "UNDEFINED, GLOBAL, SITE, LINK or HOST")
	case (scope == l3.Route_LINK || scope == l3.Route_HOST) && v.GetGwAddr() != "":
		f.Add("scope", scope.String(), "GLOBAL or SITE, as there is a gw_addr")
	}
}

// scope returns the scope of v. The default is the one that ip-route(8) chooses.
func scope(v *l3.Route) l3.Route_Scope {
	switch {
	case v.GetScope() != l3.Route_UNDEFINED:
		return v.GetScope()
	case v.GetGwAddr() == "":
		return l3.Route_LINK
	}
	return l3.Route_GLOBAL
}

// kernelRoute converts v for the kernel. link and table belong to its interface.
func kernelRoute(v *l3.Route, link int, table uint32) (kernel.Route, error) {
	dst, err := netip.ParsePrefix(v.GetDstNetwork())
	if err != nil {
		return kernel.Route{}, ErrUnallocated
	}
	r := kernel.Route{Link: link, Dst: dst.Masked(), Metric: v.GetMetric(), Table: table, Protocol: kernel.Protocol}
	if v.GetGwAddr() != "" {
		r.Gateway, err = netip.ParseAddr(v.GetGwAddr())
		if err != nil {
			return kernel.Route{}, ErrUnallocated
		}
	}
	if v.GetOnLink() {
		r.Flags = unix.RTNH_F_ONLINK
	}
	if dst.Addr().Is4() {
		r.Scope = scopeNumber(scope(v))
	} else if r.Metric == 0 {
		r.Metric = metricIPv6
	}
	return r, nil
}

// scopeNumber returns the kernel's number of a scope; UNDEFINED is the kernel's default.
func scopeNumber(s l3.Route_Scope) uint8 {
	switch s {
	case l3.Route_SITE:
		return unix.RT_SCOPE_SITE
	case l3.Route_LINK:
		return unix.RT_SCOPE_LINK
	case l3.Route_HOST:
		return unix.RT_SCOPE_HOST
	default:
		return unix.RT_SCOPE_UNIVERSE
	}
}

// scopeOf is the inverse of scopeNumber. Other numbers count as GLOBAL.
func scopeOf(number uint8) l3.Route_Scope {
	switch number {
	case unix.RT_SCOPE_SITE:
		return l3.Route_SITE
	case unix.RT_SCOPE_LINK:
		return l3.Route_LINK
	case unix.RT_SCOPE_HOST:
		return l3.Route_HOST
	default:
		return l3.Route_GLOBAL
	}
}

// equivalentRoute compares the routes that the kernel would get. A reference counts as its address; without an address
// yet, it is compared as text.
func (h handler) equivalentRoute(_ string, old, new *l3.Route) bool {
	old, new = h.withoutReferences(old), h.withoutReferences(new)
	a, errA := kernelRoute(old, 0, 0)
	b, errB := kernelRoute(new, 0, 0)
	if errA != nil || errB != nil {
		return old.GetDstNetwork() == new.GetDstNetwork() && old.GetGwAddr() == new.GetGwAddr() &&
			old.GetMetric() == new.GetMetric() && scope(old) == scope(new) && old.GetOnLink() == new.GetOnLink()
	}
	return a == b
}

// recreateRoute: the metric is part of the identity of a route in the kernel.
func recreateRoute(_ string, old, new *l3.Route, _ RouteMeta) bool {
	return old.GetMetric() != new.GetMetric()
}

// routeDependencies: the kernel rejects a route if its link is down or its gateway is not
// reachable.
func (h handler) routeDependencies(_ string, v *l3.Route) []scheduler.Dependency {
	out := v.GetOutgoingInterface()
	deps := []scheduler.Dependency{{Label: "outgoing-interface-is-up", Key: keys.State(out, true)}}
	onLink := v.GetOnLink() || linkLocal(v.GetGwAddr()) // whatever the addresses of the link are
	if !onLink {
		deps = append(deps, scheduler.Dependency{Label: "outgoing-interface-has-ip-address", Prefixes: []string{keys.Addresses(out)}})
	}
	if ref, ok := alloc.Parse(v.GetDstNetwork()); ok {
		deps = append(deps, scheduler.Dependency{Label: "dst_network-" + v.GetDstNetwork(), Key: ref.Key(out)})
	}
	ref, allocated := alloc.Parse(v.GetGwAddr())
	if allocated {
		deps = append(deps, scheduler.Dependency{Label: "gw_addr-" + v.GetGwAddr(), Key: ref.Key(out)})
	}
	switch {
	case v.GetGwAddr() == "" || onLink:
		return deps
	case allocated:
		return append(deps, h.allocatedGatewayReachable(v, ref))
	}
	return append(deps, h.gatewayReachable(v))
}

// remedy says what else makes a gateway reachable.
func remedy(v *l3.Route) string {
	return "if the gateway " + v.GetGwAddr() + " is on the link although it is in none of these networks, declare the route with on_link: true"
}

// linkLocal reports whether an address is a link-local one of IPv6: it is on every link that is up, whatever the
// addresses of the link are.
func linkLocal(text string) bool {
	a, err := netip.ParseAddr(text)
	return err == nil && a.Is6() && a.IsLinkLocalUnicast()
}

// gatewayReachable requires that the gateway is in the subnet of an address of the
// interface, or in that of a route on its link.
func (h handler) gatewayReachable(v *l3.Route) scheduler.Dependency {
	gw, _ := netip.ParseAddr(v.GetGwAddr())
	out := v.GetOutgoingInterface()
	return scheduler.Dependency{
		Label:    "gw-reachable",
		Prefixes: []string{keys.Addresses(out), keys.LinkLocalRoutes(out)},
		Remedy:   remedy(v),
		Match: func(key string) bool {
			if a, ok := keys.ParseAddress(key); ok {
				p, err := netip.ParsePrefix(alloc.Address(h.Allocations, a.Addr, out))
				return err == nil && p.Masked().Contains(gw)
			}
			_, dst, _ := keys.ParseLinkLocalRoute(key)
			p, err := netip.ParsePrefix(alloc.Address(h.Allocations, dst, out))
			return err == nil && p.Masked().Contains(gw)
		},
	}
}

// allocatedGatewayReachable is gatewayReachable for a reference, which may have no address
// yet: netalloc derives a key if the gateway is a neighbour. A route on the link may have another
// reference to the same gateway, which names the interface.
func (h handler) allocatedGatewayReachable(v *l3.Route, ref alloc.Ref) scheduler.Dependency {
	out := v.GetOutgoingInterface()
	neighbour := alloc.NeighGateway(ref.Network, ref.InterfaceOr(out))
	return scheduler.Dependency{
		Label:    "gw-reachable",
		Prefixes: []string{alloc.NeighGateways, keys.LinkLocalRoutes(out)},
		Remedy:   remedy(v),
		Match: func(key string) bool {
			_, dst, onLink := keys.ParseLinkLocalRoute(key)
			if !onLink {
				return key == neighbour
			}
			if to, isRef := alloc.Parse(dst); isRef && to.Gateway && to.Key(out) == ref.Key(out) {
				return true
			}
			gw, err := netip.ParseAddr(alloc.Host(h.Allocations, v.GetGwAddr(), out))
			p, wrong := netip.ParsePrefix(alloc.Address(h.Allocations, dst, out))
			return err == nil && wrong == nil && p.Masked().Contains(gw)
		},
	}
}

// derivedOfRoute returns a property for a route on the link: it makes gateways in its
// subnet reachable.
func derivedOfRoute(_ string, v *l3.Route) []scheduler.KeyValue {
	if scope(v) != l3.Route_LINK {
		return nil
	}
	key := keys.LinkLocalRoute(v.GetOutgoingInterface(), v.GetDstNetwork())
	return []scheduler.KeyValue{{Key: key, Value: &emptypb.Empty{}}}
}

// normalizeRoute removes the prefix length of the gateway. An all-zero gateway means that
// the destination is on the link, so it is removed.
func normalizeRoute(_ string, v *l3.Route) (*l3.Route, []string) {
	gw, _ := spelling.WithoutLength(v.GetGwAddr())
	if a, err := netip.ParseAddr(gw); err == nil && a.IsUnspecified() {
		v = proto.CloneOf(v)
		v.GwAddr = ""
		return v, nil
	}
	if gw == v.GetGwAddr() {
		return v, nil
	}
	v = proto.CloneOf(v)
	return v, spelling.Host("gw_addr", &v.GwAddr)
}
