package l3

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"

	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
)

// recreateRoute reports whether a change needs Delete and Create. Only the weight and the
// preference change in place. A route with references is recreated, because their addresses
// may have changed with it.
func recreateRoute(_ string, old, new *l3.Route, _ struct{}) bool {
	for _, v := range []*l3.Route{old, new} {
		if alloc.Is(v.GetDstNetwork()) || alloc.Is(v.GetNextHopAddr()) {
			return true
		}
	}
	return old.GetType() != new.GetType() || old.GetViaVrfId() != new.GetViaVrfId()
}

// updateRoute changes the weight and the preference of a path. VPP ignores them in a request
// to add a path that exists, so all paths of the prefix are set at once. Each packet takes
// either the old paths or the new ones. A Delete and a Create would lose packets between
// them.
func (h handler) updateRoute(ctx context.Context, _ string, _, v *l3.Route, _ struct{}) (struct{}, error) {
	by, err := h.outgoingIndex(v)
	if err == nil {
		err = h.replacePath(ctx, v, by)
	}
	if err == nil {
		err = h.verifyInterface(ctx, v, by)
	}
	return struct{}{}, err
}

// replacePath sets the prefix of v to the paths that it has, with the path of v as v has it.
// A path that is not there any more is added. Stale paths are left out, because VPP refuses
// a request that contains one.
func (h handler) replacePath(ctx context.Context, v *l3.Route, by uint32) error {
	route, err := wireRoute(v, by, nil)
	if err != nil {
		return err
	}
	h.changes.Lock()
	defer h.changes.Unlock()
	var has ip.IPRouteLookupV2Reply
	err = h.API.Call(ctx, &ip.IPRouteLookupV2{TableID: v.GetVrfId(), Exact: 1, Prefix: route.Prefix}, &has)
	switch {
	case errors.Is(err, api.NO_SUCH_ENTRY):
	case err != nil:
		return err
	// VPP shows only the paths of the source that it forwards by. While that is another one,
	// ours are hidden but not in use, so a removal loses no packet.
	case has.Route.Src != srcAPI:
		return h.addAgain(ctx, route)
	default:
		others := slices.DeleteFunc(slices.Clone(has.Route.Paths), func(p fib_types.FibPath) bool { return isSamePath(p, v, by) })
		others, err = h.livePaths(ctx, others)
		if err != nil {
			return err
		}
		route.Paths = append(others, route.Paths...)
	}
	return h.API.Call(ctx, &ip.IPRouteAddDel{IsAdd: true, Route: route}, &ip.IPRouteAddDelReply{})
}

// addAgain removes a path and adds it with its new weight and preference.
func (h handler) addAgain(ctx context.Context, route ip.IPRoute) error {
	for _, add := range []bool{false, true} {
		err := h.API.Call(ctx, &ip.IPRouteAddDel{IsAdd: add, IsMultipath: true, Route: route}, &ip.IPRouteAddDelReply{})
		if err != nil {
			return err
		}
	}
	return nil
}

// isSamePath reports whether p is the path of route v by the interface with index by, or
// by none, regardless of weight and preference.
func isSamePath(p fib_types.FibPath, v *l3.Route, by uint32) bool {
	dst, dstErr := netip.ParsePrefix(v.GetDstNetwork())
	next, nextErr := nextHopTo(dst, v)
	if dstErr != nil || nextErr != nil {
		return false
	}
	table := &ip.IPTable{TableID: v.GetVrfId(), IsIP6: dst.Addr().Is6()}
	has, ok := pathOf(table, ip.IPRoute{Prefix: vppwire.Prefix(dst)}, &p)
	return ok && has.pathID == newPathID(v.GetVrfId(), by, dst, next) && has.sameKind(v)
}
