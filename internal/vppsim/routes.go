package vppsim

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// A source is who has a route of a prefix; of several the first counts.
type source int

const (
	connected source = iota // an interface's address
	byAPI
	special // every table has it
	sources
)

// numbers of sources in version 2 of the route messages (VPP fib_source_t).
const (
	srcInterface, srcAPI, srcSpecial = 4, 8, 1
)

func (s source) number() uint8 {
	return [...]uint8{connected: srcInterface, byAPI: srcAPI, special: srcSpecial}[s]
}

// A claim is what one source says of a prefix.
type claim struct {
	prefix netip.Prefix // as it was written first: it may have bits of the host
	paths  []fib_types.FibPath
}

// A route is a prefix with all who claim it.
type route struct {
	key    netip.Prefix // masked
	stats  uint32
	claims [sources]*claim
}

func (r *route) best() source {
	return source(slices.IndexFunc(r.claims[:], func(c *claim) bool { return c != nil }))
}

func (r *route) shown() *claim { return r.claims[r.best()] }

// routes are those of a table, by masked prefix.
type routes struct {
	byPrefix map[netip.Prefix]*route
	ipv6     bool
}

func (all *routes) init(ipv6 bool) {
	all.byPrefix, all.ipv6 = map[netip.Prefix]*route{}, ipv6
	drop := []fib_types.FibPath{{SwIfIndex: none, Weight: 1, Type: fib_types.FIB_API_PATH_TYPE_DROP}}
	prefixes := []string{"0.0.0.0/0", "240.0.0.0/4", "224.0.0.0/4", "0.0.0.0/32", "255.255.255.255/32"}
	if ipv6 {
		prefixes = []string{"::/0", "fe80::/10"}
	}
	for _, text := range prefixes {
		p := netip.MustParsePrefix(text)
		all.claim(p, special, &claim{p, drop})
	}
}

// claim sets what a source says of a prefix; nil takes it back.
func (all *routes) claim(p netip.Prefix, s source, c *claim) *route {
	key := p.Masked()
	r := all.byPrefix[key]
	if r == nil {
		if c == nil {
			return nil
		}
		r = &route{key: key, stats: uint32(len(all.byPrefix))}
		all.byPrefix[key] = r
	}
	if old := r.claims[s]; old != nil && c != nil {
		c.prefix = old.prefix
	}
	if r.claims[s] = c; r.best() < 0 {
		delete(all.byPrefix, key)
	}
	return r
}

func (all *routes) flush() {
	for _, r := range slices.Collect(maps.Values(all.byPrefix)) {
		all.claim(r.key, byAPI, nil)
	}
}

// leadTo tells whether a path leads into the table.
func (all *routes) leadTo(t *fib) bool {
	for _, r := range all.byPrefix {
		if c := r.claims[byAPI]; c != nil && slices.ContainsFunc(c.paths, func(p fib_types.FibPath) bool {
			return p.TableID == t.id && (p.Proto == fib_types.FIB_API_PATH_NH_PROTO_IP6) == t.ipv6
		}) {
			return true
		}
	}
	return false
}

// sorted is by length of the prefix, as VPP's dump is.
func (all *routes) sorted() []*route {
	return slices.SortedFunc(maps.Values(all.byPrefix), func(a, b *route) int {
		return cmp.Or(cmp.Compare(a.key.Bits(), b.key.Bits()), a.key.Addr().Compare(b.key.Addr()))
	})
}

// noPaths is VPP's NO_PATHS_IN_ROUTE, which GoVPP has under an older name.
const noPaths errno = -52

func routeMessages() []entry {
	return []entry{
		call(func(w *world, q *ip.IPRouteAddDel, r *ip.IPRouteAddDelReply) (e errno) {
			r.StatsIndex, e = w.changeRoute(q.IsAdd, q.IsMultipath, q.Route)
			return e
		}),
		call(func(w *world, q *ip.IPRouteAddDelV2, r *ip.IPRouteAddDelV2Reply) (e errno) {
			if q.Route.Src > srcLast {
				return crash
			}
			r.StatsIndex, e = w.changeRoute(q.IsAdd, q.IsMultipath, ip.IPRoute{TableID: q.Route.TableID, Prefix: q.Route.Prefix, Paths: q.Route.Paths})
			return e
		}),
		call(func(w *world, q *ip.IPRouteLookupV2, r *ip.IPRouteLookupV2Reply) (e errno) {
			r.Route, e = w.lookup(vppwire.PrefixOf(q.Prefix), q.TableID, q.Exact != 0)
			return e
		}),
		dump(func(w *world, q *ip.IPRouteDump, yield func(ip.IPRouteDetails)) {
			for r := range w.routesOf(q.Table) {
				yield(ip.IPRouteDetails{Route: ip.IPRoute{TableID: q.Table.TableID, StatsIndex: r.stats, Prefix: r.wire(), Paths: r.shown().paths}})
			}
		}),
		dump(func(w *world, q *ip.IPRouteV2Dump, yield func(ip.IPRouteV2Details)) {
			for r := range w.routesOf(q.Table) {
				if src := r.best().number(); q.Src == 0 || q.Src == src {
					yield(ip.IPRouteV2Details{Route: ip.IPRouteV2{TableID: q.Table.TableID, StatsIndex: r.stats, Prefix: r.wire(), Src: src, Paths: r.shown().paths}})
				}
			}
		}),
	}
}

