package kernel

import (
	"encoding/binary"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Place returns the place of a route.
func (r Route) Place() Place { return Place{r.Dst, r.Table, r.Metric, r.TOS} }

// Plain reports whether the agent may have written a route like this, with any protocol.
func (r Route) Plain() bool {
	return r.Type == 0 && r.TOS == 0 && r.Flags&^unix.RTNH_F_ONLINK == 0 && r.Weight == 0 && r.More == "" && r.Link != 0
}

// Is reports whether the kernel may mean this very route by o: it does not tell the protocol of all
// next hops of IPv6.
func (r Route) Is(o Route) bool {
	if o.Protocol == 0 && o.Dst.Addr().Is6() {
		o.Protocol = r.Protocol
	}
	return r == o
}

// Routes implements Kernel.
func (k *real) Routes(keep func(Route) bool) ([]Route, error) {
	routes, err := dump(func() (out []Route, err error) {
		for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
			request, err := k.request(unix.RTM_GETROUTE, unix.NLM_F_DUMP)
			if err != nil {
				return nil, err
			}
			ask := make([]byte, unix.SizeofRtMsg)
			ask[0] = family
			request.AddRawData(ask)
			err = request.ExecuteIter(unix.NETLINK_ROUTE, unix.RTM_NEWROUTE, func(m []byte) bool {
				if r, ok := parseRoute(m); ok {
					for one := range r.hops() {
						if keep(one) {
							out = append(out, one)
						}
					}
				}
				return true
			})
			if err != nil {
				return nil, err
			}
		}
		return out, nil
	})
	return routes, about(err, "listing routes")
}

// nexthopID is RTA_NH_ID of linux/rtnetlink.h, the id of a nexthop object.
const nexthopID = 30

// steadyFlags are the flags of a next hop that the kernel does not change by itself. The others say
// that its link is down, or that hardware forwards it.
const steadyFlags = unix.RTNH_F_ONLINK | unix.RTNH_F_PERVASIVE

// parseRoute parses an rtmsg and its attributes. Cloned routes are cache entries of the kernel.
func parseRoute(m []byte) (Route, bool) {
	if len(m) < unix.SizeofRtMsg || number(m[8:])&unix.RTM_F_CLONED != 0 {
		return Route{}, false
	}
	r := Route{TOS: m[3], Table: uint32(m[4]), Protocol: m[5], Scope: m[6], Type: m[7], Flags: uint8(number(m[8:]) & steadyFlags)}
	if r.Type == unix.RTN_UNICAST {
		r.Type = 0
	}
	dst := netip.IPv4Unspecified()
	if m[0] == unix.AF_INET6 {
		dst = netip.IPv6Unspecified()
	}
	var more []string
	for kind, value := range attributes(m[unix.SizeofRtMsg:]) {
		if kind == unix.RTA_DST {
			dst, _ = netip.AddrFromSlice(value)
		} else if !r.take(kind, value) {
			more = append(more, rest(kind, value))
		}
	}
	slices.Sort(more)
	r.More = strings.Join(more, "")
	r.Dst = netip.PrefixFrom(dst, int(m[1]))
	return r, r.Dst.IsValid()
}

// take takes in an attribute that has a field of its own, and reports whether it has.
func (r *Route) take(kind uint16, value []byte) bool {
	switch kind {
	case unix.RTA_GATEWAY:
		r.Gateway, _ = netip.AddrFromSlice(value)
	case unix.RTA_OIF:
		r.Link = int(number(value))
	case unix.RTA_PRIORITY:
		r.Metric = number(value)
	case unix.RTA_TABLE:
		r.Table = number(value)
	default:
		return false
	}
	return true
}

// rest returns what Route.More has of an attribute.
func rest(kind uint16, value []byte) string {
	switch {
	case kind == unix.RTA_CACHEINFO, kind == unix.RTA_EXPIRES: // times and counters
		return ""
	case kind == unix.RTA_PREF && len(value) == 1 && value[0] == 0: // each route of IPv6 has it, and 0 is the default
		return ""
	case kind == unix.RTA_MULTIPATH:
		value = steadyHops(value)
	}
	return string(attribute(nil, kind, value...))
}

// eachHop yields the head, an rtnexthop, and the attributes of each next hop of a RTA_MULTIPATH.
func eachHop(b []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(head, attributes []byte) bool) {
		for len(b) >= unix.SizeofRtNexthop {
			length := int(binary.NativeEndian.Uint16(b))
			if length < unix.SizeofRtNexthop || length > len(b) || !yield(b[:unix.SizeofRtNexthop], b[unix.SizeofRtNexthop:length]) {
				return
			}
			b = b[min(len(b), (length+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1)):]
		}
	}
}

