// Package srv6 simulates VPP's segment routing over IPv6 (VPP src/vnet/srv6), with the end
// function End.AD of the plugin srv6-ad.
//
// The real VPP checks little. It dies, and so does the simulated one, at these requests:
//
//	deletion of a local SID, with a table that does not exist
//	a local SID that looks up in a table that does not exist (the real one dies at the next dump)
//	frames of an interface that is not Ethernet, for End.AD
//	a segment list without segments
//	deletion of a policy whose table does not exist any more
//	steering of packets in a table that does not exist
//	steering of the frames of an interface that is not Ethernet, before 26.06
//
// Its return values are small negative numbers of its own, which mean something else in
// api_errno.h. For example, -2 stands for "no such local SID" and not for a bad interface.
package srv6

import (
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/sr"
	"go.fd.io/govpp/binapi/sr_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/ip"
	"github.com/keyplane/keyplane/internal/vppsim/l2"
)

// The return values of sr_cli_localsid (VPP sr_localsid.c).
const (
	sidExists  core.Errno = -1
	noSID      core.Errno = -2
	noTable    core.Errno = -3
	routeThere core.Errno = -4
	noCreation core.Errno = -6
)

// lastBehavior is the largest behaviour of VPP itself. Plugins get the numbers above it.
const (
	lastBehavior = sr_types.SR_BEHAVIOR_API_UA
	behaviorAD   = lastBehavior + 1
)

// A sidKey identifies a local SID. The command line makes SIDs of length 0 if it is given an
// address without a length; the API does not find those.
type sidKey struct {
	sid    netip.Addr
	length int
}

// A localSID is one local SID. The last fields are those of End.AD.
type localSID struct {
	sidKey
	// psp removes the routing header at the last but one segment (RFC 8986, 4.16.1).
	psp      bool
	behavior sr_types.SrBehavior
	table    uint32
	// vlan is the tag that End.DX2 writes, or ~0 for none. Other behaviours have 0, and so has
	// End.DX2 from 26.06 on.
	vlan      uint32
	via       uint32 // outgoing interface, or the table to look up in
	next      ip_types.Address
	proxied   netip.Addr // not valid: frames
	from, out uint32
}

type plugin struct {
	vpp       *core.VPP
	tables    *ip.IP
	switching *l2.L2
	source    ip_types.IP6Address
	sids      []*localSID // in the order of VPP's pool: a free place is used again

	policies policies
	steered  []*steering
}

// New adds the plugin.
func New(vpp *core.VPP, tables *ip.IP, switching *l2.L2) {
	p := &plugin{vpp: vpp, tables: tables, switching: switching}
	tables.Private(p.ownTables)
	vpp.Register(core.Plugin{
		Messages: append(append(p.policyMessages(), p.steeringMessages()...), core.Call(p.setSource), core.Call(p.changeSID), core.Dump(p.dumpSIDs)),
		Pages: map[string]func() string{
			"show sr encaps source addr":  p.showSource,
			"show sr localsids":           p.showSIDs,
			"show sr localsids behaviors": p.showBehaviors,
		},
		Commands: map[string]func(words []string) (string, core.Errno){"sr localsid": p.commandSID},
	})
}

// ownTables are the tables that VPP has while there is a policy or steering (VPP sr_policy_rewrite.c).
func (p *plugin) ownTables() []string {
	if len(p.policies.all)+len(p.steered) == 0 {
		return nil
	}
	return []string{"SRv6 steering of IP6 prefixes through BSIDs", "SRv6 steering of IP4 prefixes through BSIDs"}
}

// setSource stores the source address of new headers. Existing policies keep theirs; see
// addList.
func (p *plugin) setSource(q *sr.SrSetEncapSource, _ *sr.SrSetEncapSourceReply) core.Errno {
	p.source = q.EncapsSource
	return core.OK
}

// changeSID adds a local SID, or deletes one by its address. Only some behaviours make VPP
// look at the interface, also in a deletion.
func (p *plugin) changeSID(q *sr.SrLocalsidAddDel, _ *sr.SrLocalsidAddDelReply) core.Errno {
	if viaBehavior(q.Behavior) && p.vpp.Interface(uint32(q.SwIfIndex)) == nil {
		return api.INVALID_SW_IF_INDEX
	}
	s := &localSID{
		sidKey: sidKey{netip.AddrFrom16(q.Localsid), 128}, psp: q.EndPsp, behavior: q.Behavior,
		table: q.FibTable, vlan: q.VlanIndex, via: uint32(q.SwIfIndex), next: q.NhAddr,
	}
	if q.IsDel {
		return p.removeSID(s.sidKey, q.FibTable)
	}
	return p.addSID(s)
}