// lookup finds the route of a prefix or, unless exact, the longest that has it in it.
func (w *world) lookup(p netip.Prefix, table uint32, exact bool) (ip.IPRouteV2, errno) {
	t := w.tables.find(p.Addr().Is6(), table)
	if t == nil {
		return ip.IPRouteV2{}, api.NO_SUCH_FIB
	}
	for bits := p.Bits(); bits >= 0; bits-- {
		at, _ := p.Addr().Prefix(bits)
		if r := t.routes.byPrefix[at]; r != nil {
			return ip.IPRouteV2{TableID: table, StatsIndex: r.stats, Prefix: r.wire(), Src: r.best().number(), Paths: r.shown().paths}, ok
		}
		if exact {
			break
		}
	}
	return ip.IPRouteV2{}, api.NO_SUCH_ENTRY
}

// srcLast is the last source there is; VPP does not survive a larger one.
const srcLast = 35

func (w *world) routesOf(t ip.IPTable) func(yield func(*route) bool) {
	found := w.tables.find(t.IsIP6, t.TableID)
	return func(yield func(*route) bool) {
		if found == nil {
			return
		}
		for _, r := range found.routes.sorted() {
			if !yield(r) {
				return
			}
		}
	}
}

func (r *route) wire() ip_types.Prefix {
	return vppwire.Prefix(r.shown().prefix)
}

// changeRoute returns the index of the route's counter.
func (w *world) changeRoute(add, multipath bool, q ip.IPRoute) (uint32, errno) {
	p := vppwire.PrefixOf(q.Prefix)
	t := w.tables.find(p.Addr().Is6(), q.TableID)
	if t == nil {
		return none, api.NO_SUCH_FIB
	}
	for n := range q.Paths {
		if errno := w.checkPath(&q.Paths[n]); errno != ok {
			return none, errno
		}
	}
	if !add {
		t.removeRoute(p, multipath, q.Paths)
		w.tables.unboundIfDeleted(w)
		return none, ok
	}
	if len(q.Paths) == 0 {
		return none, noPaths
	}
	paths := q.Paths
	if old := t.routes.byPrefix[p.Masked()]; multipath && old != nil && old.claims[byAPI] != nil {
		paths = merge(old.claims[byAPI].paths, paths)
	}
	return t.routes.claim(p, byAPI, &claim{p, paths}).stats, ok
}

// unboundIfDeleted is unbound, when there may be something to let go.
func (all *tables) unboundIfDeleted(w *world) {
	for _, t := range all.byKey {
		if t.deleted {
			all.unbound(w)
			return
		}
	}
}

// checkPath completes a path as VPP does, or refuses it.
func (w *world) checkPath(p *fib_types.FibPath) errno {
	p.Weight = max(p.Weight, 1)
	switch p.Type {
	case fib_types.FIB_API_PATH_TYPE_UDP_ENCAP, fib_types.FIB_API_PATH_TYPE_BIER_IMP:
		return crash
	case fib_types.FIB_API_PATH_TYPE_SOURCE_LOOKUP:
		p.Type, p.SwIfIndex = fib_types.FIB_API_PATH_TYPE_NORMAL, none
	}
	if p.SwIfIndex != none && w.interfaces.byIndex[p.SwIfIndex] == nil {
		if p.Type == fib_types.FIB_API_PATH_TYPE_LOCAL {
			return crash
		}
		return api.NO_MATCHING_INTERFACE
	}
	if p.SwIfIndex == none && p.TableID != 0 && w.tables.find(p.Proto == fib_types.FIB_API_PATH_NH_PROTO_IP6, p.TableID) == nil {
		return api.NO_SUCH_FIB
	}
	return ok
}

// samePath ignores weight and preference.
func samePath(a, b fib_types.FibPath) bool {
	return a.SwIfIndex == b.SwIfIndex && a.TableID == b.TableID && a.Type == b.Type && a.Proto == b.Proto && a.Nh.Address == b.Nh.Address
}

