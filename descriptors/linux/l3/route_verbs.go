package l3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"

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
	for n, err := range space.AddRoutes(routes...) {
		i := index[n]
		if out[i].Err = h.takePlace(space, values[i].Key, routes[n], err); out[i].Err == nil {
			out[i].Meta = h.createdRoute(space, values[i].Key, routes[n])
		}
	}
}

// takePlace judges the kernel's answer to a new route. It replaces a route of another program
// only if that program has replaced ours before, and never one of the agent itself.
func (h handler) takePlace(space *netns.Space, key string, r kernel.Route, err error) error {
	if errors.Is(err, unix.EEXIST) {
		err = checkExistingRoute(space, r)
	}
	if errors.Is(err, ErrConflict) && h.Watch.Replaced(drift.Route(space.ID, r), key) {
		err = space.ReplaceRoute(r)
	}
	return err
}

// table returns the routing table of an interface: that of its VRF, or the main table.
func (h handler) table(meta iface.Meta) uint32 {
	if meta.VRF == "" {
		return kernel.MainTable
	}
	vrf, _ := h.Interfaces.Get(meta.VRF)
	return cmp.Or(vrf.Table, kernel.MainTable)
}

// checkExistingRoute returns nil if the existing route equals the desired one.
func checkExistingRoute(space *netns.Space, want kernel.Route) error {
	have, err := space.Routes(func(r kernel.Route) bool {
		// These three identify a route to the kernel; it has one of them at most.
		return r.Dst == want.Dst && r.Table == want.Table && r.Metric == want.Metric
	})
	if err != nil {
		return err
	}
	conflict, by := ErrConflict, "another route"
	for _, r := range have {
		if r == want {
			return nil
		}
		by = "one on link " + linkName(space, r.Link)
		if r.Gateway.IsValid() {
			by = fmt.Sprintf("one via %v on link %s", r.Gateway, linkName(space, r.Link))
		}
		conflict = ErrOwnRoute
		if r.Protocol != kernel.Protocol {
			conflict, by = ErrConflict, fmt.Sprintf("%s, of protocol %d", by, r.Protocol)
		}
	}
	return fmt.Errorf("route %v with metric %d in table %d: %w: %s; remove it, or set another metric",
		want.Dst, want.Metric, want.Table, conflict, by)
}

// linkName returns the name of a link for an error, or its index.
func linkName(space *netns.Space, index int) string {
	if l, err := space.LinkByIndex(index); err == nil {
		return l.Name
	}
	return strconv.Itoa(index)
}

// createdRoute tells the watcher about the route, and returns the metadata.
func (h handler) createdRoute(space *netns.Space, key string, r kernel.Route) RouteMeta {
	h.Watch.Created(space, drift.Route(space.ID, r), entryOfRoute(key, r))
	return RouteMeta{NS: space.ID, Route: r}
}

// entryOfRoute returns the watcher's form of a route.
func entryOfRoute(key string, r kernel.Route) drift.Entry {
	return drift.Entry{Key: key, Link: r.Link, Route: r}
}

// updateRoute replaces the route in one request, so packets always have one. The watcher
// forgets the old one first: the kernel reports the replacement as a change.
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
	h.Watch.Forget(drift.Route(was.NS, was.Route))
	if err := space.ReplaceRoute(r); err != nil {
		return RouteMeta{}, err
	}
	return h.createdRoute(space, key, r), nil
}

// deleteRoute removes the route as it was written. A missing one is no error.
func (h handler) deleteRoute(_ context.Context, _ string, _ *l3.Route, was RouteMeta) error {
	h.Watch.Forget(drift.Route(was.NS, was.Route))
	space, ok := h.Spaces.ByID(was.NS)
	if !ok {
		return nil // the route vanished with its namespace
	}
	defer space.Close()
	err := space.DelRoute(was.Route)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// retrieveRoutes yields the routes of our protocol through existing interfaces. Through an
// EXISTING interface only desired routes count.
func (h handler) retrieveRoutes(_ context.Context, wanted []scheduler.Desired[*l3.Route]) scheduler.Retrieved[*l3.Route, RouteMeta] {
	return func(yield func(scheduler.Found[*l3.Route, RouteMeta], error) bool) {
		values := make(map[string]scheduler.Desired[*l3.Route], len(wanted))
		for _, w := range wanted {
			values[routeKey(h.withoutReferences(w.Value))] = w
		}
		for space, links := range h.spaces() {
			routes, err := space.Routes(func(r kernel.Route) bool { return r.Protocol == kernel.Protocol && links[r.Link].name != "" })
			if err != nil {
				yield(scheduler.Found[*l3.Route, RouteMeta]{}, err)
				return
			}
			for _, r := range routes {
				on := links[r.Link]
				v, key, declared := h.readRoute(r, on.name, values)
				if on.existing && !declared {
					continue
				}
				learned := func() { h.Watch.Retrieved(space, drift.Route(space.ID, r), entryOfRoute(key, r)) }
				if !yield(scheduler.Found[*l3.Route, RouteMeta]{Key: key, Value: v, Meta: RouteMeta{space.ID, r}, Learned: learned}, nil) {
					return
				}
			}
		}
	}
}

// readRoute returns the value and key of a route. It returns the desired value itself if
// the kernel's route equals it, so that the notation does not differ. declared reports
// whether a route is desired in this place.
func (h handler) readRoute(r kernel.Route, name string, wanted map[string]scheduler.Desired[*l3.Route]) (v *l3.Route, key string, declared bool) {
	v = &l3.Route{OutgoingInterface: name, Scope: scopeOf(r.Scope), DstNetwork: r.Dst.String(), Metric: r.Metric}
	if r.Gateway.IsValid() {
		v.GwAddr = r.Gateway.String()
	} else if r.Dst.Addr().Is6() {
		v.Scope = l3.Route_LINK
	}
	key = routeKey(v)
	want, declared := wanted[key]
	if !declared {
		return v, key, false
	}
	// Compared in the kernel's form, in which each setting has one notation.
	if as, err := kernelRoute(h.withoutReferences(want.Value), r.Link, r.Table); err == nil && as == r {
		return want.Value, want.Key, true
	}
	v.DstNetwork = want.Value.GetDstNetwork()
	return v, want.Key, true
}

// routeKey returns the key of a route. The prefix is masked, so that 10.1.0.7/16 and
// 10.1.0.0/16 have one key.
func routeKey(v *l3.Route) string {
	dst := v.GetDstNetwork()
	if p, err := netip.ParsePrefix(dst); err == nil {
		dst = p.Masked().String()
	}
	return models.For[*l3.Route]().KeyOf(dst + "/" + v.GetOutgoingInterface())
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
