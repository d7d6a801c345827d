package l3

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/teib"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/leftovers"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// VPP keeps a path by an interface that somebody has deleted, and gives it to the interface
// that gets the index next; and it refuses whatever names an interface that it does not have. It dies of a path that is taken
// away alone while another of its prefix is by an index that nobody has (VPP fib_path.c,
// fib_path_resolve): so none is that may be among such.

// dropDead takes away the path of a route by the interface that had an index, and those by
// others that VPP has no more. The prefix is given its other paths anew, or goes if there
// are none.
func (h handler) deleteStalePath(ctx context.Context, v *l3.Route, by uint32) error {
	v = h.withoutReferences(v)
	dst, err := netip.ParsePrefix(v.GetDstNetwork())
	if err != nil {
		return ErrUnallocated
	}
	h.changes.Lock()
	defer h.changes.Unlock()
	var has ip.IPRouteLookupV2Reply
	err = h.API.Call(ctx, &ip.IPRouteLookupV2{TableID: v.GetVrfId(), Exact: 1, Prefix: vppwire.Prefix(dst.Masked())}, &has)
	if errors.Is(err, api.NO_SUCH_ENTRY) {
		return nil
	}
	if err != nil {
		return err
	}
	route := ip.IPRoute{TableID: v.GetVrfId(), Prefix: has.Route.Prefix}
	if has.Route.Src == srcAPI {
		others := slices.DeleteFunc(slices.Clone(has.Route.Paths), func(p fib_types.FibPath) bool { return isPathOf(p, v, by) })
		if route.Paths, err = h.livePaths(ctx, others); err != nil || len(route.Paths) == len(has.Route.Paths) {
			return err
		}
	}
	return h.API.Call(ctx, &ip.IPRouteAddDel{IsAdd: len(route.Paths) > 0, Route: route}, &ip.IPRouteAddDelReply{})
}

// dropAllDead takes away the paths by interfaces that are gone, whosever they are, and returns the
// others. Interfaces are to have been read back.
func (h handler) deleteStalePaths(ctx context.Context, all []path) ([]path, error) {
	gone := map[uint32]bool{noInterface: false}
	for _, meta := range h.Interfaces.All() {
		gone[meta.Index] = false
	}
	var dead []path
	for _, p := range all {
		if _, known := gone[p.out]; !known {
			stands, err := h.interfaceExists(ctx, interface_types.InterfaceIndex(p.out))
			if err != nil {
				return nil, err
			}
			gone[p.out] = !stands
		}
		if gone[p.out] {
			dead = append(dead, p)
		}
	}
	for _, p := range dead {
		if err := h.deleteStalePath(ctx, p.route(map[uint32]string{p.out: "gone"}), p.out); err != nil {
			return nil, err
		}
	}
	if len(dead) > 0 {
		all = slices.DeleteFunc(all, func(p path) bool { return gone[p.out] })
	}
	return all, nil
}

// isOf tells whether a path is that of a route by the interface of an index; none: of none.
func isPathOf(p fib_types.FibPath, v *l3.Route, by uint32) bool {
	dst, _ := netip.ParsePrefix(v.GetDstNetwork())
	next, err := nextHopTo(dst, v)
	return by != noInterface && p.SwIfIndex == by && err == nil && vppwire.AddrIn(p.Nh.Address, next.Is6()) == next
}

// alive are the paths that are by no interface, or by one that VPP has.
func (h handler) livePaths(ctx context.Context, paths []fib_types.FibPath) (out []fib_types.FibPath, err error) {
	for _, p := range paths {
		if p.SwIfIndex != noInterface && p.SwIfIndex != 0 {
			stands, err := h.interfaceExists(ctx, interface_types.InterfaceIndex(p.SwIfIndex))
			if err != nil {
				return nil, err
			}
			if !stands {
				continue
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// stands tells whether VPP has an interface of that index.
func (h handler) interfaceExists(ctx context.Context, index interface_types.InterfaceIndex) (bool, error) {
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, h.API, &vppif.SwInterfaceDump{SwIfIndex: index})
	return len(all) > 0, err
}

// An ending is what may outlive an interface, and how it is ended.
type cleanup struct {
	name string // among all on an interface
	run  leftovers.End
}

// end ends something that is on an interface, or on who has got its index. If nobody has, it
// is ended when somebody gets it.
func (h handler) cleanUp(ctx context.Context, name string, e cleanup) error {
	index, known := h.indexOf(name)
	if !known {
		return nil
	}
	at := interface_types.InterfaceIndex(index)
	err := e.run(ctx, at)
	if errors.Is(err, api.INVALID_SW_IF_INDEX) {
		h.noteCleanup(at, "", e)
		err := h.Interfaces.Leftovers().Sweep(ctx, h.API, index) // somebody may have got it meanwhile
		return errors.Join(err, h.reclaimOrphans(ctx))
	}
	if err == nil {
		h.Interfaces.Leftovers().Ended(index, e.name)
	}
	return err
}

// reclaim ends the neighbours and TEIB entries on indexes that no interface has, and all else that
// is noted there.
func (h handler) reclaimOrphans(ctx context.Context) error {
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, h.API, &vppif.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(noInterface)})
	if err != nil {
		return err
	}
	stands := make(map[interface_types.InterfaceIndex]bool, len(all))
	for _, d := range all {
		stands[d.SwIfIndex] = true
	}
	neighbours, err := h.dumpNeighbours(ctx)
	if err != nil {
		return err
	}
	entries, err := conn.Dump[teib.TeibDetails](ctx, h.API, &teib.TeibDump{})
	if err != nil && !errors.Is(err, scheduler.ErrUnimplemented) {
		return err
	}
	for _, n := range neighbours {
		if !stands[n.SwIfIndex] {
			h.noteCleanup(n.SwIfIndex, "", h.neighbourCleanup(vppwire.Addr(n.IPAddress)))
		}
	}
	for _, d := range entries {
		if !stands[d.Entry.SwIfIndex] {
			h.noteCleanup(d.Entry.SwIfIndex, "", h.teibCleanup(vppwire.Addr(d.Entry.Peer)))
		}
	}
	return h.Interfaces.Leftovers().Reclaim(ctx, h.API)
}

// outlives notes what was found to be left of an interface that is gone.
func (h handler) noteOrphaned(ctx context.Context, at interface_types.InterfaceIndex, e cleanup) error {
	return h.Interfaces.Leftovers().NoteOrphaned(ctx, h.API, uint32(at), e.name, e.run)
}

// mayOutlive notes what will be left of an interface that stands.
func (h handler) noteCleanup(at interface_types.InterfaceIndex, name string, e cleanup) {
	h.Interfaces.Leftovers().Note(uint32(at), name, e.name, e.run)
}
