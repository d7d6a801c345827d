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
)

// VPP keeps a path when its outgoing interface is deleted, and uses it for the next
// interface with that index. VPP rejects every request that names an index without an
// interface. It crashes if one path of a prefix is removed while another path has such an
// index (VPP fib_path.c, fib_path_resolve). Therefore stale paths are never removed one by
// one: the prefix gets all its remaining paths at once.

// deleteStalePath removes the path of a route by the interface with index by, and other
// paths of the prefix without an interface. The prefix is set to its remaining paths, or
// deleted if there are none.
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
	// Paths of another source are not ours: the prefix is then removed as a whole, which
	// removes only the part that came over the API.
	if has.Route.Src == srcAPI {
		others := slices.DeleteFunc(slices.Clone(has.Route.Paths), func(p fib_types.FibPath) bool { return isPathOf(p, v, by) })
		route.Paths, err = h.livePaths(ctx, others)
		if err != nil || len(route.Paths) == len(has.Route.Paths) {
			return err
		}
	}
	return h.API.Call(ctx, &ip.IPRouteAddDel{IsAdd: len(route.Paths) > 0, Route: route}, &ip.IPRouteAddDelReply{})
}

// withoutStalePaths returns the paths without those by deleted interfaces. With remove, VPP loses these too,
// regardless of their owner. Interfaces must have been read back before.
func (h handler) withoutStalePaths(ctx context.Context, all []path, remove bool) ([]path, error) {
	// VPP is asked once per index that no known interface has.
	gone := map[uint32]bool{noInterface: false}
	for _, meta := range h.Interfaces.All() {
		gone[meta.Index] = false
	}
	var stale []path
	for _, p := range all {
		if _, known := gone[p.out]; !known {
			exists, err := h.interfaceExists(ctx, interface_types.InterfaceIndex(p.out))
			if err != nil {
				return nil, err
			}
			gone[p.out] = !exists
		}
		if gone[p.out] {
			stale = append(stale, p)
		}
	}
	for _, p := range stale {
		if !remove {
			break
		}
		if err := h.deleteStalePath(ctx, p.route(map[uint32]string{p.out: "gone"}), p.out); err != nil {
			return nil, err
		}
	}
	if len(stale) > 0 {
		all = slices.DeleteFunc(all, func(p path) bool { return gone[p.out] })
	}
	return all, nil
}

// isPathOf reports whether p is the path of route v by the interface with index by. It is
// false without an interface.
func isPathOf(p fib_types.FibPath, v *l3.Route, by uint32) bool {
	dst, _ := netip.ParsePrefix(v.GetDstNetwork())
	next, err := nextHopTo(dst, v)
	return by != noInterface && p.SwIfIndex == by && err == nil && vppwire.AddrIn(p.Nh.Address, next.Is6()) == next
}

// livePaths returns the paths without an interface, and those by an existing one.
func (h handler) livePaths(ctx context.Context, paths []fib_types.FibPath) (out []fib_types.FibPath, err error) {
	for _, p := range paths {
		// Index 0 is local0, which always exists.
		if p.SwIfIndex != noInterface && p.SwIfIndex != 0 {
			exists, err := h.interfaceExists(ctx, interface_types.InterfaceIndex(p.SwIfIndex))
			if err != nil {
				return nil, err
			}
			if !exists {
				continue
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// interfaceExists asks VPP whether an interface has this index.
func (h handler) interfaceExists(ctx context.Context, index interface_types.InterfaceIndex) (bool, error) {
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, h.API, &vppif.SwInterfaceDump{SwIfIndex: index})
	return len(all) > 0, err
}

// A cleanup removes one piece of state that VPP may keep after the interface is deleted.
type cleanup struct {
	name string // among all on an interface
	run  leftovers.End
}

// cleanUp removes state from an interface, or from the next interface with its index. If no
// interface has the index, VPP refuses the request; the cleanup then waits until one has it.
func (h handler) cleanUp(ctx context.Context, name string, e cleanup) error {
	index, known := h.indexOf(name)
	if !known {
		return nil
	}
	at := interface_types.InterfaceIndex(index)
	err := e.run(ctx, at)
	if errors.Is(err, api.INVALID_SW_IF_INDEX) {
		h.noteCleanup(at, "", e)
		err := h.Interfaces.Leftovers().EndStale(ctx, h.API, index) // somebody may have got it meanwhile
		return errors.Join(err, h.reclaimOrphans(ctx))
	}
	if err == nil {
		h.Interfaces.Leftovers().Ended(index, e.name)
	}
	return err
}

// reclaimOrphans removes neighbours and TEIB entries on indexes without an interface, and
// all other state that is noted there.
func (h handler) reclaimOrphans(ctx context.Context) error {
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, h.API, &vppif.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(noInterface)})
	if err != nil {
		return err
	}
	exists := make(map[interface_types.InterfaceIndex]bool, len(all))
	for _, d := range all {
		exists[d.SwIfIndex] = true
	}
	neighbours, err := h.dumpNeighbours(ctx)
	if err != nil {
		return err
	}
	entries, err := conn.Dump[teib.TeibDetails](ctx, h.API, &teib.TeibDump{})
	if err != nil {
		return err
	}
	for _, n := range neighbours {
		if !exists[n.SwIfIndex] {
			h.noteCleanup(n.SwIfIndex, "", h.neighbourCleanup(vppwire.Addr(n.IPAddress)))
		}
	}
	for _, d := range entries {
		if !exists[d.Entry.SwIfIndex] {
			h.noteCleanup(d.Entry.SwIfIndex, "", h.teibCleanup(vppwire.Addr(d.Entry.Peer)))
		}
	}
	return h.Interfaces.Leftovers().Reclaim(ctx, h.API)
}

// noteOrphaned records state that was found on a deleted interface.
func (h handler) noteOrphaned(ctx context.Context, at interface_types.InterfaceIndex, e cleanup) error {
	return h.Interfaces.Leftovers().NoteOrphaned(ctx, h.API, uint32(at), e.name, e.run)
}

// noteCleanup records state on an existing interface, to be removed after the interface is
// deleted.
func (h handler) noteCleanup(at interface_types.InterfaceIndex, name string, e cleanup) {
	h.Interfaces.Leftovers().Note(uint32(at), name, e.name, e.run)
}
