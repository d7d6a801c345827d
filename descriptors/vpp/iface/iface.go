// Package iface keeps VPP interfaces as declared, with their addresses, VRFs, DHCP clients
// and receive queues.
//
//	links, events, err := iface.Register(s, iface.Options{API: manager, ...})
//	go events.Run(ctx)
//	meta, ok := links.Get("loop1") // sw_if_index, ...
//
// The descriptor vpp-interface creates the interface. Each value derived from it (an
// address, the VRF, ...) has a descriptor of its own. The packages below this one are:
//
//	internal/kinds    the differences between types of interface: one file per type
//	internal/tables   which memberships in VRFs the tables of an interface show
//	internal/events   links, deleted interfaces and DHCP leases that VPP reports
//
// and, shared with l2 and l3:
//
//	../internal/ifindex     which name has which sw_if_index, and in which state
//	../internal/leftovers   state that VPP keeps after an interface was deleted
//
// The tag of an interface in VPP has its name and its owner (package ownership). So an
// agent finds its interfaces again after a restart. An interface without a tag belongs to
// another client: it is listed as UNTAGGED-<name in VPP> and never changed. The same holds
// for an interface with the tag of another agent, which is listed under its tag. An
// interface whose creation was interrupted is found again, see adopt.go.
//
// VPP keeps state of a deleted interface, and gives its index to the next interface. So
// values that use an interface are deleted before it.
//
// Tests: tables for validation and comparison; the conformance suite for each descriptor
// on a simulated VPP, whose behaviour is compared with a real one.
package iface

