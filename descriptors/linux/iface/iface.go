// Package iface manages Linux interfaces: VETH pairs, host sides of VPP TAPs, loopbacks,
// dummies and VRFs, and the addresses and VRFs of interfaces that other programs create.
//
//	links, lives, err := iface.Register(s, iface.Options{...})
//	meta, ok := links.Get("veth1") // index, namespace, ...
//
// Four descriptors work together, and with linux-interface-watcher of package hostnames:
//
//	linux-interface           the interface itself
//	linux-interface-address   one address, derived from the interface
//	linux-interface-vrf       the membership in a VRF, derived from the interface
//	linux-vrf-rules           the rules of the namespace that a VRF needs, derived from the VRF
//
// Interfaces of the agent carry a mark in the kernel, the alias of the link (alias.go). A
// link without the mark is never changed, except for the types EXISTING, LOOPBACK and
// TAP_TO_VPP as far as they require it. Each verb may be repeated after a partial failure,
// and continues from the state that the first attempt left.
//
// The ends of a VETH pair are created, parked and removed in the agent's own namespace
// under temporary names (veth.go). So both ends may come and go in any order, or at once.
//
// Tests: tables for the pure functions; the real kernel in private namespaces for the
// verbs and Retrieve; package fakelinux for features that the test kernel may lack.
package iface

import (
	"errors"
	"log/slog"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/hostnames"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/internal/locks"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
	"github.com/keyplane/keyplane/scheduler"
)

// The names of the descriptors.
const (
	Name        = "linux-interface"
	AddressName = "linux-interface-address"
	VRFName     = "linux-interface-vrf"
	RulesName   = "linux-vrf-rules"
)

var (
	// ErrConflict reports that a link or address of another owner has the required name.
	ErrConflict = errors.New("the name is taken")
	// ErrDuplicate reports that the kernel does not use an IPv6 address, since another host has it.
	ErrDuplicate = errors.New("another host has it on the link")
	// ErrNotFound reports that a required interface does not exist.
	ErrNotFound = errors.New("interface does not exist")
)

// Meta is the metadata of an interface that exists. Its names in JSON are those of vpp-agent 3.5.
type Meta struct {
	Index     int                     `json:"LinuxIfIndex"`
	HostName  string                  `json:"HostIfName"`
	Namespace *namespace.NetNamespace // as the value refers to it
	NS        kernel.ID               // the namespace itself
	Existing  bool                    // EXISTING: other programs use the link too
	TAP       string                  `json:"VPPTapName"`  // TAP_TO_VPP: logical name of the interface in VPP
	VRF       string                  `json:"VrfMasterIf"` // logical name of its current VRF; filled in by the Index
	Table     uint32                  `json:"VrfDevRT"`    // VRF_DEVICE: its routing table
}

// sharedType is Meta.shared of the links of a type.
func sharedType(t interfaces.Interface_Type) bool {
	return t == interfaces.Interface_EXISTING || t == interfaces.Interface_LOOPBACK
}

// shared reports whether other programs give the link addresses too.
func (m Meta) shared() bool { return m.Existing || m.HostName == loopback }

// Options configure the descriptors.
type Options struct {
	Spaces *netns.Set
	Watch  *drift.Watcher
	Hosts  *hostnames.Names // nil: EXISTING interfaces do not follow their names
	// Allocations resolves references to allocated addresses. Defaults to none.
	Allocations alloc.Book
	Log         *slog.Logger
	// Label of the agent. It is part of the mark.
	Label string
	// Installation of the agent, 16 hexadecimal digits. It is part of the mark, so that
	// two agents with one label do not remove each other's links. Defaults to none.
	Installation string
	// Known keeps what the kernel does not, across restarts: the aliases of our links, and the addresses that we
	// have made on those of others. *statestore.Store is one. Defaults to none.
	Known scheduler.Memory
	// Connection is the name under which the verbs share a concurrency limit.
	Connection string
	// Declared returns an interface as it is declared now, or nil. Its addresses are added in that order. Defaults to
	// none: they are added in any order.
	Declared func(name string) *interfaces.Interface
	// Readers is the number of namespaces that Retrieve reads in parallel. Defaults to 10.
	Readers int
	// TAPHost returns the name of the host side of a VPP TAP in the kernel, or "" if VPP
	// has no such TAP. Defaults to the name that a TAP gets if its value names none.
	TAPHost func(vppInterface string) string
	// Flushed is called after a link was set down for a moment: the kernel may have
	// dropped its addresses and routes.
	Flushed func()
	// After names descriptors that must be read before interfaces, since they find
	// namespaces.
	After []string
}

// An Index looks up existing interfaces by logical name.
type Index interface {
	Get(name string) (Meta, bool)
	All() map[string]Meta
}

// A directory is the Index of a handler. It adds the VRF to the metadata, because the VRF
// changes without an update of the interface.
type directory struct {
	*scheduler.Index[Meta]
	members *members
}

