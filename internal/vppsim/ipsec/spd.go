package ipsec

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/ipsec"
	"go.fd.io/govpp/binapi/ipsec_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// A database is a policy database. Policies are in the order in which VPP lists them: by type,
// then by priority, the highest first, then the newest first.
type database struct {
	number   uint32
	policies []policy
}

// A policy is an entry of a database, and the association that it holds, if any.
type policy struct {
	// entry is as requested. Dumps show some addresses differently; see shown.
	entry ipsec_types.IpsecSpdEntryV2
	// held is nil unless the action is PROTECT.
	held *association
}

// database returns the slot and the database with a number. The database is nil if there is
// none; the slot has no meaning then. Bindings refer to slots, and all other messages to
// numbers.
func (p *plugin) database(number uint32) (int, *database) {
	for slot, d := range p.databases.each {
		if d.number == number {
			return slot, d
		}
	}
	return 0, nil
}

// setDatabase adds or deletes a database. Its interfaces are unbound; associations that its
// policies hold stay held. This leak is the real VPP's, and the agent has to avoid it. A new
// database in the same slot starts without interfaces.
func (p *plugin) setDatabase(q *ipsec.IpsecSpdAddDel, _ *ipsec.IpsecSpdAddDelReply) core.Errno {
	slot, d := p.database(q.SpdID)
	switch {
	case q.IsAdd && d != nil:
		return api.ENTRY_ALREADY_EXISTS
	case q.IsAdd:
		p.databases.put(&database{number: q.SpdID})
	case d == nil:
		return api.NO_SUCH_ENTRY
	default:
		maps.DeleteFunc(p.bound, func(i uint32, at int) bool {
			if at == slot {
				p.setInput(i, slot, false)
			}
			return at == slot
		})
		p.databases.remove(d)
	}
	return core.OK
}

// dumpDatabases lists databases by slot, with the number of their policies. The agent asks for
// the policies of those only that have some.
func (p *plugin) dumpDatabases(_ *ipsec.IpsecSpdsDump, yield func(ipsec.IpsecSpdsDetails)) {
	for _, d := range p.databases.each {
		yield(ipsec.IpsecSpdsDetails{SpdID: d.number, Npolicies: uint32(len(d.policies))})
	}
}

// bind gives an interface a database, or takes away whichever it has. Incoming packets go on through
// that one if the request named another. A missing database is SYSCALL_ERROR_1, and a second binding
// is SYSCALL_ERROR_2. The agent tells them apart by these numbers.
func (p *plugin) bind(i *core.Interface, q *ipsec.IpsecInterfaceAddDelSpd, _ *ipsec.IpsecInterfaceAddDelSpdReply) core.Errno {
	slot, d := p.database(q.SpdID)
	_, has := p.bound[i.Index]
	switch {
	case d == nil:
		return api.SYSCALL_ERROR_1
	case q.IsAdd && has:
		return api.SYSCALL_ERROR_2
	case q.IsAdd:
		p.bound[i.Index] = slot
	default:
		delete(p.bound, i.Index)
	}
	p.setInput(i.Index, slot, q.IsAdd)
	return core.OK
}

// setInput has incoming packets of an interface go through the database of a slot, too, or no
// longer. Of a slot that they do not go through, nothing is removed, and VPP does not say so (VPP
// config.c, vnet_config_del_feature).
func (p *plugin) setInput(i uint32, slot int, add bool) {
	if add {
		p.inputs[i] = append(p.inputs[i], slot)
	} else if at := slices.Index(p.inputs[i], slot); at >= 0 {
		p.inputs[i] = slices.Delete(p.inputs[i], at, at+1)
	}
}

