package l3

import (
	"context"
	"errors"
	"net/netip"
	"sync"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// noInterface is VPP's index of no interface (~0).
const noInterface = ^uint32(0)

// routeChanges serializes changes of paths. Adding or deleting one path holds it for
// reading; replacing all paths of a prefix holds it for writing, because it must not lose a
// path that is added meanwhile. The pools keep requests for reuse: routes come in hundreds
// of thousands.
type routeChanges struct {
	sync.RWMutex
	pool      sync.Pool // of *change
	batchPool sync.Pool // of *several
}

// A routeChange is one request to add or delete a path, with the memory for its path and
// reply.
type routeChange struct {
	request ip.IPRouteAddDel
	path    [1]fib_types.FibPath
	reply   ip.IPRouteAddDelReply
	step    conn.Step // used in a batch
}

// A routeBatch is a group of changes that are sent together. steps refers to elements of
// list.
type routeBatch struct {
	list  []routeChange
	steps []*conn.Step
}

// batch returns a batch with room for n changes.
func (c *routeChanges) batch(n int) *routeBatch {
	// A pool may be emptied at any time by the garbage collector.
	all, ok := c.batchPool.Get().(*routeBatch)
	if !ok {
		all = &routeBatch{}
	}
	if cap(all.list) < n {
		all.list = make([]routeChange, n)
	}
	all.list, all.steps = all.list[:n], all.steps[:0]
	return all
}

// get returns an unused change.
func (c *routeChanges) get() *routeChange {
	if one, ok := c.pool.Get().(*routeChange); ok {
		return one
	}
	return &routeChange{request: ip.IPRouteAddDel{IsMultipath: true}}
}

// wireRoute converts v to VPP's form: one path of a prefix by the interface with index by.
// The path is appended to paths, so that the caller owns the memory.
func wireRoute(v *l3.Route, by uint32, paths []fib_types.FibPath) (ip.IPRoute, error) {
	dst, err := netip.ParsePrefix(v.GetDstNetwork())
	if err != nil {
		return ip.IPRoute{}, ErrUnallocated
	}
	next, err := nextHopTo(dst, v)
	if err != nil {
		return ip.IPRoute{}, err
	}
	path := fib_types.FibPath{
		SwIfIndex: by, Weight: uint8(max(v.GetWeight(), 1)), Preference: uint8(v.GetPreference()), Proto: protocolOf(next.Is6()),
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
	return ip.IPRoute{TableID: v.GetVrfId(), Prefix: vppwire.Prefix(dst.Masked()), Paths: append(paths, path)}, nil
}

// createRoute adds a path to the prefix.
func (h handler) createRoute(ctx context.Context, _ string, v *l3.Route) (struct{}, error) {
	by, err := h.outgoingIndex(v)
	if err == nil {
		err = h.changeRoute(ctx, v, by, true)
	}
	if err == nil {
		err = h.verifyInterface(ctx, v, by)
	}
	if err == nil {
		err = h.verifyEffect(ctx, v, by)
	}
	return struct{}{}, err
}

// createRoutes is createRoute for many values. The requests are sent together, without
// waiting for each reply.
func (h handler) createRoutes(ctx context.Context, values []scheduler.Desired[*l3.Route]) []scheduler.Created[struct{}] {
	out := make([]scheduler.Created[struct{}], len(values))
	all := h.changes.batch(len(values))
	for i, w := range values {
		out[i].Err = h.addToBatch(all, i, w.Value)
	}
	h.changes.RLock()
	// For reading: other single paths may change at the same time.
	_ = h.API.Batch(ctx, all.steps...) // each step has its own
	h.changes.RUnlock()
	whole := true
	for i, w := range values {
		one := &all.list[i]
		if out[i].Err == nil {
			out[i].Err = one.step.Err
			whole = whole && one.step.Err == nil // an error may refer to the request, so it is not reused
		}
		if out[i].Err == nil {
			out[i].Err = h.verifyInterface(ctx, w.Value, one.path[0].SwIfIndex)
		}
		if out[i].Err == nil {
			out[i].Err = h.verifyEffect(ctx, w.Value, one.path[0].SwIfIndex)
		}
	}
	if whole {
		h.changes.batchPool.Put(all)
	}
	return out
}

// addToBatch makes v the change with this number in the batch.
func (h handler) addToBatch(all *routeBatch, number int, v *l3.Route) error {
	by, err := h.outgoingIndex(v)
	if err != nil {
		return err
	}
	one := &all.list[number]
	route, err := wireRoute(h.withoutReferences(v), by, one.path[:0])
	if err != nil {
		return err
	}
	one.request.IsAdd, one.request.IsMultipath, one.request.Route = true, true, route
	// The step points into the list, so neither may move until the replies are there.
	one.step = conn.Step{Request: &one.request, Reply: &one.reply}
	all.steps = append(all.steps, &one.step)
	return nil
}

// outgoingIndex returns the index of the outgoing interface, or noInterface.
func (h handler) outgoingIndex(v *l3.Route) (uint32, error) {
	if v.GetOutgoingInterface() == "" {
		return noInterface, nil
	}
	meta, err := h.interfaceNamed(v.GetOutgoingInterface())
	return meta.Index, err
}

// verifyInterface checks after a change that the interface still has the index. Otherwise
// another client has deleted the interface, the path belongs to a different one, and it is
// removed.
func (h handler) verifyInterface(ctx context.Context, v *l3.Route, by uint32) error {
	if now, err := h.outgoingIndex(v); err != nil || now != by {
		return errors.Join(notFound(v.GetOutgoingInterface()), h.changeRoute(ctx, v, by, false))
	}
	return nil
}

// deleteRoute removes the path and leaves other paths of the prefix. VPP rejects the request
// if the interface was deleted; then the path is removed as stale.
func (h handler) deleteRoute(ctx context.Context, _ string, v *l3.Route, _ struct{}) error {
	// A route without an interface can always be deleted by its fields.
	by, exists := noInterface, true
	if out := v.GetOutgoingInterface(); out != "" {
		_, exists = h.Interfaces.Get(out)
		if index, known := h.indexOf(out); known {
			by = index
		}
	}
	// As VPP would answer, without asking it.
	err := error(api.NO_MATCHING_INTERFACE)
	if exists {
		err = h.changeRoute(ctx, v, by, false)
	}
	if errors.Is(err, api.NO_MATCHING_INTERFACE) {
		err = h.deleteStalePath(ctx, v, by)
	}
	if errors.Is(err, api.NO_SUCH_FIB) {
		return nil
	}
	return err
}

// indexOf returns the index of an interface, or its last index if it was deleted.
func (h handler) indexOf(name string) (uint32, bool) {
	if meta, ok := h.Interfaces.Get(name); ok {
		return meta.Index, true
	}
	return h.Interfaces.Last(name)
}

// changeRoute adds or deletes one path (VPP ip_route_add_del, multipath).
func (h handler) changeRoute(ctx context.Context, v *l3.Route, by uint32, add bool) error {
	one := h.changes.get()
	route, err := wireRoute(h.withoutReferences(v), by, one.path[:0])
	if err != nil {
		return err
	}
	one.request.IsAdd, one.request.Route = add, route
	h.changes.RLock()
	defer h.changes.RUnlock()
	err = h.API.Call(ctx, &one.request, &one.reply)
	if err == nil { // an error may refer to the request, so it is not reused
		h.changes.pool.Put(one)
	}
	return err
}

// retrieveRoutes yields each path of the routes that came over the API. Releases that do not
// report the source of a route need a heuristic: see madeByVPP. Declared routes are indexed
// in parallel to the dump, because both take long for many routes. VPP records no owner, so
// undeclared ones are Unknown.
func (h handler) retrieveRoutes(ctx context.Context, wanted []scheduler.Desired[*l3.Route]) scheduler.Retrieved[*l3.Route, struct{}] {
	type found = scheduler.Found[*l3.Route, struct{}]
	return reading.Of(func(learns bool, yield func(found, error) bool) {
		var ahead sync.WaitGroup
		// The goroutine reads wanted, which belongs to the caller, so it ends before the
		// iteration.
		defer ahead.Wait()
		var known declaredIndex
		index := sync.OnceFunc(func() { ahead.Go(func() { known = h.declaredRoutes(wanted) }) })
		all, own, err := h.paths(ctx, learns, index)
		if err != nil {
			yield(found{}, err)
			return
		}
		index()
		ahead.Wait()
		all, err = h.withoutStalePaths(ctx, all, learns)
		if err != nil {
			yield(found{}, err)
			return
		}
		names := h.namesByIndex()
		for i := range all {
			if f, ok := known.retrieved(&all[i], names); ok && !yield(f, nil) {
				return
			}
		}
		for i := range own {
			if f, ok := known.ofVPP(&own[i], names); ok && !yield(f, nil) {
				return
			}
		}
		h.outranked(ctx, known, yield)
	})
}

// The sources of routes (VPP fib_source.h). Each table has special routes and a default route, which drop
// packets. Those of interfaces lead to their addresses.
const (
	srcSpecial, srcInterface, srcAPI, srcDefault = 1, 4, 8, 20
)

// paths returns the paths of all routes that came over the API, and those that VPP has made itself. For those who only
// look, it also returns details. It calls begun at the first path.
func (h handler) paths(ctx context.Context, learns bool, begun func()) (out, own []path, err error) {
	tables, err := h.tables(ctx)
	if err != nil {
		return nil, nil, err
	}
	// Only version 2 can leave out the routes of other sources, such as connected ones.
	newer := h.API.Has(&ip.IPRouteV2Dump{})
	for _, t := range tables {
		each := func(r ip.IPRoute, take func(one path, ok bool, form fib_types.FibPathType)) {
			for i := range r.Paths {
				one, ok := pathOf(&t, r, &r.Paths[i])
				if !learns {
					one.shown = shownPathOf(&t, &r.Paths[i], one.out)
				}
				take(one, ok, r.Paths[i].Type)
			}
		}
		add := func(r ip.IPRoute) {
			each(r, func(one path, ok bool, _ fib_types.FibPathType) {
				if ok {
					begun()
					out = append(out, one)
				}
			})
		}
		addOwn := func(r ip.IPRoute) {
			each(r, func(one path, ok bool, form fib_types.FibPathType) {
				if ok || form == fib_types.FIB_API_PATH_TYPE_LOCAL {
					own = append(own, one)
				}
			})
		}
		if newer {
			err = h.dumpRoutesOf(ctx, srcAPI, t, add)
			for _, of := range []uint8{srcSpecial, srcDefault, srcInterface} {
				if err == nil {
					err = h.dumpRoutesOf(ctx, of, t, addOwn)
				}
			}
		} else {
			err = h.dumpRoutes(ctx, t, add, addOwn)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return out, own, nil
}

// dumpRoutesOf dumps only the routes of which this source is in effect (VPP ip_route_v2_dump). It
// decodes into one message again and again: a dump may have a million routes.
func (h handler) dumpRoutesOf(ctx context.Context, source uint8, t ip.IPTable, add func(ip.IPRoute)) error {
	var d ip.IPRouteV2Details
	return h.API.Details(ctx, &ip.IPRouteV2Dump{Src: source, Table: t}, &d, func(decoder *vppwire.Decoder, message []byte) error {
		if err := decoder.Decode(message, &d); err != nil {
			return err
		}
		add(ip.IPRoute{Prefix: d.Route.Prefix, Paths: d.Route.Paths})
		return nil
	})
}

// dumpRoutes dumps all routes, and tells those that VPP has made itself from the others.
func (h handler) dumpRoutes(ctx context.Context, t ip.IPTable, add, addOwn func(ip.IPRoute)) error {
	var d ip.IPRouteDetails
	return h.API.Details(ctx, &ip.IPRouteDump{Table: t}, &d, func(decoder *vppwire.Decoder, message []byte) error {
		if err := decoder.Decode(message, &d); err != nil {
			return err
		}
		if madeByVPP(d.Route) {
			addOwn(d.Route)
		} else {
			add(d.Route)
		}
		return nil
	})
}

// madeByVPP recognises routes that VPP adds by itself: those to its own addresses, and those
// that drop multicast.
func madeByVPP(r ip.IPRoute) bool {
	if len(r.Paths) != 1 {
		return false
	}
	p := r.Paths[0]
	drop := p.Type == fib_types.FIB_API_PATH_TYPE_DROP
	return p.Type == fib_types.FIB_API_PATH_TYPE_LOCAL || drop && p.SwIfIndex == noInterface && vppwire.PrefixOf(r.Prefix).Addr().IsMulticast()
}
