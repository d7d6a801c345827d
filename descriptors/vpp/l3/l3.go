// Package l3 implements VPP's layer 3: VRF tables, routes, neighbours, proxy ARP, TEIB
// entries, cross-connects, VRRP, DHCP proxies and the ageing of neighbours.
//
//	linkChanged, err := l3.Register(s, l3.Options{API: manager, Interfaces: links, ...})
//
// VPP keeps the state of deleted interfaces and tables, and applies it to the next one with
// the same number. Therefore dependent values are deleted first, and a table is flushed
// before it is deleted. State that remains anyway is removed in one of these ways:
//
//	state of a deleted interface  | removed by
//	path of a route               | deleteStalePath, after Delete or while routes are read back
//	neighbour, TEIB entry         | reclaimOrphans, when they are read back
//	proxy ARP, cross-connect, VR  | a cleanup that runs once another interface has the index
//
// State of other clients of VPP is retrieved, but never changed.
//
// Tests: tables for validation and comparison; verbs and Retrieve run against a simulated
// VPP, which is itself tested against a real one.
package l3

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/unreported"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// Names of the descriptors, as logs, REST and RetrieveAfter use them.
const (
	VRFName               = "vpp-vrf-table"
	RouteName             = "vpp-route"
	ARPName               = "vpp-arp"
	ProxyARPName          = "vpp-proxy-arp"
	ProxyARPInterfaceName = "vpp-proxy-arp-interface"
	TEIBName              = "vpp-teib"
	L3XCName              = "vpp-l3xc"
	VRRPName              = "vrrp"
	DHCPProxyName         = "dhcp-proxy"
	ScanName              = "vpp-ip-scan-neighbor"
)

var (
	// ErrNotThere reports that the interface does not exist in VPP. The scheduler retries
	// the value when it appears.
	ErrNotThere = errors.New("the interface does not exist in VPP")
	// ErrUnallocated reports that a reference "alloc:..." has no address yet.
	ErrUnallocated = errors.New("no address is allocated for the reference")
)

// Options configure the descriptors. All fields without a default are required.
type Options struct {
	API        conn.API
	Interfaces iface.Index
	Connection string
	// Run identifies the run of VPP that is connected now, or was last. Another run has its default
	// settings. Defaults to a run that never ends.
	Run func() string
	// Memory remembers across restarts of the agent which settings VPP has that it does not report. Defaults
	// to none: then they are set again, and a flow hash that is removed from the declaration meanwhile stays
	// in VPP.
	Memory scheduler.Memory
	// Allocations resolves references to allocated addresses. Defaults to none.
	Allocations alloc.Book
	Log         *slog.Logger // Defaults to slog.Default.
}

// handler implements the verbs. The scheduler calls verbs of different values
// concurrently. The records it points to have locks of their own, so the handler is copied
// freely.
type handler struct {
	Options
	// All copies of the handler share these.
	ages    *unreported.Notes // of scanned neighbours, under one name
	hashes  flowHashes
	dynamic *dynamicNeighbours
	changes *routeChanges
}

// newHandler returns a handler that has done nothing yet.
func newHandler(o Options) handler {
	ages := unreported.New(unreported.Options{Prefix: "vpp/neighbour-ages", Memory: o.Memory, Run: o.Run, Log: o.Log})
	return handler{o, ages, newFlowHashes(o), &dynamicNeighbours{on: map[string]bool{}}, &routeChanges{}}
}

// Register adds the descriptors to s. The caller calls linkChanged with the name of each
// interface after its link state changes, because VPP then drops neighbours without an event.
func Register(s *scheduler.Scheduler, o Options) (linkChanged func(name string), err error) {
	h := newHandler(o)
	linkChanged = func(name string) {
		// Most interfaces have none, so most changes of a link cost nothing.
		if h.dynamic.has(name) {
			_ = s.Refresh(ARPName) // it cannot fail: the descriptor is registered
		}
	}
	registrar := s.OnConnection(o.Connection)
	return linkChanged, errors.Join(
		register(registrar, h.vrfDescriptor()),
		register(registrar, h.routeDescriptor()),
		register(registrar, h.arpDescriptor()),
		register(registrar, h.proxyDescriptor()),
		register(registrar, h.proxyInterfaceDescriptor()),
		register(registrar, h.teibDescriptor()),
		register(registrar, h.l3xcDescriptor()),
		register(registrar, h.vrrpDescriptor()),
		register(registrar, h.dhcpProxyDescriptor()),
		register(registrar, h.scanDescriptor()),
	)
}

// register adds a descriptor and drops its index.
func register[V proto.Message, M any](to scheduler.Registrar, d scheduler.Descriptor[V, M]) error {
	_, err := scheduler.Register(to, d)
	return err
}

// vrfDescriptor implements VRF tables, one for each IP version.
func (h handler) vrfDescriptor() scheduler.Descriptor[*l3.VrfTable, struct{}] {
	return scheduler.Descriptor[*l3.VrfTable, struct{}]{
		Name:  VRFName,
		Model: models.For[*l3.VrfTable](),

		Validate:   validateVRF,
		Equivalent: equivalentVRF,
		Recreate:   recreateVRF,

		Create:   h.createVRF,
		Update:   h.updateVRF,
		Delete:   h.deleteVRF,
		Retrieve: h.retrieveVRFs,
	}
}

// routeDescriptor implements routes. Each value is one path; VPP combines the paths of a
// prefix.
func (h handler) routeDescriptor() scheduler.Descriptor[*l3.Route, struct{}] {
	return scheduler.Descriptor[*l3.Route, struct{}]{
		Name:  RouteName,
		Model: models.For[*l3.Route](),

		Normalize:    normalizeRoute,
		Validate:     validateRoute,
		Equivalent:   h.equivalentRoute,
		Recreate:     recreateRoute,
		Dependencies: routeDependencies,
		Identity:     h.routeIdentity,
		// VPP forwards by all paths of a prefix, so the new path takes packets before the old one
		// leaves.
		MakeBeforeBreak: isPathOfItsOwn,
		// A saved route has the addresses of its references, since the allocation may be
		// another one after a restart.
		Resolve: func(_ string, v *l3.Route) *l3.Route { return h.reported(v) },

		Create:        h.createRoute,
		CreateAll:     h.createRoutes,
		Update:        h.updateRoute,
		Delete:        h.deleteRoute,
		Retrieve:      h.retrieveRoutes,
		RetrieveAfter: alloc.After(h.Allocations, iface.Name, VRFName),
	}
}

// faults collects the invalid fields of a value.
type faults struct{ models.Faults }

// interfaceNamed returns an interface that exists in VPP.
func (h handler) interfaceNamed(name string) (iface.Meta, error) {
	meta, ok := h.Interfaces.Get(name)
	if !ok {
		return meta, notFound(name)
	}
	return meta, nil
}

// notFound returns ErrNotThere for an interface.
func notFound(name string) error { return fmt.Errorf("%s: %w", name, ErrNotThere) }

// namesByIndex returns the names of interfaces by sw_if_index, to read state back.
func (h handler) namesByIndex() map[uint32]string { return h.Interfaces.Names() }

// canonical returns an address in the notation of package netip. Other text is returned
// unchanged.
func canonical(text string) string {
	if a, err := netip.ParseAddr(text); err == nil {
		return a.String()
	}
	return text
}
