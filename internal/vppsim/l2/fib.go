package l2

import (
	"cmp"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/l2"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// fibMessages: the flushes delete the entries that VPP has learned from packets. There are
// none here, so flushes have no effect. VPP keeps entries of the API in a flush.
func (p *L2) fibMessages() []core.Message {
	return []core.Message{
		core.Call(p.changeEntry),
		core.Dump(p.dumpEntries),
		core.Call(func(q *l2.L2fibFlushBd, _ *l2.L2fibFlushBdReply) core.Errno {
			if p.byID[q.BdID] == nil {
				return api.NO_SUCH_ENTRY
			}
			return core.OK
		}),
		core.On(p.vpp, func(q *l2.L2fibFlushInt) index { return q.SwIfIndex },
			func(*core.Interface, *l2.L2fibFlushInt, *l2.L2fibFlushIntReply) core.Errno { return core.OK }),
		core.Call(func(*l2.L2fibFlushAll, *l2.L2fibFlushAllReply) core.Errno { return core.OK }),
	}
}

// changeEntry adds, replaces or deletes an entry of an L2 FIB. The interface must be a
// member, except in bridge domain 0. A filter drops packets and needs no interface. A
// delete must name the interface of the entry.
func (p *L2) changeEntry(q *l2.L2fibAddDel, _ *l2.L2fibAddDelReply) core.Errno {
	b := p.byID[q.BdID]
	if b == nil {
		return api.NO_SUCH_ENTRY
	}
	if !q.IsAdd {
		if e, has := b.fib.entries[q.Mac]; !has || !e.FilterMac && e.SwIfIndex != q.SwIfIndex {
			return api.NO_SUCH_ENTRY
		}
		delete(b.fib.entries, q.Mac)
		return core.OK
	}
	e := l2.L2FibTableDetails{Mac: q.Mac, SwIfIndex: q.SwIfIndex, StaticMac: q.StaticMac || q.FilterMac, FilterMac: q.FilterMac, BviMac: q.BviMac}
	if q.FilterMac {
		e.SwIfIndex = index(core.None)
		b.fib.entries[q.Mac] = e
		return core.OK
	}
	inside := slices.ContainsFunc(b.members, func(m member) bool { return m.index == uint32(q.SwIfIndex) })
	if _, errno := p.vpp.At(q.SwIfIndex); errno != core.OK || !inside && b.id != 0 {
		return api.INVALID_SW_IF_INDEX
	}
	b.fib.entries[q.Mac] = e
	return core.OK
}

// dumpEntries lists the entries of one bridge domain, or of all for ~0. The order is
// random, as in VPP. Entries of a deleted bridge domain have ~0 as its ID.
func (p *L2) dumpEntries(q *l2.L2FibTableDump, yield func(l2.L2FibTableDetails)) {
	for _, f := range p.fibs {
		for _, e := range f.entries {
			e.BdID = core.None
			if f.owner != nil {
				e.BdID = f.owner.id
			}
			if q.BdID == core.None || q.BdID == e.BdID {
				yield(e)
			}
		}
	}
}

// arpMessages returns the messages of ARP termination.
func (p *L2) arpMessages() []core.Message {
	return []core.Message{
		core.Call(p.changeARP),
		core.Dump(func(q *l2.BdIPMacDump, yield func(l2.BdIPMacDetails)) {
			for _, b := range p.domains() {
				for _, e := range b.arps {
					if q.BdID == core.None || q.BdID == b.id {
						yield(l2.BdIPMacDetails{Entry: e})
					}
				}
			}
		}),
		core.Call(func(q *l2.BdIPMacFlush, _ *l2.BdIPMacFlushReply) core.Errno {
			b, errno := p.at(q.BdID)
			if errno == core.OK {
				b.arps = nil
			}
			return errno
		}),
	}
}

// changeARP changes the answers of ARP termination, IPv4 before IPv6. The last MAC address
// of an IP address wins. A delete must name the MAC address, and is otherwise refused with
// UNSPECIFIED.
func (p *L2) changeARP(q *l2.BdIPMacAddDel, _ *l2.BdIPMacAddDelReply) core.Errno {
	b, errno := p.at(q.Entry.BdID)
	if errno != core.OK {
		return errno
	}
	at := slices.IndexFunc(b.arps, func(e l2.BdIPMac) bool { return e.IP == q.Entry.IP })
	switch {
	case q.IsAdd && at >= 0:
		b.arps[at] = q.Entry
	case q.IsAdd:
		b.arps = append(b.arps, q.Entry)
		slices.SortStableFunc(b.arps, func(x, y l2.BdIPMac) int { return cmp.Compare(x.IP.Af, y.IP.Af) })
	case at < 0 || b.arps[at].Mac != q.Entry.Mac:
		return api.UNSPECIFIED
	default:
		b.arps = slices.Delete(b.arps, at, at+1)
	}
	return core.OK
}
