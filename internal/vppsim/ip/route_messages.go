package ip

import (
	"fmt"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// noPaths is VPP's NO_PATHS_IN_ROUTE. GoVPP has an older name for it.
const noPaths core.Errno = -52

// routeMessages registers the messages of routes. Version 2 crashes on an unknown source,
// as VPP does.
func (p *IP) routeMessages() {
	p.vpp.Register(core.Plugin{Messages: []core.Message{
		core.Call(func(q *ip.IPRouteAddDel, r *ip.IPRouteAddDelReply) (e core.Errno) {
			r.StatsIndex, e = p.changeRoute(q.IsAdd, q.IsMultipath, q.Route)
			return e
		}),
		core.Call(func(q *ip.IPRouteAddDelV2, r *ip.IPRouteAddDelV2Reply) (e core.Errno) {
			if q.Route.Src > srcLast {
				return core.Crash
			}
			route := ip.IPRoute{TableID: q.Route.TableID, Prefix: q.Route.Prefix, Paths: q.Route.Paths}
			r.StatsIndex, e = p.changeRoute(q.IsAdd, q.IsMultipath, route)
			return e
		}),
		core.Call(func(q *ip.IPRouteLookupV2, r *ip.IPRouteLookupV2Reply) (e core.Errno) {
			r.Route, e = p.lookup(vppwire.PrefixOf(q.Prefix), q.TableID, q.Exact != 0)
			return e
		}),
		core.Dump(func(q *ip.IPRouteDump, yield func(ip.IPRouteDetails)) {
			for _, r := range p.routesOf(q.Table) {
				yield(ip.IPRouteDetails{Route: ip.IPRoute{
					TableID: q.Table.TableID, StatsIndex: r.stats, Prefix: r.wire(), Paths: r.best().paths,
				}})
			}
		}),
		// The second version can be limited to one source: 8 selects routes with the API
		// as the source in effect.
		core.Dump(func(q *ip.IPRouteV2Dump, yield func(ip.IPRouteV2Details)) {
			for _, r := range p.routesOf(q.Table) {
				if q.Src == 0 || q.Src == r.source().number() {
					yield(ip.IPRouteV2Details{Route: r.v2(q.Table.TableID)})
				}
			}
		}),
	}})
}

// v2 returns the route in the form that also has its source.
func (r *route) v2(table uint32) ip.IPRouteV2 {
	return ip.IPRouteV2{
		TableID: table, StatsIndex: r.stats, Prefix: r.wire(), Src: r.source().number(), Paths: r.best().paths,
	}
}

// routesOf returns the routes of a table; of an unknown table there are none, and no error.
func (p *IP) routesOf(q ip.IPTable) []*route {
	t := p.tables.byKey[Key{q.IsIP6, q.TableID}]
	if t == nil {
		return nil
	}
	return t.routes.sorted()
}

// lookup returns the route of a prefix, or without exact the longest route that contains
// the prefix.
func (p *IP) lookup(prefix netip.Prefix, table uint32, exact bool) (ip.IPRouteV2, core.Errno) {
	t := p.tables.byKey[Key{prefix.Addr().Is6(), table}]
	if t == nil {
		return ip.IPRouteV2{}, api.NO_SUCH_FIB
	}
	for bits := prefix.Bits(); bits >= 0; bits-- {
		at, _ := prefix.Addr().Prefix(bits)
		if r := t.routes.byPrefix[at]; r != nil {
			return r.v2(table), core.OK
		}
		if exact {
			break
		}
	}
	return ip.IPRouteV2{}, api.NO_SUCH_ENTRY
}

// HasRoute returns whether a table has an entry for exactly this prefix.
func (p *IP) HasRoute(prefix netip.Prefix, table uint32) bool {
	_, errno := p.lookup(prefix, table, true)
	return errno == core.OK
}

// changeRoute adds, replaces or deletes an API route, and returns the index of the route's
// counter. VPP checks the paths before anything else, also those of a request to delete: a
// path through a deleted interface is refused there too.
func (p *IP) changeRoute(add, multipath bool, q ip.IPRoute) (uint32, core.Errno) {
	prefix := vppwire.PrefixOf(q.Prefix)
	t := p.tables.byKey[Key{prefix.Addr().Is6(), q.TableID}]
	if t == nil {
		return core.None, api.NO_SUCH_FIB
	}
	for n := range q.Paths {
		if errno := p.checkPath(&q.Paths[n]); errno != core.OK {
			return core.None, errno
		}
		leadToHost(prefix, &q.Paths[n])
	}
	if !add {
		t.routes.remove(prefix, multipath, q.Paths)
		p.Collect()
		return core.None, core.OK
	}
	if len(q.Paths) == 0 {
		return core.None, noPaths
	}
	paths := q.Paths
	if old := t.routes.byPrefix[prefix.Masked()]; multipath && old != nil && old.bySource[byAPI] != nil {
		paths = merge(old.bySource[byAPI].paths, paths)
	}
	return t.routes.declare(prefix, byAPI, &declaration{prefix, paths}).stats, core.OK
}

// checkPath completes a path as VPP does, or refuses it. A weight of 0 becomes 1, and a
// source lookup becomes a normal path. A path that drops has no next hop. VPP crashes on two types of path, and on a local
// path through an unknown interface.
func (p *IP) checkPath(path *fib_types.FibPath) core.Errno {
	path.Weight = max(path.Weight, 1)
	switch path.Type {
	case fib_types.FIB_API_PATH_TYPE_UDP_ENCAP, fib_types.FIB_API_PATH_TYPE_BIER_IMP:
		return core.Crash
	case fib_types.FIB_API_PATH_TYPE_SOURCE_LOOKUP:
		path.Type, path.SwIfIndex = fib_types.FIB_API_PATH_TYPE_NORMAL, core.None
	case fib_types.FIB_API_PATH_TYPE_DROP:
		path.Nh = fib_types.FibPathNh{}
	default: // the other types need no check of their own
	}
	if path.SwIfIndex != core.None {
		switch {
		case p.vpp.Interface(path.SwIfIndex) != nil:
			return core.OK
		case path.Type == fib_types.FIB_API_PATH_TYPE_LOCAL:
			return core.Crash
		}
		return api.NO_MATCHING_INTERFACE
	}
	ipv6 := path.Proto == fib_types.FIB_API_PATH_NH_PROTO_IP6
	if path.TableID != 0 && !p.HasTable(ipv6, path.TableID) {
		return api.NO_SUCH_FIB
	}
	return core.OK
}

// leadToHost makes a host the next hop of its own path by an interface, as VPP does
// (fib_table_route_path_fixup): the neighbour is then used once it is known.
func leadToHost(prefix netip.Prefix, path *fib_types.FibPath) {
	attached := path.Type == fib_types.FIB_API_PATH_TYPE_NORMAL && path.SwIfIndex != core.None && path.Nh == fib_types.FibPathNh{}
	if attached && prefix.IsSingleIP() {
		path.Nh.Address = vppwire.Address(prefix.Addr()).Un
	}
}

// pathText describes a path for the command line.
func (p *IP) pathText(ipv6 bool, path fib_types.FibPath) string {
	if path.Type == fib_types.FIB_API_PATH_TYPE_DROP {
		return "drop"
	}
	out := "via " + vppwire.AddrIn(path.Nh.Address, ipv6).String()
	if i := p.vpp.Interface(path.SwIfIndex); i != nil {
		out += " " + i.Name
	}
	return fmt.Sprintf("%s weight %d", out, path.Weight)
}
