// Package l2 keeps what VPP switches by: bridge domains with their interfaces, L2 FIB
// entries, cross-connects, mirrors.
//
//	err := l2.Register(s, l2.Options{API: manager, Interfaces: links, ...})
//
// The name of a bridge domain is its tag in VPP; one without a tag was made by somebody
// else, is seen under the name UNTAGGED-<number>, and never touched. VPP keeps L2 FIB
// entries and cross-connects of what is gone, and gives them to what comes in its place: so
// they leave first.
//
// Tests: what values mean with tables; the verbs and Retrieve with a simulated VPP, which
// is held to what a real one does.
package l2

import (
	"errors"
	"fmt"
	"sync"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ownership"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/scheduler"
)

// The names of the descriptors.
const (
	BridgeName          = "vpp-bridge-domain"
	BridgeInterfaceName = "vpp-bd-interface"
	FIBName             = "vpp-l2-fib"
	XConnectName        = "vpp-xconnect"
	SpanName            = "vpp-span"
)

// ErrNotThere says that an interface or a bridge domain that is needed does not stand.
var ErrNotFound = errors.New("not there")

// Options are those of the descriptors. All are needed.
type Options struct {
	API        conn.API
	Interfaces iface.Index
	// Tags says whose bridge domains are. Defaults to that all with a tag are this agent's.
	Tags       *ownership.Owner
	Southbound string
}

// BridgeMeta is what is known of a bridge domain that stands.
type BridgeMeta struct{ ID uint32 }

// FIBMeta is where an L2 FIB entry stands.
type FIBMeta struct{ Bridge, Interface uint32 }

// XConnectMeta has the index of the receiving interface.
type XConnectMeta struct{ Receive uint32 }

// A bridgeIndex looks up bridge domains that stand, by name.
type bridgeIndex interface {
	Get(name string) (BridgeMeta, bool)
	All() map[string]BridgeMeta
}

// handler has what the verbs need.
type handler struct {
	Options
	bridges     bridgeIndex
	attachments attachments

	mu     sync.Mutex
	ids    map[string]uint32 // number by name, of the bridge domains that stood when they were last looked at
	lastID uint32            // number
}

// Register adds the descriptors to s.
func Register(s *scheduler.Scheduler, o Options) error {
	h := &handler{Options: o, ids: map[string]uint32{}}
	bridges, err := scheduler.Register(s, h.bridgeDescriptor())
	h.bridges = bridges
	return errors.Join(err,
		register(s, h.memberDescriptor()),
		register(s, h.fibDescriptor()),
		register(s, h.xconnectDescriptor()),
		register(s, h.spanDescriptor()),
	)
}

func register[V scheduler.Message, M any](s *scheduler.Scheduler, d scheduler.Descriptor[V, M]) error {
	_, err := scheduler.Register(s, d)
	return err
}

func (h *handler) bridgeDescriptor() scheduler.Descriptor[*l2.BridgeDomain, BridgeMeta] {
	return scheduler.Descriptor[*l2.BridgeDomain, BridgeMeta]{
		Name:       BridgeName,
		Model:      models.For[*l2.BridgeDomain](),
		Connection: h.Southbound,

		Normalize:  normalizeBridge,
		Validate:   validateBridge,
		Equivalent: equivalentBridge,
		Recreate:   recreateBridge,
		Derived:    membersOf,

		Create:        h.createBridge,
		Update:        h.updateBridge,
		Delete:        h.deleteBridge,
		Retrieve:      h.retrieveBridges,
		RetrieveAfter: []string{iface.Name},
	}
}

func (h *handler) memberDescriptor() scheduler.Descriptor[*l2.BridgeDomain_Interface, struct{}] {
	return scheduler.Descriptor[*l2.BridgeDomain_Interface, struct{}]{
		Name:       BridgeInterfaceName,
		Prefix:     keys.BridgeParts,
		Match:      func(key string) bool { _, _, ok := keys.ParseBridgeInterface(key); return ok },
		Connection: h.Southbound,

		Recreate:     recreateMember,
		Dependencies: memberDependencies,
		Claims:       memberClaims,

		Create: h.createMember,
		Update: h.updateMember,
		Delete: h.deleteMember,
	}
}

func (h *handler) fibDescriptor() scheduler.Descriptor[*l2.FIBEntry, FIBMeta] {
	return scheduler.Descriptor[*l2.FIBEntry, FIBMeta]{
		Name:       FIBName,
		Model:      models.For[*l2.FIBEntry](),
		Connection: h.Southbound,

		Normalize:    normalizeFIB,
		Validate:     validateFIB,
		Equivalent:   equivalentFIB,
		Dependencies: fibDependencies,

		Create:        h.createFIB,
		Delete:        h.deleteFIB,
		Retrieve:      h.retrieveFIBs,
		RetrieveAfter: []string{iface.Name, BridgeName},
	}
}

func (h *handler) xconnectDescriptor() scheduler.Descriptor[*l2.XConnectPair, XConnectMeta] {
	return scheduler.Descriptor[*l2.XConnectPair, XConnectMeta]{
		Name:       XConnectName,
		Model:      models.For[*l2.XConnectPair](),
		Connection: h.Southbound,

		Validate:     validateXConnect,
		Dependencies: xconnectDependencies,
		Claims:       xconnectClaims,

		Create:        h.createXConnect,
		Delete:        h.deleteXConnect,
		Retrieve:      h.retrieveXConnects,
		RetrieveAfter: []string{iface.Name},
	}
}

// faults collects what is wrong.
type faults struct{ models.Faults }

// interfaceNamed finds an interface that stands.
func (h *handler) interfaceNamed(name string) (iface.Meta, error) {
	meta, ok := h.Interfaces.Get(name)
	if !ok {
		return meta, fmt.Errorf("interface %s: %w", name, ErrNotFound)
	}
	return meta, nil
}

// bridgeNamed finds a bridge domain that stands.
func (h *handler) bridgeNamed(name string) (BridgeMeta, error) {
	meta, ok := h.bridges.Get(name)
	if !ok {
		return meta, fmt.Errorf("bridge domain %s: %w", name, ErrNotFound)
	}
	return meta, nil
}

// interfaceNames are the names of interfaces by index, for reading back.
func (h *handler) interfaceNames() map[uint32]string { return h.Interfaces.Names() }