// addSID makes a local SID, unless VPP has its address already.
func (p *plugin) addSID(s *localSID) core.Errno {
	switch {
	case p.find(s.sidKey) >= 0:
		return sidExists
	case !p.tables.HasTable(true, s.table):
		return noTable
	case p.isRouted(s.table, s.sid):
		return routeThere
	case lookupBehavior(s.behavior) && !p.tables.HasTable(s.behavior != sr_types.SR_BEHAVIOR_API_DT4, s.via):
		return core.Crash
	}
	if !lookupBehavior(s.behavior) && !viaBehavior(s.behavior) {
		s.via = 0
	}
	if !nextBehavior(s.behavior) {
		s.next = ip_types.Address{}
	}
	if s.behavior == sr_types.SR_BEHAVIOR_API_DX2 && !p.vpp.Before("26.06") {
		p.switching.Output(s.via)
	}
	if s.behavior != sr_types.SR_BEHAVIOR_API_DX2 || !p.vpp.Before("26.06") {
		s.vlan = 0
	}
	for i, other := range p.sids {
		if other == nil {
			p.sids[i] = s
			return core.OK
		}
	}
	p.sids = append(p.sids, s)
	return core.OK
}

// removeSID deletes a local SID. VPP dies if the given table does not exist.
func (p *plugin) removeSID(key sidKey, table uint32) core.Errno {
	i := p.find(key)
	switch {
	case i < 0:
		return noSID
	case !p.tables.HasTable(true, table):
		return core.Crash
	}
	p.sids[i] = nil
	return core.OK
}

// find returns the place of a local SID, or -1.
func (p *plugin) find(key sidKey) int {
	for i, s := range p.sids {
		if s != nil && s.sidKey == key {
			return i
		}
	}
	return -1
}

// isRouted reports whether a table has an entry for exactly this address. VPP sees local SIDs
// and policies as routes too, so they count.
func (p *plugin) isRouted(table uint32, a netip.Addr) bool {
	for _, s := range p.sids {
		if s != nil && s.table == table && s.sid == a {
			return true
		}
	}
	for _, one := range p.policies.all {
		if one.table == table && one.bsid == a {
			return true
		}
	}
	return p.tables.HasRoute(netip.PrefixFrom(a, 128), table)
}

// lookupBehavior reports whether a behaviour looks up packets in a table; then via is its
// number.
func lookupBehavior(b sr_types.SrBehavior) bool {
	return b == sr_types.SR_BEHAVIOR_API_T || b == sr_types.SR_BEHAVIOR_API_DT4 || b == sr_types.SR_BEHAVIOR_API_DT6
}

// nextBehavior reports whether a behaviour has a next hop. Others ignore that field of a
// request.
func nextBehavior(b sr_types.SrBehavior) bool {
	return b == sr_types.SR_BEHAVIOR_API_X || b == sr_types.SR_BEHAVIOR_API_DX4 || b == sr_types.SR_BEHAVIOR_API_DX6
}

// viaBehavior reports whether a behaviour has an outgoing interface; then via is its index.
func viaBehavior(b sr_types.SrBehavior) bool {
	return nextBehavior(b) || b == sr_types.SR_BEHAVIOR_API_DX2
}

// dumpSIDs lists all local SIDs. VPP tells the IP version of the next hop by its first 12
// bytes, so an IPv6 address such as ::5 comes as 0.0.0.5. VPP 22.02 does not tell the
// behaviour.
func (p *plugin) dumpSIDs(_ *sr.SrLocalsidsDump, yield func(sr.SrLocalsidsDetails)) {
	for _, s := range p.sids {
		if s == nil {
			continue
		}
		d := sr.SrLocalsidsDetails{
			Addr: s.sid.As16(), EndPsp: s.psp, Behavior: s.behavior, FibTable: s.table, VlanIndex: s.vlan,
			XconnectNhAddr: guessed(s.next), XconnectIfaceOrVrfTable: s.via,
		}
		if p.vpp.Before("22.06") {
			d.Behavior = 0
		}
		yield(d)
	}
}

// guessed returns an address as VPP reports it without knowing its IP version.
func guessed(a ip_types.Address) ip_types.Address {
	raw := a.Un.GetIP6()
	if a.Af == ip_types.ADDRESS_IP4 || netip.AddrFrom16(raw).Is4In6() {
		return a
	}
	for _, b := range raw[:12] {
		if b != 0 {
			return a
		}
	}
	out := ip_types.Address{Af: ip_types.ADDRESS_IP4}
	out.Un.SetIP4(ip_types.IP4Address(raw[12:]))
	return out
}
