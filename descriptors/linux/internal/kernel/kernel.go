// Package kernel is what the Linux descriptors need of the kernel: the links,
// addresses, routes and neighbours of one network namespace, in types of our own,
// and the notifications of their changes.
//
// A Host opens namespaces; a Kernel is one of them, opened: its sockets stay in
// the namespace, so that no thread changes namespaces for an operation (but for a
// sysctl, see locked.go). This host is Host{}; package fakelinux is one that lives
// in memory.
//
// A Kernel is safe for use by any goroutine. Errors wrap the errno of rtnetlink(7):
// ENODEV where a link is missing, EEXIST, ESRCH, EOPNOTSUPP and so on. A dump that
// the kernel could not make consistent is repeated.
//
// Tests run against the real kernel in namespaces of their own.
package kernel

import (
	"io"
	"net"
	"net/netip"
)

// An ID tells network namespaces apart, by the inode that stands for each
// (namespaces(7)). It is not used again while anybody has the namespace open.
type ID struct{ Dev, Ino uint64 }

// A Host opens network namespaces by the path of a file that stands for them,
// such as /run/netns/red or /proc/1/ns/net.
type Host interface {
	// Stat tells which namespace the path leads to now.
	Stat(path string) (ID, error)
	Open(path string) (Kernel, ID, error)
}

// A Kernel is the kernel as seen in one network namespace. A link is given by its
// index.
type Kernel interface {
	Links
	L3
	// Sysctl writes a value under /proc/sys/net, such as "ipv6/conf/lo/disable_ipv6".
	Sysctl(name, value string) error
	// Announce has the installation of an agent be seen in the namespace until the closer is
	// closed, or the process ends.
	Announce(installation string) (io.Closer, error)
	// Announced tells whether an installation is seen, so that its agent lives.
	Announced(installation string) bool
	// Subscribe opens the notifications of the namespace.
	Subscribe() (Events, error)
	// Close releases what is open. The namespace goes when nobody else has it.
	Close() error
}

// Links reads and changes links.
type Links interface {
	Links() ([]Link, error)
	LinkByName(name string) (Link, error)
	LinkByIndex(index int) (Link, error)
	// AddLink makes a link of the kind, name and table of l; of a veth also the
	// other end, named peer.
	AddLink(l Link, peer string) error
	DelLink(index int) error
	SetName(index int, name string) error
	SetAlias(index int, alias string) error
	SetUp(index int, up bool) error
	SetMTU(index, mtu int) error
	SetMAC(index int, mac net.HardwareAddr) error
	// SetMaster puts the link under another, or under none (0).
	SetMaster(index, master int) error
	// Move takes the link to another namespace, where its index may be another.
	Move(index int, to Kernel) error
	// Offload reads and SetOffload changes, by name, whether checksums are offloaded.
	Offload(name string) (Offload, error)
	SetOffload(name string, want Offload) error
}

// L3 reads and changes addresses, routes and neighbours.
type L3 interface {
	// Addrs returns the addresses of one link, or of all (0).
	Addrs(index int) ([]Addr, error)
	AddAddr(a Addr) error
	DelAddr(a Addr) error
	// Routes returns the unicast routes, of all tables, that keep accepts.
	Routes(keep func(Route) bool) ([]Route, error)
	AddRoute(r Route) error
	ReplaceRoute(r Route) error
	DelRoute(r Route) error
	// Neighbours returns the permanent neighbours, of IPv4 and IPv6.
	Neighbours() ([]Neighbour, error)
	// AddNeighbour makes a permanent neighbour; with replace, also of one that is there.
	AddNeighbour(n Neighbour, replace bool) error
	DelNeighbour(n Neighbour) error
}

// A Link is a network device.
type Link struct {
	Index  int
	Name   string
	Kind   string // "veth", "dummy", "vrf", "tun"; empty for a device of hardware and for lo
	Alias  string // without Owner
	Owner  string // the installation in the alias; SetAlias is given both, see JoinAlias
	Up     bool   // administratively
	MTU    int
	MAC    net.HardwareAddr
	Master int    // index of the link it is under; 0: none
	Peer   int    // index of the other end of a veth, in its namespace
	Table  uint32 // routing table of a vrf
}

// An Offload tells whether the device checks received packets and fills in the
// checksums of sent ones.
type Offload struct{ RX, TX bool }

// An Addr is an address of a link.
type Addr struct {
	Link   int
	Prefix netip.Prefix // host bits and all: 10.0.0.1/24
}

// A Route is a unicast route with one next hop.
type Route struct {
	Link     int
	Dst      netip.Prefix // masked
	Gateway  netip.Addr   // zero: on the link
	Scope    uint8        // RT_SCOPE_* of rtnetlink(7); 0 for IPv6
	Metric   uint32       // IPv6: never 0
	Table    uint32
	Protocol uint8
}

// A Neighbour is a permanent entry of a neighbour table.
type Neighbour struct {
	Link     int
	IP       netip.Addr
	MAC      net.HardwareAddr
	Protocol uint8
}

// Protocol marks our routes and neighbours: who made them, in the numbers of
// /etc/iproute2/rt_protos, where 151 is free. "ip route show proto 151" lists them.
const Protocol = 151

// MainTable is the routing table of links outside of any VRF.
const MainTable = 254
