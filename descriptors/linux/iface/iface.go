// Package iface keeps Linux interfaces as declared: VETH pairs, host sides of VPP
// TAPs, loopbacks, dummies, VRFs, and the addresses and VRFs of interfaces that
// somebody else makes.
//
//	links, lives, err := iface.Register(s, iface.Options{...})
//	meta, ok := links.Get("veth1") // index, namespace, ...
//
// Four descriptors work together: linux-interface for the interface itself;
// linux-interface-address and linux-interface-vrf for what is derived from it;
// linux-interface-watcher (see HostNames), which only notices the links of the
// agent's own namespace.
//
// What is ours carries our mark in the kernel, the alias of the link (alias.go).
// A link without it is never changed, but for what EXISTING, LOOPBACK and
// TAP_TO_VPP say. Each verb may be called again after it failed half-way, and
// finds what the first try left.
//
// An end of a VETH pair is made, waits and is undone in the agent's own namespace
// under a temporary name (veth.go), so that both ends may come and go in any
// order, or at once.
//
// Tests: what values mean with tables, the verbs and Retrieve with the real kernel
// in namespaces of their own, what this kernel may lack with package fakelinux.
package iface

import (
	"errors"
	"log/slog"
	"sync"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
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
	WatcherName = "linux-interface-watcher"
)

var (
	// ErrInTheWay says that a link that is not ours has the name we need.
	ErrInTheWay = errors.New("the name is taken")
	// ErrNotThere says that an interface that is needed does not stand.
	ErrNotThere = errors.New("interface is not there")
)

// Meta is what is known of an interface that stands.
type Meta struct {
	Index     int
	HostName  string
	Namespace *namespace.NetNamespace // as its value refers to it
	NS        kernel.ID               // the namespace itself
	Existing  bool                    // EXISTING: others use the link too
	TAP       string                  // TAP_TO_VPP: logical name of the interface in VPP
	VRF       string                  // logical name of the VRF it is in now; filled in by the Index
	Table     uint32                  // VRF_DEVICE: its routing table
}

// Options are those of the descriptors.
type Options struct {
	Spaces *netns.Set
	Watch  *drift.Watcher
	// Allocations are what references of addresses refer to. Defaults to none.
	Allocations alloc.Book
	Log         *slog.Logger
	// Label of the agent; it is part of the mark on what is ours.
	Label string
	// Installation of the agent, 16 hexadecimal digits. It is part of the mark too. Defaults
	// to none.
	Installation string
	// Southbound is the name under which the verbs share a limit.
	Southbound string
	// Readers is how many namespaces Retrieve reads at once. Defaults to 10.
	Readers int
	// TAPHost tells which name the host side of a TAP of VPP has in the kernel; empty:
	// VPP has no such TAP. Defaults to the name that a TAP has that is given none.
	TAPHost func(vppInterface string) string
	// Flushed is called when we had to set a link down for a moment: the kernel
	// may have dropped addresses and routes.
	Flushed func()
}

// An Index looks up interfaces that stand, by logical name.
type Index interface {
	Get(name string) (Meta, bool)
	All() map[string]Meta
}

// A directory is the Index of a handler. It adds the VRF, which changes without the interface.
type directory struct {
	*scheduler.Index[Meta]
	members *members
}

func (d directory) Get(name string) (Meta, bool) {
	m, ok := d.Index.Get(name)
	m.VRF = d.members.of(name)
	return m, ok
}

func (d directory) All() map[string]Meta {
	all := d.Index.All()
	for name, m := range all {
		m.VRF = d.members.of(name)
		all[name] = m
	}
	return all
}

// handler has what the verbs need.
type handler struct {
	Options
	index   Index
	members members
	pairs   sync.Mutex // held while a VETH pair is made or undone

	others others
}

// Register adds the descriptors to s. The index has every interface that stands; lives tells
// whether an installation was seen to live, in the agent's own namespace or in another one.
func Register(s *scheduler.Scheduler, o Options) (links Index, lives func(installation string) bool, err error) {
	if o.Readers <= 0 {
		o.Readers = 10
	}
	if o.TAPHost == nil {
		o.TAPHost = defaultTAPHost
	}
	h := &handler{Options: o}
	index, err := scheduler.Register(s, h.descriptor())
	if err != nil {
		return nil, nil, err
	}
	h.index = directory{index, &h.members}
	if _, err := scheduler.Register(s, h.addressDescriptor()); err != nil {
		return nil, nil, err
	}
	_, err = scheduler.Register(s, h.vrfDescriptor())
	return h.index, h.lives, err
}

func (h *handler) descriptor() scheduler.Descriptor[*interfaces.Interface, Meta] {
	return scheduler.Descriptor[*interfaces.Interface, Meta]{
		Name:       Name,
		Model:      models.For[*interfaces.Interface](),
		Southbound: h.Southbound,

		Normalize:    normalize,
		Validate:     h.validate,
		Equivalent:   equivalent,
		Recreate:     recreate,
		Dependencies: dependencies,
		Derived:      derived,
		Claims:       claims,

		Create:        h.create,
		Update:        h.update,
		Delete:        h.delete,
		Retrieve:      h.retrieve,
		RetrieveAfter: alloc.After(h.Allocations),
	}
}

func (h *handler) addressDescriptor() scheduler.Descriptor[*interfaces.Interface, struct{}] {
	return scheduler.Descriptor[*interfaces.Interface, struct{}]{
		Name:       AddressName,
		Prefix:     keys.Interface,
		Match:      func(key string) bool { _, ok := keys.ParseAddress(key); return ok },
		Southbound: h.Southbound,

		Validate:     validateAddress,
		Equivalent:   sameAddress,
		Dependencies: addressDependencies,

		Create: h.createAddress,
		Delete: h.deleteAddress,
	}
}

func (h *handler) vrfDescriptor() scheduler.Descriptor[*interfaces.Interface, struct{}] {
	return scheduler.Descriptor[*interfaces.Interface, struct{}]{
		Name:       VRFName,
		Prefix:     keys.Interface,
		Match:      func(key string) bool { _, _, ok := keys.ParseVRF(key); return ok },
		Southbound: h.Southbound,

		Validate:     validateVRF,
		Equivalent:   sameVRF,
		Dependencies: vrfDependencies,

		Create: h.createVRF,
		Delete: h.deleteVRF,
	}
}
