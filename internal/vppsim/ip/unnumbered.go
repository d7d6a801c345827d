package ip

import (
	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// unnumberedMessages registers the messages of borrowed addresses.
func (p *IP) unnumberedMessages() {
	p.vpp.Register(core.Plugin{Messages: []core.Message{
		core.Call(p.setUnnumbered),
		core.Dump(p.dumpUnnumbered),
	}})
}

// setUnnumbered makes one interface borrow the addresses of another. The request's
// SwIfIndex is the lender, while the dump's SwIfIndex is the borrower. A borrower loses
// its own addresses, but their routes stay. VPP accepts a lender without addresses, the
// borrower itself, and a cycle. The entry stays when the lender is deleted.
func (p *IP) setUnnumbered(q *vppif.SwInterfaceSetUnnumbered, _ *vppif.SwInterfaceSetUnnumberedReply) core.Errno {
	borrower, errno := p.vpp.At(q.UnnumberedSwIfIndex)
	if errno != core.OK {
		return errno
	}
	if p.vpp.Interface(uint32(q.SwIfIndex)) == nil {
		return api.INVALID_SW_IF_INDEX_2
	}
	if !q.IsAdd {
		delete(p.unnumbered, borrower.Index)
		return core.OK
	}
	delete(p.connected, borrower) // the routes of its addresses have no owner from now on
	p.clearAddresses(borrower)
	p.unnumbered[borrower.Index] = uint32(q.SwIfIndex)
	return core.OK
}

// dumpUnnumbered lists the borrowers that exist. The lender's index may have no interface.
func (p *IP) dumpUnnumbered(q *ip.IPUnnumberedDump, yield func(ip.IPUnnumberedDetails)) {
	for _, i := range p.vpp.Interfaces() {
		lender, borrows := p.unnumbered[i.Index]
		if borrows && (uint32(q.SwIfIndex) == core.None || uint32(q.SwIfIndex) == i.Index) {
			yield(ip.IPUnnumberedDetails{SwIfIndex: index(i.Index), IPSwIfIndex: index(lender)})
		}
	}
}
