// Package l2 implements VPP's layer 2: bridge domains with their interfaces, L2 FIB entries,
// cross-connects and port mirroring (SPAN).
//
//	err := l2.Register(s, l2.Options{API: manager, Interfaces: links, ...})
//
// The name of a bridge domain is its tag in VPP. A bridge domain without a tag belongs to
// somebody else: it is retrieved under the name UNTAGGED-<number> and never changed.
//
// VPP keeps L2 FIB entries and cross-connects of deleted bridge domains and interfaces, and
// applies them to the next one with the same number. Their dependencies make the scheduler
// delete them first.
//
//	state in VPP            | kept by                | updated by
//	bd_id by name           | handler.ids            | create, delete, each Retrieve
//	attachment of interface | handler.attachments    | members and cross-connects, each Retrieve
//	orphaned mirrors        | iface.Index.Remains    | readSpans
//
// Tests: tables for validation and comparison; verbs and Retrieve run against a simulated
// VPP, which is itself tested against a real one.
package l2

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.fd.io/govpp/binapi/interface_types"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ownership"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l2"
	"github.com/keyplane/keyplane/scheduler"
)

// Names of the descriptors, as logs, REST and RetrieveAfter use them.
const (
	BridgeName          = "vpp-bridge-domain"
	BridgeInterfaceName = "vpp-bd-interface"
	FIBName             = "vpp-l2-fib"
	XConnectName        = "vpp-xconnect"
	SpanName            = "vpp-span"
)

// Options configure the descriptors. All fields except Tags, Reapply and Left are required.
type Options struct {
	API        conn.API
	Interfaces iface.Index
	// Tags tells the owner of a bridge domain by its tag. Defaults to: every bridge domain
	// with a tag belongs to this agent.
	Tags *ownership.Owner
	// Reapply has VPP look at the access lists of an interface in layer 2, if it has forgotten them.
	// Defaults to doing nothing.
	Reapply func(ctx context.Context, index interface_types.InterfaceIndex) error
	// Left is called when an interface has left layer 2. Frames that other packages have sent out of
	// it are dropped from then on. Defaults to doing nothing.
	Left       func(ctx context.Context, index interface_types.InterfaceIndex) error
	Connection string
}

// BridgeMeta is the metadata of a bridge domain: its number in VPP (bd_id).
type BridgeMeta struct{ ID uint32 }

// FIBMeta is the metadata of an L2 FIB entry: bridge domain and interface by number. Delete
// needs the interface that VPP has, also after the interface was renamed.
type FIBMeta struct{ Bridge, Interface uint32 }

// XConnectMeta is the metadata of a cross-connect: the sw_if_index of the receiving
// interface.
type XConnectMeta struct{ Receive uint32 }

// A bridgeIndex looks up existing bridge domains by name. The scheduler maintains it.
type bridgeIndex interface {
	Get(name string) (BridgeMeta, bool)
	All() map[string]BridgeMeta
}

// handler implements the verbs. The scheduler calls verbs of different values concurrently.
type handler struct {
	Options
	bridges     bridgeIndex
	attachments attachments
	mirrors     sync.Mutex // held while mirrors change, since restoreMirrors has several steps

	mu     sync.Mutex
	ids    map[string]uint32 // bd_id by name, from the last dump and later creations
	lastID uint32            // the highest bd_id in use, or the one that was tried last
}

// Register adds the descriptors to s, and returns what other packages that switch frames use. The
// caller registers the interface descriptor first.
func Register(s *scheduler.Scheduler, o Options) (*Modes, error) {
	nothing := func(context.Context, interface_types.InterfaceIndex) error { return nil }
	if o.Reapply == nil {
		o.Reapply = nothing
	}
	if o.Left == nil {
		o.Left = nothing
	}
	h := &handler{Options: o, ids: map[string]uint32{}}
	registrar := s.OnConnection(o.Connection)
	bridges, err := scheduler.Register(registrar, h.bridgeDescriptor())
	h.bridges = bridges
	return h.modes(), errors.Join(err,
		register(registrar, h.memberDescriptor()),
		register(registrar, h.fibDescriptor()),
		register(registrar, h.xconnectDescriptor()),
		register(registrar, h.spanDescriptor()),
	)
}

