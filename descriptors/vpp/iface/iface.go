// Package iface keeps VPP interfaces as declared, with their addresses, VRFs and
// whatever else belongs to one interface.
//
//	links, events, err := iface.Register(s, iface.Options{API: manager, ...})
//	go events.Run(ctx)
//	meta, ok := links.Get("loop1") // sw_if_index, ...
//
// The descriptor vpp-interface makes the interface itself; what is derived from it (an
// address, the VRF, ...) has a descriptor of its own. What sets one type of interface
// apart is a kind: one file for each, and one line in kinds.
//
// The name of an interface is in its tag in VPP, with its owner (package ownership), so that it is
// known again after a restart of the agent. An interface without a tag was made by somebody
// else: it is seen under the name UNTAGGED-<name in VPP>, and never touched. So is one with the
// tag of another agent, which is its name here. One whose creation was cut short by a
// break of the connection is found again: orphans.go.
//
// VPP keeps much of what names an interface when that is deleted, and gives its index to
// the next: so an interface never goes before what depends on it.
//
// Tests: what values mean with tables; the verbs and Retrieve with a simulated VPP, which
// is held to what a real one does.
package iface

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/events"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/leftovers"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ownership"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// The names of the descriptors.
const (
	Name           = "vpp-interface"
	AddressName    = "vpp-interface-address"
	VRFName        = "vpp-interface-vrf"
	HasAddressName = "vpp-interface-has-address"
	UnnumberedName = "vpp-unnumbered-interface"
	LinkStateName  = "vpp-interface-link-state"
	BondName       = "bond-interface"
	RxModeName     = "vpp-interface-rx-mode"
	RxPlaceName    = "vpp-interface-rx-placement"
	DHCPName       = "vpp-dhcp"
	LeaseName      = "vpp-dhcp-lease"
	IP6NDName      = "vpp-ip6nd"
)

// Meta is the metadata of an interface that VPP has.
type Meta = ifindex.Meta

// Options are those of the descriptors. API is required.
type Options struct {
	API conn.API
	// Tags says whose interfaces are. Defaults to that all with a tag are this agent's.
	Tags *ownership.Owner
	Log  *slog.Logger // Defaults to slog.Default
	// Southbound is the name under which the verbs share a limit.
	Southbound string
	// LinuxHost tells which name a Linux interface that stands has in the kernel.
	// Defaults to knowing none.
	LinuxHost func(name string) (host string, ok bool)
	// RaiseLink puts up a link of the host, if there is one of that name. Defaults to
	// doing nothing.
	RaiseLink func(host string) error
	// HasLink tells whether the host has a link of that name, in the agent's own namespace. Defaults
	// to that it has none.
	HasLink func(host string) bool
	// LinkChanged is told the interfaces whose links have changed. Defaults to telling nobody.
	LinkChanged func(name string)
	// Drop ends the connection to VPP, after an answer that cannot be taken. Defaults to doing nothing.
	Drop func(why error)
	// Allocations are what references of addresses refer to. Defaults to none.
	Allocations alloc.Book
	// Host tells interfaces of this host from those of the same name elsewhere, for the MAC
	// addresses of those that declare none. Defaults to the name of the host.
	Host string
	// MTU of interfaces that declare none; 0: what VPP gives them.
	MTU uint32
	// Leases is how often those of DHCP clients are read, besides when VPP tells of one.
	// Defaults to 10 s.
	Leases time.Duration
}

// An Index looks up interfaces that stand, by name.
type Index interface {
	Get(name string) (Meta, bool)
	All() map[string]Meta
	// Last is the index that an interface has or, if it is gone by itself, had.
	Last(name string) (index uint32, known bool)
	// Names are the names of interfaces by index, for reading back: also of those that are
	// gone by themselves, of which VPP keeps much, unless another of ours has the index.
	Names() map[uint32]string
	// Leftovers notes state that outlives an interface.
	Leftovers() *leftovers.Registry
}

// A directory is the Index of a handler.
type directory struct {
	*scheduler.Index[Meta]
	h *handler
}

// Get has no interface of which it is known that another has got its index.
func (d directory) Get(name string) (Meta, bool) {
	meta, ok := d.Index.Get(name)
	if !ok {
		return meta, false
	}
	holder := d.h.table.Holder(meta.Index)
	return meta, holder == "" || holder == name
}

func (d directory) Last(name string) (uint32, bool) { return d.h.table.Index(name) }

func (d directory) Leftovers() *leftovers.Registry { return &d.h.leftovers }

func (d directory) Names() map[uint32]string {
	all := d.All()
	out := NamesByIndex(all)
	for name, index := range d.h.table.Indexes() {
		if _, stands := all[name]; !stands && (out[index] == "" || strings.HasPrefix(out[index], Untagged)) {
			out[index] = name
		}
	}
	return out
}