import (
	"cmp"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/events"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/slaac"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/leftovers"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ownership"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/unreported"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/inspect"
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

// Options are the options of the descriptors. API is required.
type Options struct {
	API conn.API
	// Tags knows the owners of tags. Defaults to this agent owning all tags.
	Tags *ownership.Owner
	Log  *slog.Logger // Defaults to slog.Default.
	// Connection is the scheduler's connection, on which the verbs share a limit.
	Connection string
	// LinuxHost returns the kernel's name of an existing Linux interface, and whether others have made its link. Defaults to none
	// being known.
	LinuxHost func(name string) (host string, foreign, ok bool)
	// RaiseLink enables a link of the host, if it exists. Defaults to doing nothing.
	RaiseLink func(host string) error
	// HasLink tells whether the agent's network namespace has a link of that name.
	// Defaults to false.
	HasLink func(host string) bool
	// LinkChanged is called with the interfaces whose links changed. Defaults to doing
	// nothing.
	LinkChanged func(name string)
	// Drop ends the connection to VPP after an invalid answer. Defaults to doing nothing.
	Drop func(why error)
	// Allocations resolves references to addresses. Defaults to none.
	Allocations alloc.Book
	// Host distinguishes interfaces from those of the same name on other hosts, in
	// generated MAC addresses. Defaults to the host name.
	Host string
	// MTU of interfaces that declare none; 0 leaves VPP's default.
	MTU uint32
	// Memory keeps creations that a kill of the agent interrupts, and settings that VPP does not report, beside
	// records of others. Defaults to none: an interface that is not declared any more after that stays in VPP, and
	// such settings are set again after a restart of the agent.
	Memory scheduler.Memory
	// Run identifies the run of VPP that is connected now, or was last. Defaults to one that never ends.
	Run func() string
	// Leases is the period of reading DHCP leases, besides reads after an event. Defaults
	// to 10 s.
	Leases time.Duration
}

// An Index looks up existing interfaces by name.
type Index interface {
	Get(name string) (Meta, bool)
	All() map[string]Meta
	// Last returns the index of an interface. For an interface that another client
	// deleted, it is the last known index.
	Last(name string) (index uint32, known bool)
	// Names returns names by index, for reads of state that refers to indexes. It includes
	// interfaces that other clients deleted, as VPP keeps state of these, unless another
	// of our interfaces has the index.
	Names() map[uint32]string
	// Leftovers notes state that outlives an interface.
	Leftovers() *leftovers.Registry
	// Connected tells whether VPP may have a route of its own to exactly this prefix, since an
	// interface has an address there. It ignores tables.
	Connected(to netip.Prefix) bool
}

// A directory is the Index of a handler.
type directory struct {
	*scheduler.Index[Meta]
	h *handler
}

// Get does not return an interface whose index has a new holder.
func (d directory) Get(name string) (Meta, bool) {
	meta, ok := d.Index.Get(name)
	if !ok {
		return meta, false
	}
	holder := d.h.table.Holder(meta.Index)
	return meta, holder == "" || holder == name
}

// Last is that of the table, which remembers deleted interfaces.
func (d directory) Last(name string) (uint32, bool) { return d.h.table.Index(name) }

// Leftovers is shared with l2 and l3: an index has one record of everything that outlives
// its interface.
func (d directory) Leftovers() *leftovers.Registry { return &d.h.leftovers }

// Connected is for routes, which those of addresses take precedence over.
func (d directory) Connected(to netip.Prefix) bool { return d.h.networks.contains(to) }

// Names prefers an existing interface to a deleted one with the same index, unless the
// existing one has no tag.
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
	index      Index
	leases     *events.Leases
	kinds      map[kinds.Form]kinds.Kind
	env        *kinds.Env
	observe    func(...scheduler.Observed) // may be nil
	wakeEvents func()                      // has waiting events reported
	holder     func(index uint32) string   // of an index according to the scheduler, a moment behind; empty: none

	table       ifindex.Table
	unconfirmed leftovers.Unconfirmed
	leftovers   leftovers.Registry
	mtus        declaredMTUs
	networks    networks
	addressed   addressedSet
	bonded      kinds.Bonded
	autoconf    *unreported.Notes // of IPv6 autoconfiguration, by interface; see slaac.Note
	solicited   slaac.Pace

	// VPP does not list the following completely, so the handler remembers it until the agent stops.
	mu       sync.Mutex              // guards all fields below
	untagged map[uint32]*kinds.Found // interfaces without a tag that the last full read found, by index
	entered  map[string]string       // by interface: the key of the VRF that it entered last
	stuck    map[uint32]string       // by index: interfaces that cannot leave their IPv6 VRF
	// memberships are the VRFs that interfaces may be in, by name, according to the last read.
	memberships map[string]membership
	looked      map[string]membership                     // the same according to a look since, which changes nothing else
	rxModes     map[string][]*interfaces.Interface_RxMode // that were set, by interface
}

// newHandler returns a handler. Register sets the index later, as it needs the descriptor.
func newHandler(o Options, index Index) *handler {
	h := &handler{
		Options: o, kinds: kinds.All(), wakeEvents: func() {}, holder: func(uint32) string { return "" },
		autoconf: unreported.New(unreported.Options{Prefix: "vpp/autoconf/", Memory: o.Memory, Run: o.Run, Log: o.Log}),
	}
	h.unconfirmed.KeepIn(o.Memory, cmp.Or(o.Log, slog.Default()))
	h.leases = events.NewLeases(cmp.Or(o.Leases, 10*time.Second), h.listLeases, func(all ...scheduler.Observed) { h.observe(all...) })
	h.env = &kinds.Env{
		API: o.API, Leftovers: &h.leftovers, Log: o.Log, Host: o.Host, LinuxHost: o.LinuxHost, RaiseLink: func(host string) error { return h.RaiseLink(host) },
		HasLink: func(host string) bool { return h.HasLink(host) },
	}
	h.leftovers.FillerMAC = h.env.FillerMAC()
	h.setIndex(index)
	return h
}

// setIndex gives the handler and its kinds the index. It runs before any verb.
func (h *handler) setIndex(index Index) { h.index, h.env.Interfaces = index, index }

// Events reports changes that VPP tells about; Run is its task.
type Events = events.Events

