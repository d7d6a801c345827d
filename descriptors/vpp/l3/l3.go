// Package l3 keeps what VPP forwards by: VRF tables, routes, neighbours, cross-connects; for
// whom it answers ARP, which virtual router it is, and whose DHCP messages it passes on.
//
//	linkChanged, err := l3.Register(s, l3.Options{API: manager, Interfaces: links, ...})
//
// VPP keeps routes whose interface or table is gone, and gives them to what comes in its
// place: so they leave first, and a table is flushed before it is deleted. What others
// have put into a table is seen, and not touched.
//
// Tests: what values mean with tables; the verbs and Retrieve with a simulated VPP, which
// is held to what a real one does.
package l3

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// The names of the descriptors.
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
	// ErrNotThere says that the interface does not stand.
	ErrNotThere = errors.New("interface is not there")
	// ErrUnallocated says that no address is known for a reference.
	ErrUnallocated = errors.New("no address is known for the reference")
)

// Options are those of the descriptors. All are needed, but Allocations.
type Options struct {
	API        conn.API
	Interfaces iface.Index
	Southbound string
	// Life counts the connections to VPP: on another one it may be another VPP.
	Life func() int
	// Allocations are what references refer to. May be nil, for none.
	Allocations alloc.Book
}

// handler has what the verbs need.
type handler struct {
	Options
	scanAges *ageRecord
	dynamic  *dynamicNeighbours
	changes  *routeChanges
}

// Register adds the descriptors to s. What it returns is to be told the interfaces whose
// links have changed.
func Register(s *scheduler.Scheduler, o Options) (linkChanged func(name string), err error) {
	h := handler{o, &ageRecord{}, &dynamicNeighbours{on: map[string]bool{}}, &routeChanges{}}
	linkChanged = func(name string) {
		if h.dynamic.has(name) {
			_ = s.Refresh(ARPName) // it is registered
		}
	}
	return linkChanged, errors.Join(
		register(s, h.vrfDescriptor()),
		register(s, h.routeDescriptor()),
		register(s, h.arpDescriptor()),
		register(s, h.proxyDescriptor()),
		register(s, h.proxyInterfaceDescriptor()),
		register(s, h.teibDescriptor()),
		register(s, h.l3xcDescriptor()),
		register(s, h.vrrpDescriptor()),
		register(s, h.dhcpProxyDescriptor()),
		register(s, h.scanDescriptor()),
	)
}

func register[V scheduler.Message, M any](s *scheduler.Scheduler, d scheduler.Descriptor[V, M]) error {
	_, err := scheduler.Register(s, d)
	return err
}

func (h handler) vrfDescriptor() scheduler.Descriptor[*l3.VrfTable, struct{}] {
	return scheduler.Descriptor[*l3.VrfTable, struct{}]{
		Name:       VRFName,
		Model:      models.For[*l3.VrfTable](),
		Connection: h.Southbound,

		Validate:   validateVRF,
		Equivalent: equivalentVRF,
		Recreate:   recreateVRF,

		Create:   h.createVRF,
		Update:   h.updateVRF,
		Delete:   h.deleteVRF,
		Retrieve: h.retrieveVRFs,
	}
}

func (h handler) routeDescriptor() scheduler.Descriptor[*l3.Route, struct{}] {
	return scheduler.Descriptor[*l3.Route, struct{}]{
		Name:       RouteName,
		Model:      models.For[*l3.Route](),
		Connection: h.Southbound,

		Normalize:    normalizeRoute,
		Validate:     validateRoute,
		Equivalent:   equivalentRoute,
		Dependencies: routeDependencies,
		Resolve:      func(_ string, v *l3.Route) *l3.Route { return h.withoutReferences(v) },

		Create:        h.createRoute,
		CreateAll:     h.createRoutes,
		Delete:        h.deleteRoute,
		Retrieve:      h.retrieveRoutes,
		RetrieveAfter: alloc.After(h.Allocations, iface.Name, VRFName),
	}
}

// faults collects what is wrong.
type faults struct{ models.Faults }

// interfaceNamed finds an interface that stands.
func (h handler) interfaceNamed(name string) (iface.Meta, error) {
	meta, ok := h.Interfaces.Get(name)
	if !ok {
		return meta, notFound(name)
	}
	return meta, nil
}

func notFound(name string) error { return fmt.Errorf("%s: %w", name, ErrNotThere) }

// namesByIndex are the names of interfaces, for reading back.
func (h handler) namesByIndex() map[uint32]string { return h.Interfaces.Names() }

// canonical is an address as we spell it; what is none stays as it is.
func canonical(text string) string {
	if a, err := netip.ParseAddr(text); err == nil {
		return a.String()
	}
	return text
}