// A handler carries out the verbs of all descriptors of interfaces.
type handler struct {
	Options
	index   Index
	leases  *events.Leases
	kinds   map[kinds.Form]kinds.Kind
	env     *kinds.Env
	observe func(...scheduler.Observed) // may be nil

	table       ifindex.Table
	unconfirmed leftovers.Unconfirmed
	leftovers   leftovers.Registry

	mu       sync.Mutex              // guards all fields below
	untagged map[uint32]*kinds.Found // interfaces without a tag that the last full read found, by index
	entered  map[string]string       // by interface: the key of the VRF that it entered last
	stuck    map[uint32]string       // by index: interfaces that cannot leave their IPv6 VRF
	// memberships are the VRFs that interfaces may be in, by name, according to the last read.
	memberships map[string]membership
	// autoconf is the IPv6 autoconfiguration that was set, by interface. VPP does not list it.
	autoconf map[string]*interfaces.Interface_IP6ND
	rxModes  map[string][]*interfaces.Interface_RxMode // that were set, by interface
}

// newHandler returns a handler. Register sets the index later, as it needs the descriptor.
func newHandler(o Options, index Index) *handler {
	h := &handler{
		Options: o, kinds: kinds.All(), autoconf: map[string]*interfaces.Interface_IP6ND{},
	}
	h.leases = events.NewLeases(cmp.Or(o.Leases, 10*time.Second), h.listLeases, func(all ...scheduler.Observed) { h.observe(all...) })
	h.env = &kinds.Env{
		API: o.API, Leftovers: &h.leftovers, Log: o.Log, Host: o.Host, LinuxHost: o.LinuxHost, RaiseLink: func(host string) error { return h.RaiseLink(host) },
		HasLink: func(host string) bool { return h.HasLink(host) },
	}
	h.setIndex(index)
	return h
}

func (h *handler) setIndex(index Index) { h.index, h.env.Interfaces = index, index }

// Events reports changes that VPP tells about; Run is its task.
type Events = events.Events

// newEvents returns the events of the interfaces in an index.
func (h *handler) newEvents(index *scheduler.Index[Meta], s *scheduler.Scheduler) *Events {
	return events.New(events.Options{
		API: h.API, Links: index, Table: &h.table, Unconfirmed: &h.unconfirmed, Leftovers: &h.leftovers, Leases: h.leases, Observe: s.Observe,
		LinkChanged:       h.LinkChanged,
		RefreshAll:        func() { _ = s.Refresh(descriptorsOf(s, h.Southbound)...) },
		RefreshInterfaces: func() { _ = s.Refresh(Name) },
		Awaited:           h.env.AwaitedParents.Has,
		Drop:              h.Drop, Log: h.Log,
	})
}

// descriptorsOf returns the names of the descriptors of a connection.
func descriptorsOf(s *scheduler.Scheduler, connection string) (names []string) {
	for _, d := range s.Descriptors() {
		if d.Connection == connection {
			names = append(names, d.Name)
		}
	}
	return names
}

// Register adds the descriptors to s. The index has every interface that stands; the
// events are to be taken from VPP, and to be run.
func Register(s *scheduler.Scheduler, o Options) (Index, *Events, error) {
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.LinkChanged == nil {
		o.LinkChanged = func(string) {}
	}
	if o.Drop == nil {
		o.Drop = func(error) {}
	}
	if o.LinuxHost == nil {
		o.LinuxHost = func(string) (string, bool) { return "", false }
	}
	if o.RaiseLink == nil {
		o.RaiseLink = func(string) error { return nil }
	}
	if o.HasLink == nil {
		o.HasLink = func(string) bool { return false }
	}
	if o.Host == "" {
		o.Host, _ = os.Hostname() // without one they have the same
	}
	h := newHandler(o, nil)
	h.observe = s.Observe
	index, err := scheduler.Register(s, h.descriptor())
	if err != nil {
		return nil, nil, err
	}
	all := directory{index, h}
	h.setIndex(all)
	return all, h.newEvents(index, s), errors.Join(
		register(s, h.clientDescriptor()),
		register(s, h.leaseDescriptor()),
		register(s, h.autoconfDescriptor()),
		register(s, h.addressDescriptor()),
		register(s, h.vrfDescriptor()),
		register(s, h.hasAddressDescriptor()),
		register(s, h.unnumberedDescriptor()),
		register(s, h.linkStateDescriptor()),
		register(s, h.memberDescriptor()),
		register(s, h.rxModeDescriptor()),
		register(s, h.rxPlacementDescriptor()),
	)
}

func register[V scheduler.Message, M any](s *scheduler.Scheduler, d scheduler.Descriptor[V, M]) error {
	_, err := scheduler.Register(s, d)
	return err
}

func (h *handler) descriptor() scheduler.Descriptor[*interfaces.Interface, Meta] {
	return scheduler.Descriptor[*interfaces.Interface, Meta]{
		Name:       Name,
		Model:      models.For[*interfaces.Interface](),
		Connection: h.Southbound,

		Normalize:    normalize,
		Validate:     h.validate,
		Equivalent:   h.equivalent,
		Recreate:     h.recreate,
		Dependencies: h.dependencies,
		Derived:      h.derived,
		Claims:       kinds.Claims,

		Create:   h.create,
		Update:   h.update,
		Delete:   h.delete,
		Retrieve: h.retrieve, RetrieveSome: h.retrieveSome,

		RetrieveAfter: alloc.After(h.Allocations),
	}
}