// newEvents returns the events of the interfaces in an index.
func (h *handler) newEvents(index *scheduler.Index[Meta], s *scheduler.Scheduler) *Events {
	return events.New(events.Options{
		API: h.API, Links: index, Table: &h.table, Unconfirmed: &h.unconfirmed, Leftovers: &h.leftovers, Leases: h.leases, Observe: s.Observe,
		LinkChanged:       h.LinkChanged,
		RefreshAll:        func() { _ = s.Refresh(descriptorsOf(s, h.Connection)...) },
		RefreshInterfaces: func() { _ = s.Refresh(Name) },
		Awaited:           h.env.AwaitedParents.Has,
		Drop:              h.Drop, Log: h.Log,
	})
}

// descriptorsOf returns the names of the descriptors of a connection.
func descriptorsOf(s *scheduler.Scheduler, connection string) (names []string) {
	for _, d := range inspect.Descriptors(s) {
		if d.Connection == connection {
			names = append(names, d.Name)
		}
	}
	return names
}

// Register adds the descriptors to s. The index has every interface that exists. The
// caller passes VPP's events to Events, and runs it.
func Register(s *scheduler.Scheduler, o Options) (Index, *Events, error) {
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.LinkChanged == nil {
		o.LinkChanged = func(string) {}
	}
	if o.Drop == nil {
		o.Drop = func(error) {}
	}
	if o.LinuxHost == nil {
		o.LinuxHost = func(string) (string, bool, bool) { return "", false, false }
	}
	if o.RaiseLink == nil {
		o.RaiseLink = func(string) error { return nil }
	}
	if o.HasLink == nil {
		o.HasLink = func(string) bool { return false }
	}
	if o.Host == "" {
		o.Host, _ = os.Hostname() // without a host name, MAC addresses depend on names only
	}
	h := newHandler(o, nil)
	h.observe = s.Observe
	registrar := s.OnConnection(o.Connection)
	index, err := scheduler.Register(registrar, h.descriptor())
	if err != nil {
		return nil, nil, err
	}
	all := directory{index, h}
	h.setIndex(all)
	reports := h.newEvents(index, s)
	h.wakeEvents, h.holder = reports.Wake, reports.Holder
	return all, reports, errors.Join(
		register(registrar, h.clientDescriptor()),
		register(registrar, h.leaseDescriptor()),
		register(registrar, h.autoconfDescriptor()),
		register(registrar, h.addressDescriptor()),
		register(registrar, h.vrfDescriptor()),
		register(registrar, h.hasAddressDescriptor()),
		register(registrar, h.unnumberedDescriptor()),
		register(registrar, h.linkStateDescriptor()),
		register(registrar, h.memberDescriptor()),
		register(registrar, h.rxModeDescriptor()),
		register(registrar, h.rxPlacementDescriptor()),
	)
}

// register adds a descriptor and drops its index.
func register[V proto.Message, M any](to scheduler.Registrar, d scheduler.Descriptor[V, M]) error {
	_, err := scheduler.Register(to, d)
	return err
}

// origin returns the key of the interface with which a key comes.
func origin(keyOrPrefix string) string {
	if name, ok := keys.InterfaceOf(keyOrPrefix); ok && name != keys.Invalid {
		return keys.Interface(name).Key()
	}
	return ""
}

// descriptor handles the interface itself. The parts that can fail or wait independently
// are derived values with descriptors of their own.
func (h *handler) descriptor() scheduler.Descriptor[*interfaces.Interface, Meta] {
	return scheduler.Descriptor[*interfaces.Interface, Meta]{
		Name:  Name,
		Model: models.For[*interfaces.Interface](),

		Normalize:    normalize,
		Validate:     h.validate,
		Equivalent:   h.equivalent,
		Recreate:     h.recreate,
		Dependencies: h.dependencies,
		Derived:      h.derived,
		Claims:       kinds.Claims,
		Origin:       origin,

		Create:   h.create,
		Update:   h.update,
		Delete:   h.delete,
		Retrieve: h.retrieve, RetrieveSome: h.retrieveSome,

		RetrieveAfter: alloc.After(h.Allocations),
	}
}
