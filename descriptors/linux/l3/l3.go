// Package l3 manages Linux routes and static neighbours.
//
//	err := l3.Register(s, l3.Options{...})
//
// It has two descriptors, linux-route and linux-arp, for interfaces of package iface.
// Routes and neighbours of the agent carry kernel.Protocol, 151, in the kernel's own field
// for the creator: "ip route show proto 151". Others are never changed; an error names the
// one that conflicts.
//
// Tests: tables for the pure functions; the real kernel in private namespaces for the
// verbs and Retrieve. A benchmark compares them with ip -batch.
package l3

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"github.com/keyplane/keyplane/descriptors/linux/iface"
	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
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
	// ErrConflict reports a route or neighbour of another owner with the same identity.
	ErrConflict = errors.New("conflicts with an entry of another program")
	// ErrOwnRoute reports a route of the agent itself with the same identity.
	ErrOwnRoute = errors.New("conflicts with another declared route")
	// ErrNotFound reports that the interface does not exist.
	ErrNotFound = errors.New("interface does not exist")
	// ErrUnallocated reports a reference without an allocated address.
	ErrUnallocated = errors.New("no address is allocated for the reference")
)

// Options configure the descriptors. All are required except Allocations.
type Options struct {
	Spaces     *netns.Set
	Watch      *drift.Watcher
	Interfaces iface.Index
	Log        *slog.Logger
	Connection string
	// Allocations resolves references. May be nil, for none.
	Allocations alloc.Book
}

// handler holds the options; the verbs keep no other state.
type handler struct{ Options }

// RouteMeta is the route as the agent has written it to the kernel.
type RouteMeta struct {
	NS    kernel.ID
	Route kernel.Route
	// Maybe are other next hops of an IPv6 route whose makers the kernel does not tell. A request to
	// remove one has our protocol, so it leaves those of others.
	Maybe []kernel.Route `json:"-"`
}

// ARPMeta is the neighbour as the agent has written it to the kernel.
type ARPMeta struct {
	NS        kernel.ID
	Neighbour kernel.Neighbour
}

// Register adds the descriptors to s.
func Register(s *scheduler.Scheduler, o Options) error {
	h := handler{o}
	registrar := s.OnConnection(o.Connection)
	_, routes := scheduler.Register(registrar, h.routeDescriptor())
	_, arps := scheduler.Register(registrar, h.arpDescriptor())
	return errors.Join(routes, arps)
}

// RetrieveAfter: routes refer to interfaces by index, so these must be known first.
func (h handler) routeDescriptor() scheduler.Descriptor[*l3.Route, RouteMeta] {
	return scheduler.Descriptor[*l3.Route, RouteMeta]{
		Name:  RouteName,
		Model: models.For[*l3.Route](),

		Normalize:    normalizeRoute,
		Validate:     validateRoute,
		Equivalent:   h.equivalentRoute,
		Recreate:     recreateRoute,
		Dependencies: h.routeDependencies,
		Derived:      derivedOfRoute,
		Identity:     h.routeIdentity,
		Renamed:      h.Watch.Renamed,
		Properties:   []string{keys.LinkLocal},

		Create:        h.createRoute,
		CreateAll:     h.createRoutes,
		Update:        h.updateRoute,
		Delete:        h.deleteRoute,
		Retrieve:      h.retrieveRoutes,
		RetrieveAfter: alloc.After(h.Allocations, iface.Name),
	}
}

// arpDescriptor implements static neighbours of both IP versions.
func (h handler) arpDescriptor() scheduler.Descriptor[*l3.ARPEntry, ARPMeta] {
	return scheduler.Descriptor[*l3.ARPEntry, ARPMeta]{
		Name:  ARPName,
		Model: models.For[*l3.ARPEntry](),

		Normalize:    normalizeARP,
		Validate:     validateARP,
		Equivalent:   h.equivalentARP,
		Dependencies: arpDependencies,
		Identity:     h.arpIdentity,
		Renamed:      h.Watch.Renamed,

		Create:        h.createARP,
		Update:        h.updateARP,
		Delete:        h.deleteARP,
		Retrieve:      h.retrieveARPs,
		RetrieveAfter: alloc.After(h.Allocations, iface.Name),
	}
}

// at opens the namespace of the interface of a value.
func (h handler) at(name string) (iface.Meta, *netns.Space, error) {
	meta, ok := h.Interfaces.Get(name)
	if !ok {
		return iface.Meta{}, nil, fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	space, ok := h.Spaces.ByID(meta.NS)
	if !ok {
		return iface.Meta{}, nil, fmt.Errorf("%s: %w", netns.Text(meta.Namespace), netns.ErrNotFound)
	}
	return meta, space, nil
}

// device is an existing interface.
type device struct {
	name     string
	existing bool // entries on it may belong to other agents; only desired ones count
}

// spaces yields each namespace with existing interfaces, and these by the index of the
// link.
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
