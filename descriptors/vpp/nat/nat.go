// Package nat implements VPP's NAT44: the translation of IPv4 addresses and ports.
//
//	err := nat.Register(s, nat.Options{API: manager, Interfaces: links, Connection: "vpp"})
//
// VPP has two plugins for it. One keeps a translation by both ends of a connection
// (endpoint-dependent, nat44-ed), the other by its source alone (nat44-ei). The value of
// NAT44 says which of them is enabled, and the other values use the enabled one. Twice-NAT,
// VRF tables, mappings with several local sides or of an interface, and identity mappings with a
// port in several VRFs need the endpoint-dependent plugin. The other one has a mapping only while
// a pool has its address.
//
// VPP does not refuse these requests, and answers the dumps incompletely:
//
//	request                                       | VPP 25.10
//	remove a side that an interface lacks         | removes its other side (nat44_ed_del_interface)
//	add a range with an address that exists       | adds the addresses before it, and stops
//	balance with probabilities of 0               | crashes at the first packet: division by zero
//	dump VRF tables, after a route was removed    | the list ends with unrelated memory
//	dump a mapping                                | affinity and the address of twice-NAT are missing
//	add a mapping with a port to nat44-ei         | refuses it if no pool has the address; nat44-ed does not
//	an identity mapping in several VRFs, nat44-ei | frees its port once for each VRF, and so miscounts the used ports of the address
//	remove an address from a pool of nat44-ei     | refuses it while a static mapping with a port has it
//
// So the descriptors read sides before they remove them, and repair ranges. The tag of a mapping
// has its owner, the label of its value, and the settings that a dump lacks.
//
// VPP stores no owner of other items. An item that nobody declares stays, unless the agent
// remembers that it created the item.
//
//	file          | subject
//	nat.go        | descriptors
//	plugins.go    | the two plugins behind one interface
//	global.go     | NAT44 itself: enabling, forwarding, reassembly
//	lists.go      | the deprecated lists of its value
//	interfaces.go | sides of interfaces
//	pools.go      | pools of addresses
//	vrfs.go       | VRF tables and their routes
//	mapping.go    | mappings in VPP's form, and their tags
//	requests.go   | requests for mappings and their dumps, for each plugin
//	dnat_valid.go | validation of mappings
//	dnat.go       | mappings: create, update, delete
//	dnat_read.go  | mappings: Retrieve
//
// Tests: verbs and Retrieve run against a simulated VPP, which is itself tested against a
// real one.
package nat

import (
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ownership"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/scheduler"
)

// Names of the descriptors, as logs, REST and RetrieveAfter use them.
const (
	GlobalName          = "vpp-nat44-global"
	GlobalInterfaceName = "vpp-nat44-global-interface"
	GlobalAddressName   = "vpp-nat44-global-address"
	InterfaceName       = "vpp-nat44-interface"
	PoolName            = "vpp-nat44-address-pool"
	PoolAddressesName   = "vpp-nat44-pool-addresses"
	VRFName             = "vpp-nat44-vrf"
	RouteName           = "vpp-nat44-vrf-route"
	DNATName            = "vpp-nat44-dnat"
)

// ErrDisabled reports that neither plugin is enabled, although a value has enabled one: another
// client of VPP has disabled it.
var ErrDisabled = errors.New("NAT44 is disabled in VPP")

// Options configure the descriptors. All fields except Tags are required.
type Options struct {
	API        conn.API
	Interfaces iface.Index
	// Tags tells the owner of a mapping by its tag. Defaults to: every mapping with a tag
	// belongs to this agent.
	Tags       *ownership.Owner
	Connection string
}

// handler implements the verbs. The scheduler calls verbs of different values concurrently.
type handler struct {
	Options
	// independent tells which plugin the last value of NAT44 asked for. It decides only if
	// both are enabled.
	independent atomic.Bool
	// Retrieve and the verbs of one descriptor write these sets, and those of others read
	// them. Without the verbs, the next Retrieve would look for an item in the way in which
	// it was declared before.
	listed declared // by the value of NAT44
	single declared // by values of their own
	routes noted[vrfRoute]
	held   noted[netip.Addr] // addresses that left their pool while a mapping had them
}

// declared are the interfaces and addresses that are declared in one of the two possible ways.
// Retrieve reports each of them in that way.
type declared struct {
	interfaces noted[string]
	addresses  noted[poolKey]
}

// noted is a set that several goroutines use. The zero value is empty.
type noted[T comparable] struct {
	mu  sync.Mutex // guards all
	all map[T]bool
}

// replace replaces the content of the set, and returns the former one. The caller must not change
// the map afterwards.
func (n *noted[T]) replace(all map[T]bool) (before map[T]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, n.all = n.all, all
	return before
}

// note adds one to the set, or removes it.
func (n *noted[T]) note(one T, is bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if is && n.all == nil {
		n.all = map[T]bool{}
	}
	if is {
		n.all[one] = true
	} else {
		delete(n.all, one)
	}
}

// empty reports that nothing is in the set.
func (n *noted[T]) empty() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.all) == 0
}

// has reports whether one is in the set.
func (n *noted[T]) has(one T) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all[one]
}

// Register adds the descriptors to s. The caller registers the interface descriptor first.
func Register(s *scheduler.Scheduler, o Options) error {
	h := &handler{Options: o}
	registrar := s.OnConnection(o.Connection)
	_, errInterface := scheduler.Register(registrar, h.interfaceDescriptor())
	_, errPool := scheduler.Register(registrar, h.poolDescriptor())
	_, errAddresses := scheduler.Register(registrar, h.poolAddressesDescriptor())
	_, errGlobal := scheduler.Register(registrar, h.globalDescriptor())
	_, errListed := scheduler.Register(registrar, h.listedInterfaceDescriptor())
	_, errAddress := scheduler.Register(registrar, h.listedAddressDescriptor())
	_, errRoute := scheduler.Register(registrar, h.routeDescriptor())
	_, errVRF := scheduler.Register(registrar, h.vrfDescriptor())
	_, errDNAT := scheduler.Register(registrar, h.dnatDescriptor())
	return errors.Join(errDNAT, errInterface, errPool, errAddresses, errGlobal, errListed, errAddress, errRoute, errVRF)
}

// enabledFor is the dependency on NAT44, or on the endpoint-dependent kind of it. The labels
// are part of the user interface: status and plans show them for pending values.
func enabledFor(endpointDependent bool) scheduler.Dependency {
	if endpointDependent {
		return scheduler.Dependency{Label: "nat44-is-in-endpoint-dependent-mode", Key: keys.NATEndpointDependent}
	}
	return scheduler.Dependency{Label: "nat44-global-config-exists", Key: keys.NAT44Global}
}

// anyVRF is the VRF of addresses that are for packets of all VRFs (~0).
const anyVRF = ^uint32(0)

// vrfExists is the dependency on the table of a VRF; none for the default one, and for any. VPP
// would create a missing table by itself and remove it with its last user. The descriptor of
// VRF tables would then see a table come and go that nobody declared.
func vrfExists(label string, id uint32) []scheduler.Dependency {
	if id == 0 || id == anyVRF {
		return nil
	}
	return []scheduler.Dependency{{Label: label, Key: keys.VRFTable(id, false)}}
}