// steadyHops returns next hops without the flags that the kernel changes by itself.
func steadyHops(b []byte) []byte {
	b = slices.Clone(b)
	for head := range eachHop(b) {
		head[2] &= steadyFlags
	}
	return b
}

// hops returns the routes that a route of IPv6 with several next hops consists of, and any other
// route as it is.
func (r Route) hops() iter.Seq[Route] {
	return func(yield func(Route) bool) {
		hops, rest := r.multipath()
		if hops == nil || r.Dst.Addr().Is4() {
			yield(r)
			return
		}
		first := true
		for head, attrs := range eachHop(hops) {
			one := r
			one.Flags, one.Weight, one.Link, one.Gateway = head[2], head[3], int(int32(number(head[4:]))), netip.Addr{}
			more := []string{}
			if first {
				more = append(more, rest)
			} else {
				one.Protocol = 0
			}
			for kind, value := range attributes(attrs) {
				if kind == unix.RTA_GATEWAY {
					one.Gateway, _ = netip.AddrFromSlice(value)
				} else {
					more = append(more, string(attribute(nil, kind, value...)))
				}
			}
			first, one.More = false, strings.Join(more, "")
			if !yield(one) {
				return
			}
		}
	}
}

// multipath returns the value of RTA_MULTIPATH, nil without one, and the other attributes in More.
func (r Route) multipath() (hops []byte, rest string) {
	for kind, value := range attributes([]byte(r.More)) {
		if kind == unix.RTA_MULTIPATH {
			hops = value
		} else {
			rest += string(attribute(nil, kind, value...))
		}
	}
	return hops, rest
}

// PartOf reports whether r is the route that an event announced, or one of its next hops.
func (r Route) PartOf(announced Route) bool {
	for one := range announced.hops() {
		if one.Is(r) || r.Is(one) {
			return true
		}
	}
	return false
}

// has reports whether More has an attribute of this kind.
func (r Route) has(kind uint16) bool {
	for k := range attributes([]byte(r.More)) {
		if k == kind {
			return true
		}
	}
	return false
}

// Kind names what r is in words that an error can use: "a route", "a blackhole", "a multipath route".
func (r Route) Kind() string {
	names := map[uint8]string{
		unix.RTN_BLACKHOLE: "a blackhole", unix.RTN_UNREACHABLE: "an unreachable route", unix.RTN_PROHIBIT: "a prohibit route",
		unix.RTN_THROW: "a throw route", unix.RTN_LOCAL: "a local route",
	}
	switch {
	case names[r.Type] != "":
		return names[r.Type]
	case r.Type != 0:
		return fmt.Sprintf("a route of type %d", r.Type)
	case r.has(nexthopID):
		return fmt.Sprintf("a route with nexthop object %d", r.nexthop())
	case r.has(unix.RTA_MULTIPATH):
		return "a multipath route"
	case r.has(unix.RTA_ENCAP):
		return "a route with encapsulation"
	case r.has(unix.RTA_VIA):
		return "a route via a gateway of the other IP version"
	case r.has(unix.RTA_METRICS):
		return "a route with metrics such as an MTU"
	case r.has(unix.RTA_PREFSRC):
		return "a route with a source address"
	}
	return "a route"
}

// nexthop returns the id of the nexthop object.
func (r Route) nexthop() uint32 {
	for kind, value := range attributes([]byte(r.More)) {
		if kind == nexthopID {
			return number(value)
		}
	}
	return 0
}

// routeMessage returns an rtmsg of rtnetlink(7). A route with a nexthop object or several next hops has
// neither link nor gateway of its own.
func routeMessage(kind, flags uint16, r Route) []byte {
	routeType := r.Type
	if routeType == 0 {
		routeType = unix.RTN_UNICAST
	}
	m := newMessage(kind, flags,
		family(r.Dst.Addr()), byte(r.Dst.Bits()), 0, r.TOS, // length of a source: 0
		unix.RT_TABLE_UNSPEC, r.Protocol, r.Scope, routeType)
	m = binary.NativeEndian.AppendUint32(m, uint32(r.Flags))
	m = attribute(m, unix.RTA_DST, r.Dst.Addr().AsSlice()...)
	m = attribute32(m, unix.RTA_TABLE, r.Table)
	if r.Metric != 0 {
		m = attribute32(m, unix.RTA_PRIORITY, r.Metric)
	}
	if r.Link != 0 && !r.has(nexthopID) && !r.has(unix.RTA_MULTIPATH) {
		m = attribute32(m, unix.RTA_OIF, uint32(r.Link))
		if r.Gateway.IsValid() {
			m = attribute(m, unix.RTA_GATEWAY, r.Gateway.AsSlice()...)
		}
	}
	m = append(m, r.More...)
	return finish(m)
}
