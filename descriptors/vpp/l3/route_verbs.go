package l3

import (
	"context"
	"errors"
	"iter"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// none is an interface that is none.
const none = ^uint32(0)

// wireRoute is v as VPP is given it: one path of a prefix.
func (h handler) wireRoute(v *l3.Route) (ip.IPRoute, error) {
	dst, err := netip.ParsePrefix(v.GetDstNetwork())
	if err != nil {
		return ip.IPRoute{}, ErrUnallocated
	}
	next, err := hop(v)
	if err != nil {
		return ip.IPRoute{}, err
	}
	path := fib_types.FibPath{
		SwIfIndex: none, Weight: uint8(max(v.GetWeight(), 1)), Preference: uint8(v.GetPreference()), Proto: protocolOf(dst.Addr().Is6()),
	}
	path.Nh.Address = vppwire.Address(next).Un
	switch v.GetType() {
	case l3.Route_DROP:
		path.Type = fib_types.FIB_API_PATH_TYPE_DROP
	case l3.Route_INTER_VRF:
		path.TableID = v.GetViaVrfId()
	default:
		path.TableID = v.GetVrfId()
	}
	if out := v.GetOutgoingInterface(); out != "" {
		meta, err := h.interfaceNamed(out)
		if err != nil {
			return ip.IPRoute{}, err
		}
		path.SwIfIndex = meta.Index
	}
	return ip.IPRoute{TableID: v.GetVrfId(), Prefix: vppwire.Prefix(dst.Masked()), Paths: []fib_types.FibPath{path}}, nil
}

// createRoute adds a path to the prefix. VPP keeps the weight that a path had before: so a
// route of another weight is deleted first, there is no Update.
func (h handler) createRoute(ctx context.Context, _ string, v *l3.Route) (struct{}, error) {
	return struct{}{}, h.changeRoute(ctx, v, true)
}

// deleteRoute takes away the path alone: others may have the same prefix.
func (h handler) deleteRoute(ctx context.Context, _ string, v *l3.Route, _ struct{}) error {
	err := h.changeRoute(ctx, v, false)
	if errors.Is(err, api.NO_SUCH_FIB) || errors.Is(err, api.NO_MATCHING_INTERFACE) {
		return nil
	}
	return err
}

func (h handler) changeRoute(ctx context.Context, v *l3.Route, add bool) error {
	route, err := h.wireRoute(h.withoutReferences(v))
	if err != nil {
		return err
	}
	return h.API.Call(ctx, &ip.IPRouteAddDel{IsAdd: add, IsMultipath: true, Route: route}, &ip.IPRouteAddDelReply{})
}

// retrieveRoutes yields each path of each route that came over the API, where VPP tells;
// where it does not, those of addresses and of VPP itself are left out by their looks. A
// declared one is ours; of others VPP does not know whose they are.
func (h handler) retrieveRoutes(ctx context.Context, wanted []scheduler.Wanted[*l3.Route]) iter.Seq2[scheduler.Found[*l3.Route, struct{}], error] {
	type found = scheduler.Found[*l3.Route, struct{}]
	return func(yield func(found, error) bool) {
		tables, err := h.tables(ctx)
		if err != nil {
			yield(found{}, err)
			return
		}
		names := h.namesByIndex()
		spelling := h.spellings(wanted)
		for _, t := range tables {
			all, err := h.routesOf(ctx, t)
			if err != nil {
				yield(found{}, err)
				return
			}
			for _, r := range all {
				for _, p := range r.Paths {
					v := routeOf(t, r, p, names)
					if v == nil {
						continue
					}
					declared := spelling.takes(v)
					if !yield(found{Value: v, Unknown: !declared}, nil) {
						return
					}
				}
			}
		}
	}
}

// srcAPI is the number of routes that came over the API (VPP fib_entry.h, FIB_SOURCE_API).
const srcAPI = 8

// routesOf are the routes of a table that came over the API.
func (h handler) routesOf(ctx context.Context, t ip.IPTable) ([]ip.IPRoute, error) {
	var out []ip.IPRoute
	if h.API.Has(&ip.IPRouteV2Dump{}) {
		details, err := conn.Dump[ip.IPRouteV2Details](ctx, h.API, &ip.IPRouteV2Dump{Src: srcAPI, Table: t})
		for _, d := range details {
			out = append(out, ip.IPRoute{TableID: d.Route.TableID, Prefix: d.Route.Prefix, Paths: d.Route.Paths})
		}
		return out, err
	}
	details, err := conn.Dump[ip.IPRouteDetails](ctx, h.API, &ip.IPRouteDump{Table: t})
	for _, d := range details {
		if !ofVPP(d.Route) {
			out = append(out, d.Route)
		}
	}
	return out, err
}

// ofVPP tells the routes that VPP makes by itself.
func ofVPP(r ip.IPRoute) bool {
	if len(r.Paths) != 1 {
		return false
	}
	p := r.Paths[0]
	drop := p.Type == fib_types.FIB_API_PATH_TYPE_DROP
	return p.Type == fib_types.FIB_API_PATH_TYPE_LOCAL || drop && p.SwIfIndex == none && vppwire.PrefixOf(r.Prefix).Addr().IsMulticast()
}

// routeOf is a path as a value; nil: one that no value can be. An interface that is
// gone has no name, and neither has its route.
func routeOf(t ip.IPTable, r ip.IPRoute, p fib_types.FibPath, names map[uint32]string) *l3.Route {
	v := &l3.Route{
		VrfId: t.TableID, DstNetwork: vppwire.PrefixOf(r.Prefix).Masked().String(),
		Weight: uint32(p.Weight), Preference: uint32(p.Preference),
	}
	if next := vppwire.AddrIn(p.Nh.Address, t.IsIP6); !next.IsUnspecified() {
		v.NextHopAddr = next.String()
	}
	switch {
	case p.Type == fib_types.FIB_API_PATH_TYPE_DROP:
		v.Type = l3.Route_DROP
	case p.Type != fib_types.FIB_API_PATH_TYPE_NORMAL:
		return nil
	case p.SwIfIndex == none && p.TableID != t.TableID:
		v.Type, v.ViaVrfId = l3.Route_INTER_VRF, p.TableID
	case p.SwIfIndex != none:
		if v.OutgoingInterface = names[p.SwIfIndex]; v.OutgoingInterface == "" {
			return nil
		}
	}
	return v
}
