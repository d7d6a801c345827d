// Package l3 keeps Linux routes and static neighbours as declared.
//
//	err := l3.Register(s, l3.Options{...})
//
// Two descriptors, linux-route and linux-arp, both on interfaces of package iface.
// What is ours carries kernel.Protocol, 151, in the kernel's own field for who made
// a route or neighbour: "ip route show proto 151". Others are never changed, and
// where one is in the way the error says so.
//
// Tests: what values mean with tables, verbs and Retrieve with the real kernel in
// namespaces of their own; a benchmark holds them against ip -batch.
package l3

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"github.com/keyplane/keyplane/descriptors/linux/iface"
	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// The names of the descriptors.
const (
	RouteName = "linux-route"
	ARPName   = "linux-arp"
)

var (
	// ErrInTheWay says that there is a route or neighbour that is not ours.
	ErrInTheWay = errors.New("something that is not ours is in the way")
	// ErrNotThere says that the interface does not stand.
	ErrNotThere = errors.New("interface is not there")
	// ErrUnallocated says that no address is known for a reference.
	ErrUnallocated = errors.New("no address is known for the reference")
)

// Options are those of the descriptors. All are needed, but Allocations.
type Options struct {
	Spaces     *netns.Set
	Watch      *drift.Watcher
	Interfaces iface.Index
	Log        *slog.Logger
	Southbound string
	// Allocations are what references refer to. May be nil, for none.
	Allocations alloc.Book
}

// handler has what the verbs need.
type handler struct{ Options }

// RouteMeta is the route as it was given to the kernel.
type RouteMeta struct {
	NS    kernel.ID
	Route kernel.Route
}

// ARPMeta is the neighbour as it was given to the kernel.
type ARPMeta struct {
	NS        kernel.ID
	Neighbour kernel.Neighbour
}

// Register adds the descriptors to s.
func Register(s *scheduler.Scheduler, o Options) error {
	h := handler{o}
	_, routes := scheduler.Register(s, h.routeDescriptor())
	_, arps := scheduler.Register(s, h.arpDescriptor())
	return errors.Join(routes, arps)
}

func (h handler) routeDescriptor() scheduler.Descriptor[*l3.Route, RouteMeta] {
	return scheduler.Descriptor[*l3.Route, RouteMeta]{
		Name:       RouteName,
		Model:      models.For[*l3.Route](),
		Southbound: h.Southbound,

		Normalize:    normalizeRoute,
		Validate:     validateRoute,
		Equivalent:   equivalentRoute,
		Recreate:     recreateRoute,
		Dependencies: h.routeDependencies,
		Derived:      derivedOfRoute,

		Create:        h.createRoute,
		Update:        h.updateRoute,
		Delete:        h.deleteRoute,
		Retrieve:      h.retrieveRoutes,
		RetrieveAfter: alloc.After(h.Allocations, iface.Name),
	}
}

func (h handler) arpDescriptor() scheduler.Descriptor[*l3.ARPEntry, ARPMeta] {
	return scheduler.Descriptor[*l3.ARPEntry, ARPMeta]{
		Name:       ARPName,
		Model:      models.For[*l3.ARPEntry](),
		Southbound: h.Southbound,

		Normalize:    normalizeARP,
		Validate:     validateARP,
		Equivalent:   equivalentARP,
		Dependencies: arpDependencies,

		Create:        h.createARP,
		Update:        h.updateARP,
		Delete:        h.deleteARP,
		Retrieve:      h.retrieveARPs,
		RetrieveAfter: alloc.After(h.Allocations, iface.Name),
	}
}

// at opens the namespace of the interface that a value is on.
func (h handler) at(name string) (iface.Meta, *netns.Space, error) {
	meta, ok := h.Interfaces.Get(name)
	if !ok {
		return iface.Meta{}, nil, fmt.Errorf("%s: %w", name, ErrNotThere)
	}
	space, ok := h.Spaces.ByID(meta.NS)
	if !ok {
		return iface.Meta{}, nil, fmt.Errorf("%s: %w", netns.Text(meta.Namespace), netns.ErrNotFound)
	}
	return meta, space, nil
}

// device is an interface that stands.
type device struct {
	name     string
	existing bool // what is on it may be of other agents, and is ours only if it is wanted
}

// spaces yields each namespace in which interfaces stand, and those by index of
// the link.
func (h handler) spaces() iter.Seq2[*netns.Space, map[int]device] {
	devices := map[kernel.ID]map[int]device{}
	for name, meta := range h.Interfaces.All() {
		if devices[meta.NS] == nil {
			devices[meta.NS] = map[int]device{}
		}
		devices[meta.NS][meta.Index] = device{name, meta.Existing}
	}
	return func(yield func(*netns.Space, map[int]device) bool) {
		for ns, links := range devices {
			if space, ok := h.Spaces.ByID(ns); ok {
				more := yield(space, links)
				space.Close()
				if !more {
					return
				}
			}
		}
	}
}