// merge adds paths to those there are; one that is there stays as it was.
func merge(old, more []fib_types.FibPath) []fib_types.FibPath {
	out := slices.Clone(old)
	for _, p := range more {
		if !slices.ContainsFunc(out, func(o fib_types.FibPath) bool { return samePath(o, p) }) {
			out = append(out, p)
		}
	}
	return out
}

// removeRoute removes single paths if it is a matter of many, and otherwise the
// prefix, whatever its paths are.
func (t *fib) removeRoute(p netip.Prefix, multipath bool, paths []fib_types.FibPath) {
	r := t.routes.byPrefix[p.Masked()]
	if r == nil || r.claims[byAPI] == nil {
		return
	}
	var left []fib_types.FibPath
	if multipath {
		left = slices.DeleteFunc(slices.Clone(r.claims[byAPI].paths), func(o fib_types.FibPath) bool {
			return slices.ContainsFunc(paths, func(p fib_types.FibPath) bool { return samePath(o, p) })
		})
	}
	if len(left) == 0 {
		t.routes.claim(p, byAPI, nil)
		return
	}
	t.routes.claim(p, byAPI, &claim{p, left})
}

// connected brings the routes of an interface's addresses up to date: there are
// some only while it is up.
func (w *world) connected(i *iface) {
	for _, c := range i.claimed {
		if t := w.tables.byKey[c.table]; t != nil {
			t.routes.claim(c.prefix, connected, nil)
		}
	}
	i.claimed = nil
	if i.flags&adminUp == 0 {
		return
	}
	for _, a := range i.addresses {
		key := tableKey{a.Addr().Is6(), i.table[family(a.Addr().Is6())]}
		t := w.tables.byKey[key]
		if t == nil {
			continue
		}
		for _, c := range connectedOf(a, i.index) {
			i.claimed = append(i.claimed, ownClaim{key, c.prefix})
			t.routes.claim(c.prefix, connected, &c)
		}
	}
}

// An ownClaim is a route that an interface's address has made.
type ownClaim struct {
	table  tableKey
	prefix netip.Prefix
}

// connectedOf are the routes of an address: the network, the host, and of IPv4 what
// is dropped at its ends.
func connectedOf(a netip.Prefix, index uint32) []claim {
	host := netip.PrefixFrom(a.Addr(), a.Addr().BitLen())
	via := func(kind fib_types.FibPathType, index uint32, next netip.Addr) []fib_types.FibPath {
		p := fib_types.FibPath{SwIfIndex: index, Weight: 1, Type: kind}
		if a.Addr().Is6() {
			p.Proto = fib_types.FIB_API_PATH_NH_PROTO_IP6
		}
		if next.IsValid() {
			p.Nh.Address = vppwire.Address(next).Un
		}
		return []fib_types.FibPath{p}
	}
	local := claim{host, via(fib_types.FIB_API_PATH_TYPE_LOCAL, index, a.Addr())}
	if a.IsSingleIP() {
		return []claim{local}
	}
	network := a
	if a.Addr().Is6() {
		network = a.Masked()
	}
	out := []claim{{network, via(fib_types.FIB_API_PATH_TYPE_NORMAL, index, netip.Addr{})}, local}
	if a.Addr().Is6() {
		return out
	}
	first, last := a.Masked().Addr(), lastOf(a)
	if a.Bits() == 31 {
		peer := first
		if a.Addr() == first {
			peer = last
		}
		return append(out, claim{netip.PrefixFrom(peer, 32), via(fib_types.FIB_API_PATH_TYPE_NORMAL, index, peer)})
	}
	for _, end := range []netip.Addr{first, last} {
		if end != a.Addr() {
			out = append(out, claim{netip.PrefixFrom(end, 32), via(fib_types.FIB_API_PATH_TYPE_DROP, none, netip.Addr{})})
		}
	}
	return out
}

// lastOf is the last address of an IPv4 network.
func lastOf(p netip.Prefix) netip.Addr {
	four := p.Masked().Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		four[bit/8] |= 0x80 >> (bit % 8)
	}
	return netip.AddrFrom4(four)
}

func pathText(w *world, ipv6 bool, p fib_types.FibPath) string {
	if p.Type == fib_types.FIB_API_PATH_TYPE_DROP {
		return "drop"
	}
	out := "via " + vppwire.AddrIn(p.Nh.Address, ipv6).String()
	if i := w.interfaces.byIndex[p.SwIfIndex]; i != nil {
		out += " " + i.name
	}
	return fmt.Sprintf("%s weight %d", out, p.Weight)
}
