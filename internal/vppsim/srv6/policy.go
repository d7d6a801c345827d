package srv6

import (
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/sr"
	"go.fd.io/govpp/binapi/sr_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// The return values of policies (VPP sr_policy_rewrite.c).
const (
	noPolicy     core.Errno = -1 // also an unknown operation
	policyExists core.Errno = -12
	noBSIDTable  core.Errno = -13
	lastList     core.Errno = -21
	notItsList   core.Errno = -22
	notItsWeight core.Errno = -32
)

// A policy has at least one segment list.
type policy struct {
	bsid netip.Addr
	// table is the IPv6 table that has the route to bsid.
	table  uint32
	encap  bool
	kind   sr.SrPolicyType
	source ip_types.IP6Address // of its newest list
	lists  []uint32            // places in the pool
}

// policies are all policies, and the pool of their segment lists. VPP uses the place that was
// freed last again.
type policies struct {
	all  []*policy
	pool []sr.Srv6SidList
	free []uint32
}

func (p *plugin) policyMessages() []core.Message {
	return []core.Message{
		core.Call(p.addPolicy), core.Call(p.changePolicy), core.Call(p.deletePolicy),
		core.Dump(p.dumpPolicies), core.Dump(p.dumpSources),
	}
}

// policyOf returns the policy of an address, or nil. VPP has one per address in all tables
// together.
func (p *plugin) policyOf(bsid ip_types.IP6Address) *policy {
	for _, one := range p.policies.all {
		if one.bsid == netip.AddrFrom16(bsid) {
			return one
		}
	}
	return nil
}

// addPolicy makes a policy with one list. VPP dies if the list is empty. Any route to the
// address is the same error as another policy.
func (p *plugin) addPolicy(q *sr.SrPolicyAdd, _ *sr.SrPolicyAddReply) core.Errno {
	switch {
	case p.policyOf(q.BsidAddr) != nil:
		return policyExists
	case !p.tables.HasTable(true, q.FibTable):
		return noBSIDTable
	case p.isRouted(q.FibTable, netip.AddrFrom16(q.BsidAddr)):
		return policyExists
	}
	one := &policy{bsid: netip.AddrFrom16(q.BsidAddr), table: q.FibTable, encap: q.IsEncap}
	if q.IsSpray {
		one.kind = sr.SR_API_POLICY_TYPE_SPRAY
	}
	p.policies.all = append(p.policies.all, one)
	return p.addList(one, q.Sids)
}

// addList adds a segment list. Its header gets the source address of this moment. A weight of ~0
// stands for 1.
func (p *plugin) addList(one *policy, list sr.Srv6SidList) core.Errno {
	if list.NumSids == 0 {
		return core.Crash
	}
	if list.Weight == core.None {
		list.Weight = 1
	}
	all := &p.policies
	place := uint32(len(all.pool))
	if n := len(all.free); n > 0 {
		place, all.free = all.free[n-1], all.free[:n-1]
		all.pool[place] = list
	} else {
		all.pool = append(all.pool, list)
	}
	one.lists = append(one.lists, place)
	if one.encap {
		one.source = p.source
	}
	return core.OK
}

// changePolicy adds or deletes a list, or changes its weight. The last list cannot be deleted.
// Hence the agent adds new lists first.
func (p *plugin) changePolicy(q *sr.SrPolicyMod, _ *sr.SrPolicyModReply) core.Errno {
	one := p.policyOf(q.BsidAddr)
	if one == nil {
		return noPolicy
	}
	at := slices.Index(one.lists, q.SlIndex)
	switch q.Operation {
	case sr_types.SR_POLICY_OP_API_ADD:
		return p.addList(one, q.Sids)
	case sr_types.SR_POLICY_OP_API_DEL:
		if len(one.lists) == 1 {
			return lastList
		}
		if at < 0 {
			return notItsList
		}
		// VPP puts the last one in its place.
		last := len(one.lists) - 1
		one.lists[at] = one.lists[last]
		one.lists = one.lists[:last]
		p.policies.free = append(p.policies.free, q.SlIndex)
	case sr_types.SR_POLICY_OP_API_MOD:
		if at < 0 {
			return notItsWeight
		}
		p.policies.pool[q.SlIndex].Weight = q.Sids.Weight
	default:
		return noPolicy
	}
	return core.OK
}

// deletePolicy dies if the policy's table does not exist any more. What is steered into the
// policy stays.
func (p *plugin) deletePolicy(q *sr.SrPolicyDel, _ *sr.SrPolicyDelReply) core.Errno {
	one := p.policyOf(q.BsidAddr)
	switch {
	case one == nil:
		return noPolicy
	case !p.tables.HasTable(true, one.table):
		return core.Crash
	}
	p.policies.free = append(p.policies.free, one.lists...)
	p.policies.all = slices.DeleteFunc(p.policies.all, func(other *policy) bool { return other == one })
	return core.OK
}

// dumpPolicies lists policies with the places of their lists, by which sr_policy_mod addresses
// them.
func (p *plugin) dumpPolicies(_ *sr.SrPoliciesWithSlIndexDump, yield func(sr.SrPoliciesWithSlIndexDetails)) {
	for _, one := range p.policies.all {
		d := sr.SrPoliciesWithSlIndexDetails{Bsid: one.bsid.As16(), IsSpray: one.kind != 0, IsEncap: one.encap, FibTable: one.table}
		for _, place := range one.lists {
			list := p.policies.pool[place]
			d.SidLists = append(d.SidLists, sr.Srv6SidListWithSlIndex{NumSids: list.NumSids, Weight: list.Weight, SlIndex: place, Sids: list.Sids})
		}
		yield(d)
	}
}

// dumpSources lists policies with their source addresses, but without the places of their lists.
// An agent needs both messages.
func (p *plugin) dumpSources(_ *sr.SrPoliciesV2Dump, yield func(sr.SrPoliciesV2Details)) {
	for _, one := range p.policies.all {
		d := sr.SrPoliciesV2Details{Bsid: one.bsid.As16(), EncapSrc: one.source, Type: one.kind, IsEncap: one.encap, FibTable: one.table}
		for _, place := range one.lists {
			d.SidLists = append(d.SidLists, p.policies.pool[place])
		}
		yield(d)
	}
}
