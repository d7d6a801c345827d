package l3

import (
	"cmp"
	"context"
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/linux/iface"
	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// createRoute is createRoutes for one value.
func (h handler) createRoute(ctx context.Context, key string, v *l3.Route) (RouteMeta, error) {
	one := h.createRoutes(ctx, []scheduler.Desired[*l3.Route]{{Key: key, Value: v}})[0]
	return one.Meta, one.Err
}

// createRoutes adds routes. Those of one interface, one after the other, go to the kernel together.
func (h handler) createRoutes(_ context.Context, values []scheduler.Desired[*l3.Route]) []scheduler.Created[RouteMeta] {
	out := make([]scheduler.Created[RouteMeta], len(values))
	for from, to := 0, 0; from < len(values); from = to {
		name := values[from].Value.GetOutgoingInterface()
		for to < len(values) && values[to].Value.GetOutgoingInterface() == name {
			to++
		}
		h.createThrough(name, values[from:to], out[from:to])
	}
	return out
}

// createThrough adds routes that leave by the interface with this name, and sets the result of each.
func (h handler) createThrough(name string, values []scheduler.Desired[*l3.Route], out []scheduler.Created[RouteMeta]) {
	meta, space, err := h.at(name)
	if err != nil {
		for i := range out {
			out[i].Err = err
		}
		return
	}
	defer space.Close()
	routes, index := make([]kernel.Route, 0, len(values)), make([]int, 0, len(values))
	for i, w := range values {
		r, err := kernelRoute(h.withoutReferences(w.Value), meta.Index, h.table(meta))
		if out[i].Err = err; err == nil {
			routes, index = append(routes, r), append(index, i)
		}
	}
	began := h.Watch.Clock()
	results := space.AddRoutes(routes...)
	there := placesOf(space, routes, results)
	for n, err := range results {
		i := index[n]
		if errors.Is(err, unix.EEXIST) {
			err = h.takePlace(space, values[i].Key, routes[n], there)
		} else {
			err = kernel.Refused(err)
		}
		if out[i].Err = err; err == nil {
			out[i].Meta = h.createdRoute(space, values[i].Key, routes[n], began)
		}
	}
}

// table returns the routing table of an interface: that of its VRF, or the main table.
func (h handler) table(meta iface.Meta) uint32 {
	if meta.VRF == "" {
		return kernel.MainTable
	}
	vrf, _ := h.Interfaces.Get(meta.VRF)
	return cmp.Or(vrf.Table, kernel.MainTable)
}

// createdRoute tells the watcher about the route of a verb that began then, and returns the metadata.
func (h handler) createdRoute(space *netns.Space, key string, r kernel.Route, began uint64) RouteMeta {
	h.Watch.Created(space, drift.Route(space.ID, r), entryOfRoute(key, r), began)
	return RouteMeta{NS: space.ID, Route: r}
}

// entryOfRoute returns the watcher's form of a route.
func entryOfRoute(key string, r kernel.Route) drift.Entry {
	return drift.Entry{Key: key, Link: r.Link, Route: r}
}

// updateRoute adds the new route before it removes the old one, so packets always have one. It does not
// have the kernel replace a route: that would be the first one in the place, whoever has made it. The
// watcher forgets the old route first.
func (h handler) updateRoute(_ context.Context, key string, _, v *l3.Route, was RouteMeta) (RouteMeta, error) {
	meta, space, err := h.at(v.GetOutgoingInterface())
	if err != nil {
		return RouteMeta{}, err
	}
	defer space.Close()
	r, err := kernelRoute(h.withoutReferences(v), meta.Index, h.table(meta))
	if err != nil {
		return RouteMeta{}, err
	}
	if was.NS == space.ID && was.Route.Is(r) {
		return was, nil // only the notation differs
	}
	began := h.Watch.Clock()
	how, _ := h.Watch.Lost(drift.Route(was.NS, was.Route), key)
	h.Watch.Forget(drift.Route(was.NS, was.Route))
	// A request to remove a route without a gateway means the first one on the link, whatever its gateway. One
	// with a gateway means the first one with that, whatever its flags and scope.
	first := !was.Route.Gateway.IsValid() || was.Route.Gateway == r.Gateway && was.Route.Link == r.Link
	if first {
		err = gone(space.DelRoute(was.Route))
	}
	if err == nil {
		err = h.addBeside(space, r, how.Behind)
	}
	if err == nil && !first {
		err = gone(space.DelRoute(was.Route))
	}
	if err != nil {
		return RouteMeta{}, err
	}
	return h.createdRoute(space, key, r, began), nil
}

// gone returns nil if the route that is to be removed does not exist, else the error.
func gone(err error) error {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// deleteRoute removes the route as it was written. A missing one is no error.
func (h handler) deleteRoute(_ context.Context, _ string, _ *l3.Route, was RouteMeta) error {
	at := drift.Route(was.NS, was.Route)
	h.Watch.Forget(at)
	space, ok := h.Spaces.ByID(was.NS)
	if !ok {
		return nil // the route vanished with its namespace
	}
	defer space.Close()
	err := gone(space.DelRoute(was.Route))
	for _, r := range was.Maybe {
		err = errors.Join(err, gone(space.DelRoute(r)))
	}
	h.Watch.Left(at)
	return err
}

// retrieveRoutes yields the routes of our protocol through existing interfaces. Through an
// EXISTING interface only desired routes count.
func (h handler) retrieveRoutes(_ context.Context, wanted []scheduler.Desired[*l3.Route]) scheduler.Retrieved[*l3.Route, RouteMeta] {
	return func(yield func(scheduler.Found[*l3.Route, RouteMeta], error) bool) {
		values := make(map[string]scheduler.Desired[*l3.Route], len(wanted))
		for _, w := range wanted {
			values[h.routeIdentity(w.Key, w.Value).Resource] = w
		}
		for space, links := range h.spaces() {
			routes, err := space.Routes(func(r kernel.Route) bool { return maybeOurs(r) && links[r.Link].name != "" })
			if err != nil {
				yield(scheduler.Found[*l3.Route, RouteMeta]{}, err)
				return
			}
			unknown := map[string]*scheduler.Found[*l3.Route, RouteMeta]{}
			for _, r := range routes {
				on := links[r.Link]
				f, declared := h.readRoute(r, on.name, values)
				if f.Value == nil || on.existing && !declared {
					continue
				}
				f.Meta.NS = space.ID
				if f.OwnerUnknown {
					collect(unknown, f)
					continue
				}
				f.Learned = func() { h.Watch.Retrieved(space, drift.Route(space.ID, r), entryOfRoute(f.Key, f.Meta.Route)) }
				delete(unknown, f.Key)
				if !yield(f, nil) {
					return
				}
			}
			for _, f := range unknown {
				if !yield(*f, nil) {
					return
				}
			}
		}
	}
}

// collect keeps one route of each key. It may be ours, as may others with this key: Delete tries all.
func collect(unknown map[string]*scheduler.Found[*l3.Route, RouteMeta], f scheduler.Found[*l3.Route, RouteMeta]) {
	if first := unknown[f.Key]; first != nil {
		first.Meta.Maybe = append(first.Meta.Maybe, f.Meta.Route)
		return
	}
	unknown[f.Key] = &f
}

// maybeOurs reports whether the agent may have made a route. The kernel does not tell the protocol of
// each next hop of IPv6.
func maybeOurs(r kernel.Route) bool {
	return r.Protocol == kernel.Protocol || r.Protocol == 0 && r.Dst.Addr().Is6() && r.Plain()
}

// readRoute returns a route in the form of Retrieve. It returns the desired value itself if
// the kernel's route equals it, so that the notation does not differ. declared reports
// whether a route is desired in this place. Value is nil if the route does not count as ours: somebody has
// changed it, so that Create restores it, or it is the next hop of an unknown owner beside ours.
func (h handler) readRoute(r kernel.Route, name string, wanted map[string]scheduler.Desired[*l3.Route]) (f scheduler.Found[*l3.Route, RouteMeta], declared bool) {
	v := &l3.Route{OutgoingInterface: name, Scope: scopeOf(r.Scope), DstNetwork: r.Dst.String(), Metric: r.Metric}
	if r.Gateway.IsValid() {
		v.GwAddr, v.OnLink = r.Gateway.String(), r.Flags&unix.RTNH_F_ONLINK != 0
	} else if r.Dst.Addr().Is6() {
		v.Scope = l3.Route_LINK
	}
	known := r.Protocol == kernel.Protocol
	r.Protocol = kernel.Protocol
	f = scheduler.Found[*l3.Route, RouteMeta]{Key: routeKey(v), Value: v, Meta: RouteMeta{Route: r}, OwnerUnknown: !known}
	want, declared := wanted[f.Key]
	if !declared {
		return f, false
	}
	f.Key = want.Key
	// Compared in the kernel's form, in which each setting has one notation.
	as, err := kernelRoute(h.withoutReferences(want.Value), r.Link, r.Table)
	switch {
	case err == nil && as.Is(r):
		f.Value, f.OwnerUnknown = want.Value, false
	case !known || !r.Plain():
		f.Value = nil
	default:
		v.DstNetwork = want.Value.GetDstNetwork()
	}
	return f, true
}

// routeKey returns the key of a route in canonical notation. The prefix is masked, so that 10.1.0.7/16 and
// 10.1.0.0/16 have one key.
func routeKey(v *l3.Route) string {
	dst := v.GetDstNetwork()
	if p, err := netip.ParsePrefix(dst); err == nil {
		dst = p.Masked().String()
	}
	return models.For[*l3.Route]().KeyOf(dst + "/" + v.GetOutgoingInterface())
}

// routeIdentity returns the identity of a route: its key in canonical notation, with its references resolved.
func (h handler) routeIdentity(_ string, v *l3.Route) scheduler.Claim {
	return scheduler.Claim{
		Resource: routeKey(h.withoutReferences(v)), Field: "dst_network", Value: v.GetDstNetwork(),
		Want: "a network that no other route by this interface has",
	}
}

// withoutReferences returns v with its references resolved. Unknown references stay.
func (h handler) withoutReferences(v *l3.Route) *l3.Route {
	if !alloc.Is(v.GetDstNetwork()) && !alloc.Is(v.GetGwAddr()) {
		return v
	}
	v = proto.CloneOf(v)
	v.DstNetwork = alloc.Network(h.Allocations, v.GetDstNetwork(), v.GetOutgoingInterface())
	v.GwAddr = alloc.Host(h.Allocations, v.GetGwAddr(), v.GetOutgoingInterface())
	return v
}
