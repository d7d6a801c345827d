package ip

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// A source has declared a route. Of several sources of one prefix the first one is in
// effect, and dumps show only that.
type source int

const (
	special   source = iota // every table has these routes, which nothing takes precedence over
	connected               // an interface's address
	byAPI
	byDefault // every table has these routes, too, until another source has the prefix
	sources
)

// The numbers of sources in version 2 of the route messages (VPP fib_source_t).
const (
	srcSpecial, srcInterface, srcAPI, srcDefault = 1, 4, 8, 20
	// srcLast is the largest number. VPP 25.10 crashes on a larger one.
	srcLast = 35
)

// number returns VPP's number of the source (VPP fib_entry.h).
func (s source) number() uint8 {
	return [...]uint8{special: srcSpecial, connected: srcInterface, byAPI: srcAPI, byDefault: srcDefault}[s]
}

// A declaration is a prefix with paths from one source.
type declaration struct {
	prefix netip.Prefix // as it was written first, with its host bits
	paths  []fib_types.FibPath
}

// A route is a prefix with the declarations of all sources.
type route struct {
	key      netip.Prefix // without host bits
	stats    uint32       // index of its counter
	bySource [sources]*declaration
}

// source returns the source that is in effect; negative: no source declares the route any more.
func (r *route) source() source {
	return source(slices.IndexFunc(r.bySource[:], func(d *declaration) bool { return d != nil }))
}

// best returns the declaration that is in effect.
func (r *route) best() *declaration { return r.bySource[r.source()] }

// wire returns the prefix in the form of messages.
func (r *route) wire() ip_types.Prefix { return vppwire.Prefix(r.best().prefix) }

// routes are the routes of one table, by prefix without host bits.
type routes struct {
	byPrefix map[netip.Prefix]*route
}

// newRoutes returns the routes of a new table: all of them drop packets.
func newRoutes(ipv6 bool) routes {
	all := routes{byPrefix: map[netip.Prefix]*route{}}
	drop := []fib_types.FibPath{{SwIfIndex: core.None, Weight: 1, Type: fib_types.FIB_API_PATH_TYPE_DROP}}
	has := func(s source, paths []fib_types.FibPath, prefixes ...string) {
		for _, text := range prefixes {
			p := netip.MustParsePrefix(text)
			all.declare(p, s, &declaration{p, paths})
		}
	}
	if ipv6 {
		drop[0].Proto = fib_types.FIB_API_PATH_NH_PROTO_IP6
		has(byDefault, drop, "::/0")
		// Link-local addresses are looked up in the table of their interface.
		has(special, []fib_types.FibPath{{SwIfIndex: core.None, Weight: 1, Proto: fib_types.FIB_API_PATH_NH_PROTO_IP6}}, "fe80::/10")
		return all
	}
	has(byDefault, drop, "0.0.0.0/0", "0.0.0.0/32", "255.255.255.255/32")
	has(special, drop, "240.0.0.0/4", "224.0.0.0/4")
	return all
}

// declare sets the declaration of a source for a prefix; nil withdraws it. The host bits
// of the first declaration stay: a route 122.0.0.77/24 is shown as such, and a change of
// 122.0.0.1/24 changes it.
func (all *routes) declare(p netip.Prefix, s source, d *declaration) *route {
	key := p.Masked()
	r := all.byPrefix[key]
	if r == nil {
		if d == nil {
			return nil
		}
		r = &route{key: key, stats: uint32(len(all.byPrefix))}
		all.byPrefix[key] = r
	}
	if old := r.bySource[s]; old != nil && d != nil {
		d.prefix = old.prefix
	}
	r.bySource[s] = d
	if r.source() < 0 {
		delete(all.byPrefix, key)
	}
	return r
}

// flush withdraws all API routes.
func (all *routes) flush() {
	for _, r := range slices.Collect(maps.Values(all.byPrefix)) {
		all.declare(r.key, byAPI, nil)
	}
}

// leadTo returns whether a path of an API route leads into a table.
func (all *routes) leadTo(t Key) bool {
	into := func(p fib_types.FibPath) bool {
		return p.TableID == t.ID && (p.Proto == fib_types.FIB_API_PATH_NH_PROTO_IP6) == t.IPv6
	}
	for _, r := range all.byPrefix {
		if d := r.bySource[byAPI]; d != nil && slices.ContainsFunc(d.paths, into) {
			return true
		}
	}
	return false
}

// sorted returns the routes by ascending prefix length, as VPP's dump does. Within one
// length VPP's order is that of a hash table; this one is by address.
func (all *routes) sorted() []*route {
	return slices.SortedFunc(maps.Values(all.byPrefix), func(a, b *route) int {
		return cmp.Or(cmp.Compare(a.key.Bits(), b.key.Bits()), a.key.Addr().Compare(b.key.Addr()))
	})
}

// remove deletes single paths of an API route in a multipath request. Any other request
// deletes the whole route without a look at its paths. An unknown prefix or path is no
// error.
func (all *routes) remove(p netip.Prefix, multipath bool, paths []fib_types.FibPath) {
	r := all.byPrefix[p.Masked()]
	if r == nil || r.bySource[byAPI] == nil {
		return
	}
	var left []fib_types.FibPath
	if multipath {
		left = slices.DeleteFunc(slices.Clone(r.bySource[byAPI].paths), func(o fib_types.FibPath) bool {
			return slices.ContainsFunc(paths, func(p fib_types.FibPath) bool { return samePath(o, p) })
		})
	}
	if len(left) == 0 {
		all.declare(p, byAPI, nil)
		return
	}
	all.declare(p, byAPI, &declaration{p, left})
}

// samePath ignores weight and preference.
func samePath(a, b fib_types.FibPath) bool {
	return a.SwIfIndex == b.SwIfIndex && a.TableID == b.TableID && a.Type == b.Type && a.Proto == b.Proto && a.Nh.Address == b.Nh.Address
}

// merge adds paths to existing ones. An existing path stays, so its weight cannot be
// changed in this way.
func merge(old, more []fib_types.FibPath) []fib_types.FibPath {
	out := slices.Clone(old)
	for _, p := range more {
		if !slices.ContainsFunc(out, func(o fib_types.FibPath) bool { return samePath(o, p) }) {
			out = append(out, p)
		}
	}
	return out
}
