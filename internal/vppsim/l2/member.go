package l2

import (
	"maps"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/l2"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// memberMessages returns the messages that put interfaces into domains and cross-connects.
func (p *L2) memberMessages() []core.Message {
	return []core.Message{
		core.On(p.vpp, func(q *l2.SwInterfaceSetL2Bridge) index { return q.RxSwIfIndex }, p.setBridge),
		core.On(p.vpp, func(q *l2.SwInterfaceSetL2Xconnect) index { return q.RxSwIfIndex }, p.setCrossConnect),
		core.Dump(func(_ *l2.L2XconnectDump, yield func(l2.L2XconnectDetails)) {
			for _, rx := range slices.Sorted(maps.Keys(p.crossConnect)) {
				yield(l2.L2XconnectDetails{RxSwIfIndex: index(rx), TxSwIfIndex: index(p.crossConnect[rx])})
			}
		}),
	}
}

// memberFlags are the flags of a bridge domain that VPP makes for its first member.
const memberFlags = l2.BRIDGE_API_FLAG_LEARN | l2.BRIDGE_API_FLAG_FWD | l2.BRIDGE_API_FLAG_FLOOD | l2.BRIDGE_API_FLAG_UU_FLOOD

// alreadyHasBVI is VPP's BD_ALREADY_HAS_BVI. GoVPP has no name for it.
const alreadyHasBVI core.Errno = -152

// setBridge moves an interface to a bridge domain, and makes the bridge domain if there is
// none of that ID. A request to leave ignores the ID. An interface that is refused as a
// second BVI has left its bridge domain nevertheless. VPP dies of a BVI without a MAC address.
func (p *L2) setBridge(i *core.Interface, q *l2.SwInterfaceSetL2Bridge, _ *l2.SwInterfaceSetL2BridgeReply) core.Errno {
	if q.PortType > l2.L2_API_PORT_TYPE_UU_FWD {
		return api.INVALID_VALUE
	}
	if !q.Enable {
		p.ToL3(i.Index)
		return core.OK
	}
	b := p.byID[q.BdID]
	if b == nil {
		b = p.add(q.BdID, memberFlags)
	}
	p.Detach(i)
	if q.PortType == l2.L2_API_PORT_TYPE_BVI {
		if slices.ContainsFunc(b.members, func(m member) bool { return m.port == l2.L2_API_PORT_TYPE_BVI }) {
			return alreadyHasBVI
		}
		if !p.vpp.HasMAC(i) {
			return core.Crash
		}
		b.fib.entries[i.MAC] = l2.L2FibTableDetails{Mac: i.MAC, SwIfIndex: index(i.Index), StaticMac: true, BviMac: true}
	}
	b.members = append(b.members, member{i.Index, q.PortType, q.Shg})
	return core.OK
}

// setCrossConnect forwards all packets of one interface to another one, in one direction.
// The last request wins. An interface may be connected to itself.
func (p *L2) setCrossConnect(i *core.Interface, q *l2.SwInterfaceSetL2Xconnect, _ *l2.SwInterfaceSetL2XconnectReply) core.Errno {
	if !q.Enable {
		p.ToL3(i.Index)
		return core.OK
	}
	if _, errno := p.vpp.At(q.TxSwIfIndex); errno != core.OK {
		return errno
	}
	p.CrossConnect(i.Index, uint32(q.TxSwIfIndex))
	return core.OK
}