// Get adds the VRF, which is set by another verb than the interface's own.
func (d directory) Get(name string) (Meta, bool) {
	m, ok := d.Index.Get(name)
	m.VRF = d.members.of(name)
	return m, ok
}

// All returns a copy with the VRF of each interface.
func (d directory) All() map[string]Meta {
	all := d.Index.All()
	for name, m := range all {
		m.VRF = d.members.of(name)
		all[name] = m
	}
	return all
}

// handler holds the state that the verbs share.
type handler struct {
	Options
	// The verbs of other values run at the same time, so each field has a lock of its own.
	index   Index
	members members
	pairs   locks.Locks[pair] // held while a VETH pair is created or removed
	marks   *marks
	remarks remarks
	orders  locks.Locks[linkID] // held while IPv4 addresses are added to a link or removed
	edits   edits
	holders holders
	again   func() // reads all interfaces back soon

	others others
}

// origin returns the key of the interface with which a key comes.
func origin(keyOrPrefix string) string {
	if name, ok := keys.InterfaceOf(keyOrPrefix); ok && name != keys.Invalid {
		return keyOf(name)
	}
	return ""
}

// Register adds the descriptors to s. links finds every existing interface. lives reports
// whether another installation is running: it was seen in the own namespace, or before in
// another one.
func Register(s *scheduler.Scheduler, o Options) (links Index, lives func(installation string, learns bool) bool, err error) {
	if o.Readers <= 0 {
		o.Readers = 10
	}
	if o.TAPHost == nil {
		o.TAPHost = defaultTAPHost
	}
	// The index is set below: it comes from registering the descriptor that has the
	// handler.
	h := &handler{Options: o, marks: newMarks(o.Known, o.Log), again: func() { _ = s.Refresh(Name) }}
	o.Watch.OnUnmarked(h.remark)
	o.Watch.OnGone(h.marks.gone)
	if o.Hosts != nil {
		o.Hosts.OnNamed(h.follow)
	}
	registrar := s.OnConnection(o.Connection)
	index, err := scheduler.Register(registrar, h.descriptor())
	if err != nil {
		return nil, nil, err
	}
	h.index = directory{index, &h.members}
	if _, err := scheduler.Register(registrar, h.addressDescriptor()); err != nil {
		return nil, nil, err
	}
	if _, err := scheduler.Register(registrar, h.rulesDescriptor()); err != nil {
		return nil, nil, err
	}
	_, err = scheduler.Register(registrar, h.vrfDescriptor())
	return h.index, h.lives, err
}

// descriptor handles the interface without its addresses and VRF. Those are derived values
// with descriptors of their own, since they change and fail independently.
func (h *handler) descriptor() scheduler.Descriptor[*interfaces.Interface, Meta] {
	return scheduler.Descriptor[*interfaces.Interface, Meta]{
		Name:  Name,
		Model: models.For[*interfaces.Interface](),

		Normalize: normalize,
		Validate:  h.validate,
		Equivalent: func(key string, old, new *interfaces.Interface) bool {
			return equivalent(key, old, new) && h.sameOrder(old, new)
		},
		Recreate:     recreate,
		Dependencies: h.dependencies,
		Derived:      derived,
		Properties:   []string{keys.States},
		Origin:       origin,
		Claims:       claims,

		Create:        h.create,
		Update:        h.update,
		Delete:        h.delete,
		Retrieve:      h.retrieve,
		RetrieveAfter: alloc.After(h.Allocations, h.After...),
	}
}

// addressDescriptor handles one address, which its key contains.
func (h *handler) addressDescriptor() scheduler.Descriptor[*interfaces.Interface, struct{}] {
	return scheduler.Descriptor[*interfaces.Interface, struct{}]{
		Name:   AddressName,
		Prefix: keys.Interface,
		Match:  func(key string) bool { _, ok := keys.ParseAddress(key); return ok },

		Validate:     validateAddress,
		Equivalent:   sameAddress,
		Recreate:     movedAddress,
		Dependencies: addressDependencies,

		Create: h.createAddress,
		Update: h.updateAddress,
		Delete: h.deleteAddress,
	}
}

// vrfDescriptor handles the membership of an interface in a VRF.
func (h *handler) vrfDescriptor() scheduler.Descriptor[*interfaces.Interface, struct{}] {
	return scheduler.Descriptor[*interfaces.Interface, struct{}]{
		Name:   VRFName,
		Prefix: keys.Interface,
		Match:  func(key string) bool { _, _, ok := keys.ParseVRF(key); return ok },

		Validate:     validateVRF,
		Equivalent:   sameVRF,
		Dependencies: vrfDependencies,
		Derived:      derivedOfVRF,

		Create: h.createVRF,
		Delete: h.deleteVRF,
	}
}
