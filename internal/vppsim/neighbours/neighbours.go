// Package neighbours simulates the neighbours of interfaces, proxy ARP, and the endpoints
// of tunnels with many peers (TEIB).
//
// Neighbours and TEIB entries are in one package because VPP resolves the paths of both
// through one prefix. A change of one of them can crash VPP because of another one; see
// plugin.besideDead.
//
//	interface down       dynamic neighbours go, static ones stay
//	interface deleted    dynamic neighbours go, and from 26.02 on static ones; proxy ARP and TEIB entries stay at the dead index
package neighbours

import (
	"maps"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/arp"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/teib"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/ip"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// A key is an address on an interface: that of a neighbour or of a peer.
type key struct {
	index   uint32
	address netip.Addr
}

type plugin struct {
	vpp    *core.VPP
	tables *ip.IP

	neighbours  map[key]ip_neighbor.IPNeighbor
	agings      [2]aging // of IPv4 and IPv6
	proxyRanges []arp.ProxyArp
	proxying    map[uint32]bool // by index: the interface answers for the ranges
	peers       map[key]teib.TeibEntry
}

type index = interface_types.InterfaceIndex

// New adds the plugin. Entries refer to IP tables.
func New(vpp *core.VPP, tables *ip.IP) {
	p := &plugin{
		vpp: vpp, tables: tables, neighbours: map[key]ip_neighbor.IPNeighbor{}, agings: defaultAgings(),
		proxying: map[uint32]bool{}, peers: map[key]teib.TeibEntry{},
	}
	vpp.Register(core.Plugin{
		Messages: []core.Message{core.Call(p.change), core.Dump(p.dump), core.Call(p.flush)},
		Pages:    map[string]func() string{"show ip neighbors": p.show},
		Flags: func(i *core.Interface) {
			if !i.IsUp() {
				p.forgetDynamic(i)
			}
		},
		Removing: p.forget,
	})
	p.agingMessages()
	p.proxyMessages()
	p.peerMessages()
}

// forgetDynamic deletes the neighbours of an interface that are not static.
func (p *plugin) forgetDynamic(i *core.Interface) {
	maps.DeleteFunc(p.neighbours, func(key key, n ip_neighbor.IPNeighbor) bool { return key.index == i.Index && !isStatic(n) })
}

// forget deletes the neighbours of an interface that is deleted. Before 26.02, static ones stay.
func (p *plugin) forget(i *core.Interface) {
	if p.vpp.Before("26.02") {
		p.forgetDynamic(i)
		return
	}
	maps.DeleteFunc(p.neighbours, func(key key, _ ip_neighbor.IPNeighbor) bool { return key.index == i.Index })
}

// isStatic reports whether the neighbour was declared, not learned.
func isStatic(n ip_neighbor.IPNeighbor) bool {
	return n.Flags&ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC != 0
}

// change adds, replaces or deletes a neighbour. A dynamic neighbour with another MAC
// address does not replace a static one. A delete ignores the MAC address. VPP accepts any
// address, also one outside of the interface's networks. A neighbour without FIB entry has
// ~0 as its counter.
func (p *plugin) change(q *ip_neighbor.IPNeighborAddDel, r *ip_neighbor.IPNeighborAddDelReply) core.Errno {
	if _, errno := p.vpp.At(q.Neighbor.SwIfIndex); errno != core.OK {
		return errno
	}
	key := key{uint32(q.Neighbor.SwIfIndex), vppwire.Addr(q.Neighbor.IPAddress)}
	old, has := p.neighbours[key]
	switch {
	case !q.IsAdd && !has:
		return api.NO_SUCH_ENTRY
	case q.IsAdd != has && p.besideDead(key):
		return core.Crash
	case !q.IsAdd:
		delete(p.neighbours, key)
		return core.OK
	case has && isStatic(old) && !isStatic(q.Neighbor) && old.MacAddress != q.Neighbor.MacAddress:
		return api.INVALID_SW_IF_INDEX
	}
	p.neighbours[key] = q.Neighbor
	r.StatsIndex = 1
	if q.Neighbor.Flags&ip_neighbor.IP_API_NEIGHBOR_FLAG_NO_FIB_ENTRY != 0 {
		r.StatsIndex = core.None
	}
	return core.OK
}

// dump lists the neighbours of one IP version in random order, as VPP does. Index 0 means
// local0 here, and ~0 all.
func (p *plugin) dump(q *ip_neighbor.IPNeighborDump, yield func(ip_neighbor.IPNeighborDetails)) {
	for key, n := range p.neighbours {
		if n.IPAddress.Af == q.Af && (uint32(q.SwIfIndex) == core.None || uint32(q.SwIfIndex) == key.index) {
			yield(ip_neighbor.IPNeighborDetails{Neighbor: n})
		}
	}
}

// flush deletes the neighbours of one interface, or of all for ~0, including static ones.
func (p *plugin) flush(q *ip_neighbor.IPNeighborFlush, _ *ip_neighbor.IPNeighborFlushReply) core.Errno {
	all := uint32(q.SwIfIndex) == core.None
	if _, errno := p.vpp.At(q.SwIfIndex); errno != core.OK && !all {
		return errno
	}
	maps.DeleteFunc(p.neighbours, func(key key, n ip_neighbor.IPNeighbor) bool {
		return n.IPAddress.Af == q.Af && (all || uint32(q.SwIfIndex) == key.index)
	})
	return core.OK
}

// besideDead returns whether VPP crashes when a neighbour or a TEIB entry is added or
// deleted: the same address is also a neighbour or a peer on an index without interface.
// Both entries are paths of one prefix. VPP resolves all paths of the prefix again when
// one of them changes, and crashes when it looks up the table of an index without
// interface (VPP ip_path_mtu.c, ip_pmtu_adj_delegate_adj_created).
//
// A deleted interface moves to table 0 before, with its neighbours and peers. So only
// changes in table 0 are affected, and never link-local addresses, which have tables of
// their own.
func (p *plugin) besideDead(one key) bool {
	table := p.vpp.Interface(one.index).Tables[ip.Family(one.address.Is6())]
	if one.address.IsLinkLocalUnicast() || table != 0 {
		return false
	}
	for other := range p.neighbours {
		if other.address == one.address && p.vpp.Interface(other.index) == nil {
			return true
		}
	}
	for other := range p.peers {
		if other.address == one.address && p.vpp.Interface(other.index) == nil {
			return true
		}
	}
	return false
}
