package l3

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
)

// What stands in the place of a new route, and what the agent does about it:
//
//	the same route                                     nothing
//	a route that has replaced ours while it stood      ours is added, and that one removed
//	ours, with an attribute that the agent never sets  ours is added, and that one removed
//	others, and somebody has removed ours              ours is added beside them
//	others otherwise                                   an error, until they go

// A crowd is what the kernel has in the places of routes that it has refused.
type crowd struct {
	routes map[kernel.Place][]kernel.Route
	err    error
}

// placesOf reads the places of the refused routes, if there are any: with one dump for all of them.
func placesOf(space *netns.Space, routes []kernel.Route, results []error) crowd {
	asked := map[kernel.Place][]kernel.Route{}
	for i, err := range results {
		if errors.Is(err, unix.EEXIST) {
			asked[routes[i].Place()] = nil
		}
	}
	if len(asked) == 0 {
		return crowd{}
	}
	all, err := space.Routes(func(r kernel.Route) bool { _, ok := asked[r.Place()]; return ok })
	for _, r := range all {
		asked[r.Place()] = append(asked[r.Place()], r)
	}
	return crowd{asked, err}
}

// takePlace decides about a new route that the kernel has refused because there are others in its place.
func (h handler) takePlace(space *netns.Space, key string, r kernel.Route, in crowd) error {
	if in.err != nil {
		return in.err
	}
	there := in.routes[r.Place()]
	if slices.ContainsFunc(there, r.Is) {
		return nil
	}
	at := drift.Route(space.ID, r)
	how, lost := h.Watch.Lost(at, key)
	var remove, others []kernel.Route
	for _, one := range there {
		altered := one.Protocol == kernel.Protocol && one.Link == r.Link && !one.Plain()
		if altered || lost && how.Taker.Dst.IsValid() && one.PartOf(how.Taker) {
			remove = append(remove, one)
		} else {
			others = append(others, one)
		}
	}
	own := slices.ContainsFunc(others, func(one kernel.Route) bool { return one.Protocol == kernel.Protocol })
	if own || !lost && len(others) > 0 || len(there) == 0 {
		h.Watch.Await(at)
		return conflict(space, r, others)
	}
	return h.putBeside(space, r, how.Behind, remove)
}

// putBeside adds a route beside others, and removes those that have taken its place. IPv6 refuses a next hop
// twice, so one with our next hop is removed first.
func (h handler) putBeside(space *netns.Space, r kernel.Route, behind bool, remove []kernel.Route) error {
	sameHop := func(one kernel.Route) bool {
		return one.Link == r.Link && one.Gateway == r.Gateway || !r.Gateway.IsValid() || !one.Gateway.IsValid() && one.Type == 0
	}
	var errs []error
	for _, one := range remove {
		if sameHop(one) {
			errs = append(errs, gone(space.DelRoute(one)))
		}
	}
	errs = append(errs, h.addBeside(space, r, behind))
	for _, one := range remove {
		if !sameHop(one) {
			errs = append(errs, gone(space.DelRoute(one)))
		}
	}
	return errors.Join(errs...)
}

// addBeside adds a route whether or not there are others in its place. The same one is no error, unless
// IPv6 has it of another program.
func (h handler) addBeside(space *netns.Space, r kernel.Route, behind bool) error {
	err := space.AddRouteBeside(r, behind)
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	in := placesOf(space, []kernel.Route{r}, []error{err})
	there := in.routes[r.Place()]
	if in.err != nil || slices.ContainsFunc(there, r.Is) {
		return in.err
	}
	h.Watch.Await(drift.Route(space.ID, r))
	return conflict(space, r, there)
}

// conflict describes the routes in the place of r.
func conflict(space *netns.Space, r kernel.Route, others []kernel.Route) error {
	err, by := ErrConflict, "another route"
	if own := slices.IndexFunc(others, func(one kernel.Route) bool { return one.Protocol == kernel.Protocol }); own >= 0 {
		err, by = ErrOwnRoute, describe(space, others[own])
	} else if len(others) > 0 {
		by = describe(space, others[0]) // the one that the kernel uses
	}
	return fmt.Errorf("route %v with metric %d in table %d: %w: %s; remove it, or set another metric", r.Dst, r.Metric, r.Table, err, by)
}

// describe says what a route is, for an error: "one via 10.1.0.2 on link if1".
func describe(space *netns.Space, r kernel.Route) string {
	by := "one"
	if kind := r.Kind(); kind != "a route" {
		by = kind
	}
	if r.Gateway.IsValid() {
		by += fmt.Sprintf(" via %v", r.Gateway)
	}
	if r.Link != 0 && r.Type == 0 {
		by += " on link " + linkName(space, r.Link)
	}
	if r.Protocol != kernel.Protocol {
		by += fmt.Sprintf(", of protocol %d", r.Protocol)
	}
	return by
}

// linkName returns the name of a link for an error, or its index.
func linkName(space *netns.Space, index int) string {
	if l, err := space.LinkByIndex(index); err == nil {
		return l.Name
	}
	return strconv.Itoa(index)
}
