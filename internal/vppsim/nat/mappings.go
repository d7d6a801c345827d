package nat

import (
	"fmt"
	"maps"
	"math/bits"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// noInterface is the interface of a mapping by address.
const noInterface = ^index(0)

// A place is the external side of a mapping, which identifies it.
type place struct {
	address  address
	port     uint16
	protocol uint8
}

// An inner place is the local side of a mapping that translates in both directions.
type inner struct {
	place
	vrf uint32
}

// A mapping translates destinations. Exactly one of the following is its kind. Requests are
// kept as they came, since dumps return their flags and tags.
type mapping struct {
	number    uint64 // in the order of addition, as dumps list them
	static    *nat44_ed.Nat44AddDelStaticMappingV2
	balanced  *nat44_ed.Nat44AddDelLbStaticMapping
	identity  *nat44_ed.Nat44AddDelIdentityMapping
	localVRFs []uint32 // of an identity mapping, which has one tag for all of them
}

// A record is a mapping of an interface's address. VPP keeps it without an address, so that the
// mapping can return with the next address.
type record struct {
	static   *nat44_ed.Nat44AddDelStaticMappingV2
	identity *nat44_ed.Nat44AddDelIdentityMapping
	resolved bool
	at       address // with resolved
}

// mappings are those of a plugin. Requests of the endpoint-independent one are kept in the form
// of the other.
type mappings struct {
	vpp    *core.VPP
	plugin *box
	// reserves: the port of a mapping is reserved in the pool.
	reserves bool
	all      map[place]*mapping
	// A local side can be in one such mapping only: VPP could not choose an external side
	// for it.
	inward map[inner]*mapping // of those that translate in both directions
	// in the order of addition
	records []*record
	last    uint64
	busy    map[ports]int32 // the numbers of ports in use that VPP counts
}

// ports are those of an address for one protocol.
type ports struct {
	address  address
	protocol uint8
}

func newMappings(vpp *core.VPP, p *box, reserves bool) mappings {
	return mappings{vpp: vpp, plugin: p, reserves: reserves, all: map[place]*mapping{}, inward: map[inner]*mapping{}, busy: map[ports]int32{}}
}

// clear forgets everything, as disabling the plugin does.
func (m *mappings) clear() { *m = newMappings(m.vpp, m.plugin, m.reserves) }

// lacks returns whether the port of an external side must be in the pool, and is not.
func (m *mappings) lacks(at place) bool {
	return m.reserves && at.port != 0 && !slices.ContainsFunc(m.plugin.pool, func(e entry) bool { return e.address == at.address })
}

// count counts the port of an external side that is reserved, or freed by -1. VPP reserves the port
// of an identity mapping once, and frees it once for each of its VRFs, so the number may become
// negative (VPP nat44_ei.c, nat44_ei_del_static_mapping_internal). It means to count the ports above
// 1024, and takes the bytes of the port in the wrong order.
func (m *mappings) count(at place, by int32) {
	const uncounted = 1024
	if m.reserves && bits.ReverseBytes16(at.port) > uncounted {
		m.busy[ports{at.address, at.protocol}] += by
	}
}

// forget forgets the numbers of ports of addresses that are in no pool any more.
func (m *mappings) forget() {
	maps.DeleteFunc(m.busy, func(of ports, _ int32) bool {
		return !slices.ContainsFunc(m.plugin.pool, func(e entry) bool { return e.address == of.address })
	})
}

// binds returns whether a static mapping keeps an address in the pool. Those of all ports do not,
// nor do identity mappings (nat44_ei_is_address_used_in_static_mapping).
func (m *mappings) binds(a address) bool {
	for at, one := range m.all {
		if m.reserves && at.address == a && at.port != 0 && one.static != nil {
			return true
		}
	}
	return false
}

// messages returns the handlers. The first version of a static mapping is converted to the
// second.
func (m *mappings) messages() []core.Message {
	return []core.Message{
		core.Call(func(q *nat44_ed.Nat44AddDelStaticMapping, _ *nat44_ed.Nat44AddDelStaticMappingReply) core.Errno {
			return m.setStatic(&nat44_ed.Nat44AddDelStaticMappingV2{
				IsAdd: q.IsAdd, Flags: q.Flags, LocalIPAddress: q.LocalIPAddress, ExternalIPAddress: q.ExternalIPAddress, Protocol: q.Protocol,
				LocalPort: q.LocalPort, ExternalPort: q.ExternalPort, ExternalSwIfIndex: q.ExternalSwIfIndex, VrfID: q.VrfID, Tag: q.Tag,
			})
		}),
		core.Call(m.setStaticV2),
		core.Call(m.setIdentity),
		core.Call(m.setBalanced),
		core.Dump(m.dumpStatic),
		core.Dump(m.dumpIdentity),
		core.Dump(m.dumpBalanced),
	}
}

// setStaticV2 serves the second version. Until 22.10 it takes ~0 for an interface, and dies of
// its absence, and 0 for none (nat44_ed_api.c, "if (sw_if_index)").
func (m *mappings) setStaticV2(q *nat44_ed.Nat44AddDelStaticMappingV2, _ *nat44_ed.Nat44AddDelStaticMappingV2Reply) core.Errno {
	if m.vpp.Before("23.02") {
		switch q.ExternalSwIfIndex {
		case noInterface:
			return core.Crash
		case 0:
			q.ExternalSwIfIndex = noInterface
		}
	}
	return m.setStatic(q)
}

// isTwice returns whether the source is translated, too.
func isTwice(flags nat_types.NatConfigFlags) bool {
	return flags&(nat_types.NAT_IS_TWICE_NAT|nat_types.NAT_IS_SELF_TWICE_NAT) != 0
}

// isAddressOnly returns whether all ports and protocols are translated.
func isAddressOnly(flags nat_types.NatConfigFlags) bool { return flags&nat_types.NAT_IS_ADDR_ONLY != 0 }

// isOut2InOnly returns whether the mapping serves connections from outside only. Such mappings
// may share a local side.
func isOut2InOnly(flags nat_types.NatConfigFlags) bool {
	return flags&nat_types.NAT_IS_OUT2IN_ONLY != 0
}

// setStatic adds or removes a mapping or, with an interface, a record. A record is found by all
// its fields except the flags and the tag.
func (m *mappings) setStatic(q *nat44_ed.Nat44AddDelStaticMappingV2) core.Errno {
	m.resolve()
	if isAddressOnly(q.Flags) {
		q.LocalPort, q.ExternalPort, q.Protocol = 0, 0, 0
	}
	switch {
	case !m.plugin.enabled:
		return m.plugin.disabled
	case isTwice(q.Flags) && isAddressOnly(q.Flags):
		return api.UNSUPPORTED
	case q.ExternalSwIfIndex == noInterface && q.IsAdd:
		return m.addStatic(q)
	case q.ExternalSwIfIndex == noInterface:
		return m.delStatic(place{q.ExternalIPAddress, q.ExternalPort, q.Protocol})
	}
	at := slices.IndexFunc(m.records, func(r *record) bool {
		s := r.static
		return s != nil && s.ExternalSwIfIndex == q.ExternalSwIfIndex && s.VrfID == q.VrfID && s.LocalIPAddress == q.LocalIPAddress &&
			s.LocalPort == q.LocalPort && s.ExternalPort == q.ExternalPort && s.Protocol == q.Protocol
	})
	return m.setRecord(&record{static: q}, at, q.IsAdd)
}

// setRecord adds a record with its mapping, or removes both.
func (m *mappings) setRecord(r *record, at int, add bool) core.Errno {
	switch {
	case add && at >= 0:
		return api.VALUE_EXIST
	case !add && at < 0:
		return api.NO_SUCH_ENTRY
	case add:
		m.records = append(m.records, r)
		errno := m.resolveOne(r)
		if errno != core.OK {
			m.records = m.records[:len(m.records)-1]
		}
		return errno
	}
	r = m.records[at]
	m.records = slices.Delete(m.records, at, at+1)
	if r.resolved {
		return m.unresolve(r)
	}
	return core.OK
}

// resolve follows the addresses of interfaces. The real VPP does that when they change. It runs
// before each request and dump, so clients cannot see the delay.
func (m *mappings) resolve() {
	for _, r := range m.records {
		if first, has := m.addressOf(r.index()); r.resolved && (!has || first != r.at) {
			_ = m.unresolve(r) // as VPP, which logs it
		}
		if !r.resolved {
			_ = m.resolveOne(r) // the same
		}
	}
}

// index returns the interface of a record.
func (r *record) index() index {
	if r.static != nil {
		return r.static.ExternalSwIfIndex
	}
	return r.identity.SwIfIndex
}

// addressOf returns the first IPv4 address of an interface. It is false also for an interface
// that was deleted, so that its mappings end.
func (m *mappings) addressOf(at index) (address, bool) {
	i := m.vpp.Interface(uint32(at))
	if i == nil {
		return address{}, false
	}
	n := slices.IndexFunc(i.Addresses, func(p netip.Prefix) bool { return p.Addr().Is4() })
	if n < 0 {
		return address{}, false
	}
	return i.Addresses[n].Addr().As4(), true
}

// resolveOne makes the mapping of a record, if the interface has an address. Without an address
// the record waits, and that is OK to VPP.
func (m *mappings) resolveOne(r *record) (errno core.Errno) {
	first, has := m.addressOf(r.index())
	if !has {
		return core.OK
	}
	if r.static != nil {
		s := *r.static
		s.ExternalIPAddress = first
		errno = m.addStatic(&s)
	} else {
		i := *r.identity
		i.IPAddress = first
		errno = m.addIdentity(&i)
	}
	r.resolved, r.at = errno == core.OK, first
	return errno
}

// unresolve removes the mapping of a record.
func (m *mappings) unresolve(r *record) core.Errno {
	r.resolved = false
	if r.static != nil {
		return m.delStatic(place{r.at, r.static.ExternalPort, r.static.Protocol})
	}
	return m.delIdentity(place{r.at, r.identity.Port, r.identity.Protocol}, r.identity.VrfID)
}

// put adds a mapping. A mapping that translates in both directions has local sides, too.
func (m *mappings) put(at place, one *mapping, local ...inner) {
	m.last++
	one.number = m.last
	m.all[at] = one
	m.count(at, 1)
	for _, i := range local {
		m.inward[i] = one
	}
}

// drop removes a mapping with its local sides. The VRFs that it used may be collected then.
func (m *mappings) drop(at place) {
	one := m.all[at]
	delete(m.all, at)
	maps.DeleteFunc(m.inward, func(_ inner, o *mapping) bool { return o == one })
	m.plugin.tables.Collect()
}

// addStatic adds a mapping by address. Its external side must be free; so must its local side
// if it translates in both directions.
func (m *mappings) addStatic(q *nat44_ed.Nat44AddDelStaticMappingV2) core.Errno {
	at := place{q.ExternalIPAddress, q.ExternalPort, q.Protocol}
	local := inner{place{q.LocalIPAddress, q.LocalPort, q.Protocol}, q.VrfID}
	if m.all[at] != nil && m.all[at].identity == nil {
		return api.VALUE_EXIST
	}
	if m.all[at] != nil { // VPP then adds the VRF to the identity mapping
		return m.addVRF(m.all[at], at, q.VrfID)
	}
	m.plugin.need(q.VrfID)
	if isOut2InOnly(q.Flags) {
		m.put(at, &mapping{static: q})
		return core.OK
	}
	if m.inward[local] != nil {
		return api.VALUE_EXIST
	}
	if m.lacks(at) {
		return api.NO_SUCH_ENTRY
	}
	m.put(at, &mapping{static: q}, local)
	return core.OK
}

// delStatic removes the mapping of an external side. VPP compares neither local side nor flags.
func (m *mappings) delStatic(at place) core.Errno {
	if m.all[at] == nil {
		return api.NO_SUCH_ENTRY
	}
	if m.lacks(at) {
		return api.INVALID_VALUE
	}
	m.count(at, -1)
	m.drop(at)
	return core.OK
}

// setIdentity adds or removes an identity mapping: packets keep its address and port.
func (m *mappings) setIdentity(q *nat44_ed.Nat44AddDelIdentityMapping, _ *nat44_ed.Nat44AddDelIdentityMappingReply) core.Errno {
	m.resolve()
	if isAddressOnly(q.Flags) {
		q.Port, q.Protocol = 0, 0
	}
	switch {
	case !m.plugin.enabled:
		return m.plugin.disabled
	case q.SwIfIndex == noInterface && q.IsAdd:
		return m.addIdentity(q)
	case q.SwIfIndex == noInterface:
		return m.delIdentity(place{q.IPAddress, q.Port, q.Protocol}, q.VrfID)
	}
	at := slices.IndexFunc(m.records, func(r *record) bool {
		i := r.identity
		return i != nil && i.SwIfIndex == q.SwIfIndex && i.VrfID == q.VrfID && i.Port == q.Port && i.Protocol == q.Protocol
	})
	return m.setRecord(&record{identity: q}, at, q.IsAdd)
}

// addIdentity adds an identity mapping, or a VRF to an existing one, whose tag stays.
func (m *mappings) addIdentity(q *nat44_ed.Nat44AddDelIdentityMapping) core.Errno {
	at := place{q.IPAddress, q.Port, q.Protocol}
	if one := m.all[at]; one != nil && one.identity == nil {
		return api.VALUE_EXIST
	} else if one != nil {
		return m.addVRF(one, at, q.VrfID)
	}
	m.plugin.need(q.VrfID)
	if m.lacks(at) {
		return api.NO_SUCH_ENTRY
	}
	m.put(at, &mapping{identity: q, localVRFs: []uint32{q.VrfID}}, inner{at, q.VrfID})
	return core.OK
}

// addVRF adds a VRF to an identity mapping. The tag and the flags of the request are lost, as
// in VPP.
func (m *mappings) addVRF(one *mapping, at place, vrf uint32) core.Errno {
	if slices.Contains(one.localVRFs, vrf) {
		return api.VALUE_EXIST
	}
	m.plugin.need(vrf)
	one.localVRFs = append(one.localVRFs, vrf)
	m.inward[inner{at, vrf}] = one
	return core.OK
}

// delIdentity removes one VRF, and the mapping with its last VRF.
func (m *mappings) delIdentity(at place, vrf uint32) core.Errno {
	one := m.all[at]
	if one == nil || one.identity == nil || !slices.Contains(one.localVRFs, vrf) {
		return api.NO_SUCH_ENTRY
	}
	one.localVRFs = slices.DeleteFunc(one.localVRFs, func(o uint32) bool { return o == vrf })
	delete(m.inward, inner{at, vrf})
	m.count(at, -1)
	if len(one.localVRFs) == 0 {
		m.drop(at)
	}
	m.plugin.tables.Collect()
	return core.OK
}

// setBalanced adds or removes a mapping with several local sides. Its external address must be
// in the pool, unless it translates destinations only.
func (m *mappings) setBalanced(q *nat44_ed.Nat44AddDelLbStaticMapping, _ *nat44_ed.Nat44AddDelLbStaticMappingReply) core.Errno {
	m.resolve()
	at := place{q.ExternalAddr, q.ExternalPort, q.Protocol}
	one := m.all[at]
	switch {
	case !m.plugin.enabled:
		return api.UNSUPPORTED
	case !q.IsAdd && one == nil:
		return api.NO_SUCH_ENTRY
	case !q.IsAdd && one.balanced == nil:
		return api.INVALID_VALUE
	case !q.IsAdd:
		m.drop(at)
		return core.OK
	case one != nil:
		return api.VALUE_EXIST
	case len(q.Locals) < 2:
		return api.INVALID_VALUE
	case !isOut2InOnly(q.Flags) && !slices.ContainsFunc(m.plugin.pool, func(e entry) bool { return e.address == q.ExternalAddr }):
		return api.NO_SUCH_ENTRY
	}
	var local []inner
	for _, l := range q.Locals {
		m.plugin.need(l.VrfID)
		if !isOut2InOnly(q.Flags) {
			local = append(local, inner{place{l.Addr, l.Port, q.Protocol}, 0}) // in VRF 0, whatever its VRF is
		}
	}
	m.put(at, &mapping{balanced: q}, local...)
	return core.OK
}

// uses returns whether a mapping is in a table.
func (m *mappings) uses(vrf uint32) bool {
	for _, one := range m.all {
		if one.static != nil && one.static.VrfID == vrf || slices.Contains(one.localVRFs, vrf) || one.balanced != nil &&
			slices.ContainsFunc(one.balanced.Locals, func(l nat44_ed.Nat44LbAddrPort) bool { return l.VrfID == vrf }) {
			return true
		}
	}
	return false
}

// sorted returns the mappings in the order of addition.
func (m *mappings) sorted() []*mapping {
	m.resolve()
	return slices.SortedFunc(maps.Values(m.all), func(a, b *mapping) int { return int(a.number) - int(b.number) })
}

// dumpStatic lists the mappings, and then the records of interfaces. A record does not say that
// it translates destinations only, nor that it is for packets from the local address itself.
func (m *mappings) dumpStatic(_ *nat44_ed.Nat44StaticMappingDump, yield func(nat44_ed.Nat44StaticMappingDetails)) {
	details := func(q *nat44_ed.Nat44AddDelStaticMappingV2) nat44_ed.Nat44StaticMappingDetails {
		return nat44_ed.Nat44StaticMappingDetails{
			Flags: q.Flags, LocalIPAddress: q.LocalIPAddress, ExternalIPAddress: q.ExternalIPAddress, Protocol: q.Protocol,
			LocalPort: q.LocalPort, ExternalPort: q.ExternalPort, ExternalSwIfIndex: noInterface, VrfID: q.VrfID, Tag: q.Tag,
		}
	}
	for _, one := range m.sorted() {
		if one.static != nil {
			yield(details(one.static))
		}
	}
	for _, r := range m.records {
		if r.static != nil {
			d := details(r.static)
			d.ExternalIPAddress, d.ExternalSwIfIndex = address{}, r.static.ExternalSwIfIndex
			d.Flags &= nat_types.NAT_IS_TWICE_NAT | nat_types.NAT_IS_ADDR_ONLY
			yield(d)
		}
	}
}

// dumpIdentity has details for each VRF of a mapping, then the records of interfaces.
func (m *mappings) dumpIdentity(_ *nat44_ed.Nat44IdentityMappingDump, yield func(nat44_ed.Nat44IdentityMappingDetails)) {
	details := func(q *nat44_ed.Nat44AddDelIdentityMapping, vrf uint32) nat44_ed.Nat44IdentityMappingDetails {
		return nat44_ed.Nat44IdentityMappingDetails{
			Flags: q.Flags & nat_types.NAT_IS_ADDR_ONLY, IPAddress: q.IPAddress, Protocol: q.Protocol, Port: q.Port, SwIfIndex: noInterface, VrfID: vrf, Tag: q.Tag,
		}
	}
	for _, one := range m.sorted() {
		for _, vrf := range one.localVRFs {
			yield(details(one.identity, vrf))
		}
	}
	for _, r := range m.records {
		if r.identity != nil {
			d := details(r.identity, r.identity.VrfID)
			d.IPAddress, d.SwIfIndex = address{}, r.identity.SwIfIndex
			yield(d)
		}
	}
}

// dumpBalanced does not say the affinity: VPP leaves the field empty.
func (m *mappings) dumpBalanced(_ *nat44_ed.Nat44LbStaticMappingDump, yield func(nat44_ed.Nat44LbStaticMappingDetails)) {
	for _, one := range m.sorted() {
		if q := one.balanced; q != nil {
			yield(nat44_ed.Nat44LbStaticMappingDetails{
				ExternalAddr: q.ExternalAddr, ExternalPort: q.ExternalPort, Protocol: q.Protocol, Flags: q.Flags, Tag: q.Tag,
				LocalNum: uint32(len(q.Locals)), Locals: q.Locals,
			})
		}
	}
}

// show prints a line for each mapping: its kind, external side and name.
func (m *mappings) show() string {
	var b strings.Builder
	line := func(kind string, at address, port uint16, tag string) {
		name, _ := core.ParseTag(tag)
		fmt.Fprintf(&b, "%s %s:%d %s\n", kind, netip.AddrFrom4(at), port, name)
	}
	for _, one := range m.sorted() {
		switch {
		case one.static != nil:
			line("static", one.static.ExternalIPAddress, one.static.ExternalPort, one.static.Tag)
		case one.balanced != nil:
			line("balanced", one.balanced.ExternalAddr, one.balanced.ExternalPort, one.balanced.Tag)
		default:
			line("identity", one.identity.IPAddress, one.identity.Port, one.identity.Tag)
		}
	}
	return b.String()
}