// showInputs prints the numbers of the databases that incoming packets of each interface go
// through. VPP shows them as features of the interface, without the numbers.
func (p *plugin) showInputs() string {
	var b strings.Builder
	for _, i := range slices.Sorted(maps.Keys(p.inputs)) {
		if len(p.inputs[i]) == 0 {
			continue
		}
		b.WriteString(p.vpp.NameOf(i))
		for _, slot := range p.inputs[i] {
			if d := p.databases.slots[slot]; d != nil {
				fmt.Fprintf(&b, " %d", d.number)
			} else {
				b.WriteString(" none")
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// dumpBound lists interfaces with the slot of their database, and not with its number. An
// interface that was deleted is among them.
func (p *plugin) dumpBound(q *ipsec.IpsecSpdInterfaceDump, yield func(ipsec.IpsecSpdInterfaceDetails)) {
	for _, i := range slices.Sorted(maps.Keys(p.bound)) {
		if q.SpdIndexValid == 0 || q.SpdIndex == uint32(p.bound[i]) {
			yield(ipsec.IpsecSpdInterfaceDetails{SpdIndex: uint32(p.bound[i]), SwIfIndex: index(i)})
		}
	}
}

// showBindings prints the page in the real VPP's format, which the agent reads (VPP ipsec_cli.c,
// ipsec_spd_bindings_show_all). Databases print as signed numbers, so those from 2^31 on are
// negative.
func (p *plugin) showBindings() string {
	var b strings.Builder
	b.WriteString("SPD Bindings:\n")
	for _, i := range slices.Sorted(maps.Keys(p.bound)) {
		fmt.Fprintf(&b, "  %d -> %s\n", int32(p.databases.slots[p.bound[i]].number), p.vpp.NameOf(i))
	}
	return b.String()
}

// anyProtocol is the number that stands for all protocols.
const anyProtocol = 255

// setPolicy is the older message: protocol 0 is any. Since 22.10, VPP stores that as 255.
func (p *plugin) setPolicy(q *ipsec.IpsecSpdEntryAddDel, r *ipsec.IpsecSpdEntryAddDelReply) core.Errno {
	e := ipsec_types.IpsecSpdEntryV2(q.Entry)
	if e.Protocol == 0 && !p.vpp.Before("22.10") {
		e.Protocol = anyProtocol
	}
	return p.change(q.IsAdd, e, &r.StatIndex)
}

// setPolicyV2 is the message since 22.10. Here 0 is a protocol of its own (IPv6 hop-by-hop
// options, RFC 8200), and only 255 is any.
func (p *plugin) setPolicyV2(q *ipsec.IpsecSpdEntryAddDelV2, r *ipsec.IpsecSpdEntryAddDelV2Reply) core.Errno {
	return p.change(q.IsAdd, q.Entry, &r.StatIndex)
}

// change adds a policy, also a second time, or deletes the first equal one. VPP deletes none
// without an error.
func (p *plugin) change(add bool, e ipsec_types.IpsecSpdEntryV2, stat *uint32) core.Errno {
	*stat = core.None
	_, d := p.database(e.SpdID)
	switch {
	case e.Policy == ipsec_types.IPSEC_API_SPD_ACTION_RESOLVE || e.Policy > ipsec_types.IPSEC_API_SPD_ACTION_PROTECT:
		return api.UNIMPLEMENTED
	case d == nil:
		return api.SYSCALL_ERROR_1
	case !add:
		if at := slices.IndexFunc(d.policies, func(o policy) bool { return isEqual(o.entry, e) }); at >= 0 {
			if held := d.policies[at].held; held != nil {
				p.release(held)
			}
			d.policies = slices.Delete(d.policies, at, at+1)
		}
		return core.OK
	}
	one := policy{entry: e}
	if e.Policy == ipsec_types.IPSEC_API_SPD_ACTION_PROTECT {
		if one.held = p.find(e.SaID); one.held == nil {
			return api.SYSCALL_ERROR_1
		}
		one.held.holds++
	}
	at := slices.IndexFunc(d.policies, func(o policy) bool {
		return kindOf(o.entry) > kindOf(e) || kindOf(o.entry) == kindOf(e) && o.entry.Priority <= e.Priority
	})
	if at < 0 {
		at = len(d.policies)
	}
	d.policies = slices.Insert(d.policies, at, one)
	*stat = 0
	return core.OK
}

// kindOf returns VPP's type of a policy, in the order of its list (VPP ipsec_spd.h,
// foreach_ipsec_spd_policy_type). The IP version is that of the first remote address. Outbound
// policies come first, then inbound ones by action: PROTECT, BYPASS, DISCARD.
func kindOf(e ipsec_types.IpsecSpdEntryV2) int {
	v6 := 0
	if e.RemoteAddressStart.Af == ip_types.ADDRESS_IP6 {
		v6 = 1
	}
	switch {
	case e.IsOutbound:
		return v6
	case e.Policy == ipsec_types.IPSEC_API_SPD_ACTION_PROTECT:
		return 2 + v6
	case e.Policy == ipsec_types.IPSEC_API_SPD_ACTION_BYPASS:
		return 4 + v6
	}
	return 6 + v6
}

// isEqual reports whether VPP takes two policies for one. Of the last remote IPv6 address, it
// does not compare the lower half (VPP ipsec_spd_policy.h, ipsec_policy_is_equal). So a deletion
// can hit another policy than the requested one. The agent prevents that by a claim.
func isEqual(a, b ipsec_types.IpsecSpdEntryV2) bool {
	if kindOf(a) != kindOf(b) {
		return false
	}
	if a.RemoteAddressStart.Af == ip_types.ADDRESS_IP6 {
		last, other := a.RemoteAddressStop.Un.GetIP6(), b.RemoteAddressStop.Un.GetIP6()
		copy(last[8:], other[8:])
		a.RemoteAddressStop.Un.SetIP6(last)
	}
	return a == b
}

// dumpPolicies lists the policies of a database, or those with an association. A number of ~0
// stands for all associations. A missing database yields nothing, and no error.
func (p *plugin) dumpPolicies(q *ipsec.IpsecSpdDump, yield func(ipsec.IpsecSpdDetails)) {
	_, d := p.database(q.SpdID)
	if d == nil {
		return
	}
	for _, one := range d.policies {
		if q.SaID != core.None && q.SaID != one.entry.SaID {
			continue
		}
		e := ipsec_types.IpsecSpdEntry(one.entry)
		for _, a := range []*ip_types.Address{&e.RemoteAddressStart, &e.RemoteAddressStop, &e.LocalAddressStart, &e.LocalAddressStop} {
			*a = shown(*a)
		}
		yield(ipsec.IpsecSpdDetails{Entry: e})
	}
}

// shown returns an address as dumps have it: an IPv6 address below ::1:0:0 looks like an IPv4
// address to VPP (VPP ip46_address.h, ip46_address_is_ip4).
func shown(a ip_types.Address) ip_types.Address {
	if v6 := vppwire.Addr(a); v6.Is6() && !v6.Is4In6() {
		if b := v6.As16(); [12]byte(b[:12]) == [12]byte{} {
			return vppwire.Address(netip.AddrFrom4([4]byte(b[12:])))
		}
	}
	return a
}

// showPolicies prints each database with its policies and interfaces.
func (p *plugin) showPolicies() string {
	var b strings.Builder
	for slot, d := range p.databases.each {
		fmt.Fprintf(&b, "spd %d", d.number)
		for _, i := range slices.Sorted(maps.Keys(p.bound)) {
			if p.bound[i] == slot {
				fmt.Fprintf(&b, " %s", p.vpp.NameOf(i))
			}
		}
		b.WriteByte('\n')
		for _, one := range d.policies {
			e := one.entry
			fmt.Fprintf(&b, "  priority %d outbound %t %s sa %d remote %s-%s\n", e.Priority, e.IsOutbound,
				strings.TrimPrefix(e.Policy.String(), "IPSEC_API_SPD_ACTION_"), e.SaID, vppwire.Addr(e.RemoteAddressStart), vppwire.Addr(e.RemoteAddressStop))
		}
	}
	return b.String()
}