// register adds a descriptor and drops its index.
func register[V proto.Message, M any](to scheduler.Registrar, d scheduler.Descriptor[V, M]) error {
	_, err := scheduler.Register(to, d)
	return err
}

// bridgeDescriptor implements bridge domains. Their interfaces are derived values: an
// interface that does not exist yet must not delay the bridge domain.
func (h *handler) bridgeDescriptor() scheduler.Descriptor[*l2.BridgeDomain, BridgeMeta] {
	return scheduler.Descriptor[*l2.BridgeDomain, BridgeMeta]{
		Name:  BridgeName,
		Model: models.For[*l2.BridgeDomain](),

		Normalize:  normalizeBridge,
		Validate:   validateBridge,
		Equivalent: equivalentBridge,
		Derived:    membersOf,
		Origin: func(key string) string {
			if bd, _, ok := keys.BridgeMembers.Parse(key); ok && bd != keys.Invalid {
				return keys.BridgeDomain(bd)
			}
			return ""
		},

		Create:        h.createBridge,
		Update:        h.updateBridge,
		Delete:        h.deleteBridge,
		Retrieve:      h.retrieveBridges,
		RetrieveAfter: []string{iface.Name},
	}
}

// memberDescriptor implements the membership of an interface in a bridge domain. It has no
// Retrieve: retrieveBridges reports the members with their bridge domain.
func (h *handler) memberDescriptor() scheduler.Descriptor[*l2.BridgeDomain_Interface, struct{}] {
	return scheduler.Descriptor[*l2.BridgeDomain_Interface, struct{}]{
		Name:   BridgeInterfaceName,
		Prefix: string(keys.BridgeMembers),
		Match:  func(key string) bool { _, _, ok := keys.BridgeMembers.Parse(key); return ok },

		Recreate:     recreateMember,
		Dependencies: memberDependencies,
		Claims:       memberClaims,

		Create: h.createMember,
		Update: h.updateMember,
		Delete: h.deleteMember,
	}
}

// fibDescriptor implements L2 FIB entries.
func (h *handler) fibDescriptor() scheduler.Descriptor[*l2.FIBEntry, FIBMeta] {
	return scheduler.Descriptor[*l2.FIBEntry, FIBMeta]{
		Name:  FIBName,
		Model: models.For[*l2.FIBEntry](),

		Normalize:    normalizeFIB,
		Validate:     validateFIB,
		Equivalent:   equivalentFIB,
		Dependencies: fibDependencies,
		Identity:     fibIdentity,

		Create:        h.createFIB,
		Delete:        h.deleteFIB,
		Retrieve:      h.retrieveFIBs,
		RetrieveAfter: []string{iface.Name, BridgeName},
	}
}

// xconnectDescriptor implements cross-connects: VPP sends all packets that one interface
// receives out of another.
func (h *handler) xconnectDescriptor() scheduler.Descriptor[*l2.XConnectPair, XConnectMeta] {
	return scheduler.Descriptor[*l2.XConnectPair, XConnectMeta]{
		Name:  XConnectName,
		Model: models.For[*l2.XConnectPair](),

		Validate:     validateXConnect,
		Dependencies: xconnectDependencies,
		Claims:       xconnectClaims,

		Create:        h.createXConnect,
		Delete:        h.deleteXConnect,
		Retrieve:      h.retrieveXConnects,
		RetrieveAfter: []string{iface.Name},
	}
}

func (h *handler) modes() *Modes { return &Modes{h} }

// faults collects the invalid fields of a value.
type faults struct{ models.Faults }

// bridgeNamed returns a bridge domain that exists in VPP.
func (h *handler) bridgeNamed(name string) (BridgeMeta, error) {
	meta, ok := h.bridges.Get(name)
	if !ok {
		return meta, fmt.Errorf("bridge domain %s: %w", name, iface.ErrNotFound)
	}
	return meta, nil
}

// interfaceNames returns the names of interfaces by sw_if_index, to read state back.
func (h *handler) interfaceNames() map[uint32]string { return h.Interfaces.Names() }
