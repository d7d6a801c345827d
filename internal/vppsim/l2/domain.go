package l2

import (
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/l2"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

const (
	// maxDomain is the largest ID of a bridge domain.
	maxDomain = 1<<24 - 1
	// maxTag is the length of the longest tag. VPP cuts off the rest.
	maxTag = 63
	// allFlags are the flags that a bridge domain has. VPP ignores the other bits.
	allFlags l2.BdFlags = 63
)

// domainMessages returns the messages of bridge domains.
func (p *L2) domainMessages() []core.Message {
	return []core.Message{
		core.Call(func(q *l2.BridgeDomainAddDel, _ *l2.BridgeDomainAddDelReply) core.Errno {
			if q.IsAdd && q.BdID > maxDomain { // here ~0 is out of range as well
				return api.BD_ID_EXCEED_MAX
			}
			_, errno := p.change(l2.BridgeDomainAddDelV2(*q))
			return errno
		}),
		core.Call(func(q *l2.BridgeDomainAddDelV2, r *l2.BridgeDomainAddDelV2Reply) (e core.Errno) {
			r.BdID, e = p.change(*q)
			return e
		}),
		core.Call(p.setFlags),
		core.Call(func(q *l2.BridgeDomainSetMacAge, _ *l2.BridgeDomainSetMacAgeReply) core.Errno {
			b, errno := p.at(q.BdID)
			if errno == core.OK {
				b.macAge = q.MacAge
			}
			return errno
		}),
		core.Dump(p.dumpDomains),
	}
}

// add makes a bridge domain. It takes over the L2 FIB of the bridge domain that was
// deleted last.
func (p *L2) add(id uint32, flags l2.BdFlags) *domain {
	b := &domain{id: id, flags: flags}
	for _, left := range slices.Backward(p.fibs) {
		if left.owner == nil {
			b.fib = left
			break
		}
	}
	if b.fib == nil {
		b.fib = &fib{entries: map[ethernet_types.MacAddress]l2.L2FibTableDetails{}}
		p.fibs = append(p.fibs, b.fib)
	}
	b.fib.owner = b
	p.byID[id] = b
	return b
}

// change makes a bridge domain or deletes it. An existing one stays unchanged: only
// bridge_flags changes its flags. A bridge domain with members cannot be deleted. The
// reply repeats the ID, or has the ID that VPP chose for ~0.
func (p *L2) change(q l2.BridgeDomainAddDelV2) (uint32, core.Errno) {
	if !q.IsAdd {
		return q.BdID, p.delete(q.BdID)
	}
	if q.BdID == core.None {
		q.BdID = p.choose()
	}
	if p.byID[q.BdID] != nil {
		return q.BdID, api.BD_ALREADY_EXISTS
	}
	b := p.add(q.BdID, flagsOf(q))
	b.tag, b.macAge = q.BdTag[:min(len(q.BdTag), maxTag)], q.MacAge
	return q.BdID, core.OK
}

// delete refuses a bridge domain with members, as VPP does.
func (p *L2) delete(id uint32) core.Errno {
	b, errno := p.at(id)
	if errno != core.OK {
		return errno
	}
	if len(b.members) > 0 {
		return api.BD_IN_USE
	}
	b.fib.owner = nil
	delete(p.byID, id)
	return core.OK
}

// choose returns a free ID. VPP's IDs look random and are the same after each start; the
// first one is 7271263.
func (p *L2) choose() uint32 {
	for {
		p.chosen++
		id := p.chosen * 7271263 & maxDomain
		if p.byID[id] == nil {
			return id
		}
	}
}

// flagsOf returns the flags of a creation as one number.
func flagsOf(q l2.BridgeDomainAddDelV2) (flags l2.BdFlags) {
	for _, one := range []struct {
		on   bool
		flag l2.BdFlags
	}{
		{q.Flood, l2.BRIDGE_API_FLAG_FLOOD}, {q.UuFlood, l2.BRIDGE_API_FLAG_UU_FLOOD}, {q.Forward, l2.BRIDGE_API_FLAG_FWD},
		{q.Learn, l2.BRIDGE_API_FLAG_LEARN}, {q.ArpTerm, l2.BRIDGE_API_FLAG_ARP_TERM}, {q.ArpUfwd, l2.BRIDGE_API_FLAG_ARP_UFWD},
	} {
		if one.on {
			flags |= one.flag
		}
	}
	return flags
}

// setFlags sets or clears flags, and returns all flags.
func (p *L2) setFlags(q *l2.BridgeFlags, r *l2.BridgeFlagsReply) core.Errno {
	b, errno := p.at(q.BdID)
	if errno != core.OK {
		return errno
	}
	b.flags &^= q.Flags
	if q.IsSet {
		b.flags |= q.Flags & allFlags
	}
	r.ResultingFeatureBitmap = uint32(b.flags)
	return core.OK
}

// dumpDomains lists one bridge domain, or all for ~0. A filter by interface gives none in
// the real VPP.
func (p *L2) dumpDomains(q *l2.BridgeDomainDump, yield func(l2.BridgeDomainDetails)) {
	if uint32(q.SwIfIndex) != core.None && q.SwIfIndex != 0 {
		return
	}
	for _, b := range p.domains() {
		if q.BdID == core.None || q.BdID == b.id {
			yield(b.details())
		}
	}
}

// details lists the BVI first and then the members by the order of joining. The interface
// for unknown unicast is not among the members.
func (b *domain) details() l2.BridgeDomainDetails {
	has := func(f l2.BdFlags) bool { return b.flags&f != 0 }
	d := l2.BridgeDomainDetails{
		BdID: b.id, BdTag: b.tag, MacAge: b.macAge,
		Flood: has(l2.BRIDGE_API_FLAG_FLOOD), UuFlood: has(l2.BRIDGE_API_FLAG_UU_FLOOD), Forward: has(l2.BRIDGE_API_FLAG_FWD),
		Learn: has(l2.BRIDGE_API_FLAG_LEARN), ArpTerm: has(l2.BRIDGE_API_FLAG_ARP_TERM), ArpUfwd: has(l2.BRIDGE_API_FLAG_ARP_UFWD),
		BviSwIfIndex: index(core.None), UuFwdSwIfIndex: index(core.None),
	}
	for _, m := range b.members {
		one := l2.BridgeDomainSwIf{SwIfIndex: index(m.index), Shg: m.shg}
		switch m.port {
		case l2.L2_API_PORT_TYPE_UU_FWD:
			d.UuFwdSwIfIndex = one.SwIfIndex
		case l2.L2_API_PORT_TYPE_BVI:
			d.BviSwIfIndex = one.SwIfIndex
			d.SwIfDetails = slices.Insert(d.SwIfDetails, 0, one)
		default:
			d.SwIfDetails = append(d.SwIfDetails, one)
		}
	}
	return d
}
