// Package kernel gives the Linux descriptors access to one network namespace: its links,
// addresses, routes and neighbours, in types of this package, and notifications of
// changes.
//
// A Host opens namespaces; a Kernel is an open one. Its sockets stay in the namespace, so
// no thread changes namespaces for an operation (except for a sysctl, see locked.go).
// This{} is this host; package fakelinux is one in memory.
//
// A Kernel is safe for use by any goroutine. Errors wrap the errno of rtnetlink(7): ENODEV
// for a missing link, EEXIST, ESRCH, EOPNOTSUPP and so on. A dump that the kernel reports
// as inconsistent is repeated.
//
// Tests use private namespaces of the real kernel.
package kernel

import (
	"io"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// An ID identifies a network namespace by its inode (namespaces(7)). The kernel does not
// reuse an ID while the namespace is open anywhere.
type ID struct{ Dev, Ino uint64 }

// A Host opens network namespaces by the path of their file, such as /run/netns/red or
// /proc/1/ns/net.
type Host interface {
	// Stat returns the namespace that the path leads to now.
	Stat(path string) (ID, error)
	Open(path string) (Kernel, ID, error)
	// Make makes a namespace at a path that leads nowhere, and Unmake removes the path. The namespace lives on
	// as long as somebody uses it.
	Make(path string) (ID, error)
	Unmake(path string) error
	// Used returns a process in each of these namespaces that has one. The
	// agent does not count, nor do the programs that it runs, such as iptables.
	Used(asked func(ID) bool) map[ID]string
}

// A Kernel is an open network namespace. Links are identified by their index.
type Kernel interface {
	Links
	L3
	Filter
	// Sysctl writes a value under /proc/sys/net, such as "ipv6/conf/lo/disable_ipv6".
	Sysctl(name, value string) error
	// Announce makes the installation of an agent visible in the namespace, until the
	// closer is closed or the process ends.
	Announce(installation string) (io.Closer, error)
	// Announced reports whether an installation is visible, which means that its agent
	// runs.
	Announced(installation string) bool
	// Subscribe opens the notifications of the namespace, without those of routes and neighbours
	// that this Kernel changes itself.
	Subscribe() (Events, error)
	// Close closes all sockets. The kernel removes the namespace when no one else uses it.
	Close() error
}

// Links reads and changes links.
type Links interface {
	Links() ([]Link, error)
	// LinkByName finds a link by any of its names.
	LinkByName(name string) (Link, error)
	LinkByIndex(index int) (Link, error)
	// Counters returns the packets and bytes that went through a link since it exists.
	Counters(index int) (Counters, error)
	// AddLink creates a link with the kind, name, group and table of l, but no VETH.
	AddLink(l Link) error
	// AddVETH creates a pair, with the end of that name and group here and the end peer in
	// another namespace, or in this one.
	AddVETH(end Link, peer string, in Kernel) error
	DelLink(index int) error
	SetName(index int, name string) error
	// DelOther removes an alternative name.
	DelOther(index int, name string) error
	SetAlias(index int, alias string) error
	// SetGroup puts the link into a group; 0 is that of all links that nobody puts into another one.
	SetGroup(index int, group uint32) error
	SetUp(index int, up bool) error
	SetMTU(index, mtu int) error
	SetMAC(index int, mac net.HardwareAddr) error
	// SetMaster sets the master of the link; 0 means none.
	SetMaster(index, master int) error
	// Move moves the link to another namespace. Its index may change.
	Move(index int, to Kernel) error
	// Offload and SetOffload read and change checksum offloading, by the name of the link.
	Offload(name string) (Offload, error)
	SetOffload(name string, want Offload) error
}

// L3 reads and changes addresses, routes and neighbours.
type L3 interface {
	// Addrs returns the addresses of one link, or of all (0).
	Addrs(index int) ([]Addr, error)
	AddAddr(a Addr) error
	DelAddr(a Addr) error
	// Bare returns the addresses of which somebody has removed a route that the kernel adds with them.
	Bare() ([]Addr, error)
	// Connect puts those routes of an address back.
	Connect(a Addr) error
	// HasVRFRules reports whether the namespace has the rules that send packets of VRFs to their tables.
	HasVRFRules() (bool, error)
	// AddVRFRules adds those that are missing.
	AddVRFRules() error
	// Routes returns the routes, of all types and tables, that keep accepts. Those of one place are in the
	// order of the kernel, which uses the first one.
	Routes(keep func(Route) bool) ([]Route, error)
	// AddRoutes adds routes, and returns a result for each: EEXIST if there is one in its place.
	AddRoutes(routes ...Route) []error
	// AddRouteBeside adds a route whether or not there are others in its place: before them, or behind.
	// EEXIST means that there is the same one, for IPv6 also one of another protocol.
	AddRouteBeside(r Route, behind bool) error
	// DelRoute removes this route. Others in its place stay.
	DelRoute(r Route) error
	// Neighbours returns the permanent neighbours, of IPv4 and IPv6.
	Neighbours() ([]Neighbour, error)
	// AddNeighbour creates a permanent neighbour. With replace, it overwrites an existing
	// one.
	AddNeighbour(n Neighbour, replace bool) error
	DelNeighbour(n Neighbour) error
}

// A Link is a network device.
type Link struct {
	Index  int
	Name   string
	Others []string // alternative names, under which the kernel finds it too (ip link property)
	Kind   string   // "veth", "dummy", "vrf", "tun"; empty for a device of hardware and for lo
	Alias  string   // without Owner
	Owner  string   // installation of the owner, from the alias; see JoinAlias
	Group  uint32   // IFLA_GROUP, the only attribute that a new link can have which the kernel gives no meaning
	Up     bool     // administratively
	MTU    int
	MAC    net.HardwareAddr
	Master int    // index of its master; 0: none
	Peer   int    // index of the other end of a veth, in its namespace
	Table  uint32 // routing table of a vrf
	// Checksum offloading, which netlink does not tell; nil: nobody has read it.
	Offload *Offload
	About   About
}

// MinMTUIPv6 is the smallest MTU of a link with IPv6 (IPV6_MIN_MTU). Below it, the kernel removes IPv6 from the link.
const MinMTUIPv6 = 1280

// Names returns all names of a link, the first of which is its Name.
func (l Link) Names() []string { return append([]string{l.Name}, l.Others...) }

// Has reports whether a link has a name.
func (l Link) Has(name string) bool { return l.Name == name || slices.Contains(l.Others, name) }

// An About is what the kernel tells of a link for people: nothing is decided by it.
type About struct {
	Parent        int    // index of the link on which this one rests (IFLA_LINK); 0: none
	Oper          uint8  // operational state of RFC 2863 (IF_OPER_*)
	Flags         uint32 // IFF_* of netdevice(7)
	Encapsulation string // "ether", "loopback"
	// The numbers of queues, and of packets that wait to be sent at most.
	RxQueues, TxQueues, TxQueueLen int
}

// Running reports whether packets can go through the link now.
func (a About) Running() bool { return a.Flags&unix.IFF_RUNNING != 0 }

// Counters counts the packets of a link. Dropped packets are those without an error for
// which the kernel had no room.
type Counters struct {
	RxPackets, RxBytes, RxErrors, RxDropped uint64
	TxPackets, TxBytes, TxErrors, TxDropped uint64
}

// An Offload holds the state of checksum offloading: RX for received packets, TX for sent
// ones.
type Offload struct{ RX, TX bool }

// An Addr is an address of a link.
type Addr struct {
	Link   int
	Prefix netip.Prefix // with host bits: 10.0.0.1/24
	// Peer is the other end of a point-to-point address, which has the prefix length. The agent makes none.
	Peer netip.Addr
	// Protocol is the creator, as for routes; 0: unknown, as in kernels before 5.18.
	Protocol uint8
	// Its lifetime is limited: a router advertisement or a DHCP client made it.
	Temporary bool
	// States of IPv6 (RFC 4862): another host has the address, or that is not known yet.
	Duplicate, Tentative bool
}

// A Route is a route as the kernel has it. Routes are equal if all of it is equal.
//
// The agent writes plain routes; see Plain. What the kernel has beside them may be of another type,
// or have attributes that only More holds.
//
// The kernel lists the routes of IPv6 with one place as one route with several next hops, though it has
// a route for each. Routes returns them one by one. The kernel then tells the protocol and the
// attributes of the first one only; Protocol is 0 for the others.
type Route struct {
	Link     int
	Dst      netip.Prefix // masked
	Gateway  netip.Addr   // zero: on the link
	Scope    uint8        // RT_SCOPE_* of rtnetlink(7); 0 for IPv6
	Metric   uint32       // IPv6: never 0
	Table    uint32
	Protocol uint8
	// What a route of the agent has not is not in dumps.
	Type   uint8 `json:"-"` // RTN_*, such as a blackhole; 0 stands for RTN_UNICAST
	TOS    uint8 `json:"-"`
	Flags  uint8 `json:"-"` // RTNH_F_*, without those that the kernel changes by itself
	Weight uint8 `json:"-"` // of one of several next hops of IPv6, less one
	// All other attributes, in the form of the kernel and sorted: several next hops, a nexthop
	// object, metrics, encapsulation, a source address and so on.
	More string `json:"-"`
}

// A Place is what routes compete for: the kernel has several in one place only if their next hops or
// other attributes differ, and only if they were added beside each other on purpose.
type Place struct {
	Dst    netip.Prefix
	Table  uint32
	Metric uint32
	TOS    uint8
}

// A VRFRule says in an Event that rules of VRFs have changed; see HasVRFRules.
type VRFRule struct{}

// A Neighbour is a permanent entry of a neighbour table.
type Neighbour struct {
	Link     int
	IP       netip.Addr
	MAC      net.HardwareAddr
	Protocol uint8
}

// Protocol marks routes, neighbours and addresses of the agent. It is a number of
// /etc/iproute2/rt_protos, where 151 is free. "ip route show proto 151" lists them.
const Protocol = 151

// MainTable is the routing table of links outside of any VRF.
const MainTable = 254
