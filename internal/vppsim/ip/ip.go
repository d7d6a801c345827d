// Package ip simulates VPP's IP tables and routes, and the addresses of interfaces.
//
// Three plugins of VPP work together here, so one package has them: an address makes
// routes in the table of its interface while the interface is up, and a table lives on as
// long as an interface or a path uses it.
//
//	table, deleted       stays while something uses it; then its slot is free, with the routes left in it
//	table, new           takes over a free slot of its IP version, and the routes in it
//	address, added       makes connected routes while the interface is up; it may not overlap in its table
//	interface, deleted   its addresses go; API routes stay and name the dead index
package ip

import (
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// IP is the plugin's state. Other plugins look tables up and add addresses.
type IP struct {
	vpp        *core.VPP
	tables     tables
	users      []func(Key) bool
	private    []func() []string
	networks   map[Key]networks // of all addresses
	unnumbered map[uint32]uint32
	linkLocal  linkLocals
	connected  map[*core.Interface][]ownRoute
}

type index = interface_types.InterfaceIndex

// New adds the plugin. Both IP versions have table 0.
func New(vpp *core.VPP) *IP {
	p := &IP{
		vpp: vpp, tables: newTables(), networks: map[Key]networks{}, unnumbered: map[uint32]uint32{},
		linkLocal: linkLocals{}, connected: map[*core.Interface][]ownRoute{},
	}
	vpp.Register(core.Plugin{
		Flags: p.updateConnected,
		Removing: func(i *core.Interface) {
			p.clearAddresses(i)
			delete(p.unnumbered, i.Index)
			delete(p.linkLocal, i)
		},
		Removed: p.Collect, // a deleted table may have lost its last interface
	})
	p.addressMessages()
	p.unnumberedMessages()
	p.tableMessages()
	p.routeMessages()
	return p
}

// Family returns 0 for IPv4 and 1 for IPv6, the index into a pair such as
// core.Interface.Tables.
func Family(ipv6 bool) int {
	if ipv6 {
		return 1
	}
	return 0
}
