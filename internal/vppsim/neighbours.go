package vppsim

import (
	"maps"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/arp"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/l3xc"
	"go.fd.io/govpp/binapi/span"
	"go.fd.io/govpp/binapi/teib"
	"go.fd.io/govpp/binapi/vrrp"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// A neighbourKey is where a neighbour is.
type neighbourKey struct {
	index   uint32
	address netip.Addr
}

// An xcKey is a layer 3 cross-connect: of one interface and IP version.
type xcKey struct {
	index uint32
	ipv6  bool
}

// A teibKey is a peer on an interface.
type teibKey struct {
	index uint32
	peer  netip.Addr
}

// beside is what interfaces have besides addresses.
type beside struct {
	neighbours  map[neighbourKey]ip_neighbor.IPNeighbor
	proxyRanges []arp.ProxyArp
	proxying    map[uint32]bool
	teib        map[teibKey]teib.TeibEntry
	l3xc        map[xcKey]l3xc.L3xc
	dhcpClients map[uint32]*dhcpClient // by index of the interface
	autoconfs   map[uint32]autoconf    // the same
	dhcpProxies map[tableKey]*dhcpProxy
	routers     map[routerKey]*vrrp.VrrpVrDetails
	spans       map[spanKey]span.SpanState
	agings      [2]aging // of IPv4 and IPv6
}

func newBeside() beside {
	return beside{
		neighbours: map[neighbourKey]ip_neighbor.IPNeighbor{}, proxying: map[uint32]bool{},
		teib: map[teibKey]teib.TeibEntry{}, l3xc: map[xcKey]l3xc.L3xc{}, dhcpClients: map[uint32]*dhcpClient{},
		autoconfs: map[uint32]autoconf{}, dhcpProxies: map[tableKey]*dhcpProxy{}, routers: map[routerKey]*vrrp.VrrpVrDetails{},
		spans: map[spanKey]span.SpanState{}, agings: freshAgings(),
	}
}

// forgetLearned lets go the neighbours that are not static, as VPP does when an interface
// goes down, or goes. All else stays, for whoever gets the index next.
func (b *beside) forgetLearned(index uint32) {
	maps.DeleteFunc(b.neighbours, func(key neighbourKey, n ip_neighbor.IPNeighbor) bool {
		return key.index == index && n.Flags&ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC == 0
	})
}

func neighbourMessages() []entry {
	type index = interface_types.InterfaceIndex
	return []entry{
		call(changeNeighbour),
		dump(func(w *world, q *ip_neighbor.IPNeighborDump, yield func(ip_neighbor.IPNeighborDetails)) {
			for key, n := range w.neighbours {
				if n.IPAddress.Af == q.Af && (uint32(q.SwIfIndex) == none || uint32(q.SwIfIndex) == key.index) {
					yield(ip_neighbor.IPNeighborDetails{Neighbor: n})
				}
			}
		}),
		call(changeProxyRange),
		dump(func(w *world, _ *arp.ProxyArpDump, yield func(arp.ProxyArpDetails)) {
			for _, r := range w.proxyRanges {
				yield(arp.ProxyArpDetails{Proxy: r})
			}
		}),
		on(func(q *arp.ProxyArpIntfcEnableDisable) index { return q.SwIfIndex },
			func(w *world, i *iface, q *arp.ProxyArpIntfcEnableDisable, _ *arp.ProxyArpIntfcEnableDisableReply) errno {
				if delete(w.proxying, i.index); q.Enable {
					w.proxying[i.index] = true
				}
				return ok
			}),
		dump(func(w *world, _ *arp.ProxyArpIntfcDump, yield func(arp.ProxyArpIntfcDetails)) {
			for one := range w.proxying {
				yield(arp.ProxyArpIntfcDetails{SwIfIndex: one})
			}
		}),
		on(func(q *teib.TeibEntryAddDel) index { return q.Entry.SwIfIndex }, changeTEIB),
		dump(func(w *world, _ *teib.TeibDump, yield func(teib.TeibDetails)) {
			for _, e := range w.teib {
				yield(teib.TeibDetails{Entry: e})
			}
		}),
		on(func(q *l3xc.L3xcUpdate) index { return q.L3xc.SwIfIndex }, changeL3XC),
		on(func(q *l3xc.L3xcDel) index { return q.SwIfIndex },
			func(w *world, i *iface, q *l3xc.L3xcDel, _ *l3xc.L3xcDelReply) errno {
				key := xcKey{i.index, q.IsIP6}
				if _, has := w.l3xc[key]; !has {
					return api.INVALID_VALUE
				}
				delete(w.l3xc, key)
				return ok
			}),
		dump(func(w *world, q *l3xc.L3xcDump, yield func(l3xc.L3xcDetails)) {
			for key, x := range w.l3xc {
				if uint32(q.SwIfIndex) == none || uint32(q.SwIfIndex) == key.index {
					x.IsIP6 = false // VPP does not fill it in
					yield(l3xc.L3xcDetails{L3xc: x})
				}
			}
		}),
	}
}

// changeNeighbour: a dynamic one does not replace a static one.
func changeNeighbour(w *world, q *ip_neighbor.IPNeighborAddDel, r *ip_neighbor.IPNeighborAddDelReply) errno {
	if _, errno := w.at(q.Neighbor.SwIfIndex); errno != ok {
		return errno
	}
	key := neighbourKey{uint32(q.Neighbor.SwIfIndex), vppwire.Addr(q.Neighbor.IPAddress)}
	old, has := w.neighbours[key]
	static := func(n ip_neighbor.IPNeighbor) bool {
		return n.Flags&ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC != 0
	}
	switch {
	case !q.IsAdd && !has:
		return api.NO_SUCH_ENTRY
	case q.IsAdd != has && w.besideDead(key.index, key.address):
		return crash
	case !q.IsAdd:
		delete(w.neighbours, key)
		return ok
	case has && static(old) && !static(q.Neighbor) && old.MacAddress != q.Neighbor.MacAddress:
		return api.INVALID_SW_IF_INDEX
	}
	w.neighbours[key] = q.Neighbor
	if r.StatsIndex = 1; q.Neighbor.Flags&ip_neighbor.IP_API_NEIGHBOR_FLAG_NO_FIB_ENTRY != 0 {
		r.StatsIndex = none
	}
	return ok
}

// changeProxyRange: ranges may overlap, and the lower end may be above the other.
func changeProxyRange(w *world, q *arp.ProxyArpAddDel, _ *arp.ProxyArpAddDelReply) errno {
	if w.tables.find(false, q.Proxy.TableID) == nil {
		return api.NO_SUCH_FIB
	}
	at := slices.Index(w.proxyRanges, q.Proxy)
	switch {
	case !q.IsAdd && at < 0:
		return api.NO_SUCH_ENTRY
	case !q.IsAdd:
		w.proxyRanges = slices.Delete(w.proxyRanges, at, at+1)
	case at < 0:
		w.proxyRanges = append(w.proxyRanges, q.Proxy)
	}
	return ok
}

func changeTEIB(w *world, i *iface, q *teib.TeibEntryAddDel, _ *teib.TeibEntryAddDelReply) errno {
	key := teibKey{i.index, vppwire.Addr(q.Entry.Peer)}
	_, has := w.teib[key]
	switch {
	case w.tables.find(vppwire.Addr(q.Entry.Nh).Is6(), q.Entry.NhTableID) == nil:
		return api.NO_SUCH_FIB
	case q.IsAdd == 0 && !has:
		return api.NO_SUCH_ENTRY
	case (q.IsAdd != 0) != has && w.besideDead(key.index, key.peer):
		return crash
	case q.IsAdd == 0:
		delete(w.teib, key)
		return ok
	case has:
		return api.ENTRY_ALREADY_EXISTS
	}
	w.teib[key] = q.Entry
	return ok
}

// besideDead says that a neighbour or TEIB entry of an interface comes or goes whose address is also that
// of one on an index that nobody has. Both are paths of one prefix, and VPP resolves all of its paths
// again when one changes: it does not survive to look up the table of an index without interface
// (VPP ip_path_mtu.c, ip_pmtu_adj_delegate_adj_created). An interface that is deleted goes to table 0
// before, with its neighbours and TEIB entries.
func (w *world) besideDead(index uint32, address netip.Addr) bool {
	family := 0
	if address.Is6() {
		family = 1
	}
	if address.IsLinkLocalUnicast() || w.interfaces.byIndex[index].table[family] != 0 {
		return false // a table of its own, or another one
	}
	dead := func(other uint32) bool { return w.interfaces.byIndex[other] == nil }
	for key := range w.neighbours {
		if key.address == address && dead(key.index) {
			return true
		}
	}
	for key := range w.teib {
		if key.peer == address && dead(key.index) {
			return true
		}
	}
	return false
}

func changeL3XC(w *world, i *iface, q *l3xc.L3xcUpdate, _ *l3xc.L3xcUpdateReply) errno {
	if len(q.L3xc.Paths) == 0 {
		return api.INVALID_VALUE
	}
	if slices.ContainsFunc(q.L3xc.Paths, func(p fib_types.FibPath) bool {
		return p.SwIfIndex != none && w.interfaces.byIndex[p.SwIfIndex] == nil
	}) {
		return api.NO_MATCHING_INTERFACE
	}
	for n := range q.L3xc.Paths {
		q.L3xc.Paths[n].Weight = max(q.L3xc.Paths[n].Weight, 1)
	}
	w.l3xc[xcKey{i.index, q.L3xc.IsIP6}] = q.L3xc
	return ok
}
