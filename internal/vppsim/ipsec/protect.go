package ipsec

import (
	"fmt"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/ipsec"
	"go.fd.io/govpp/binapi/tunnel_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/tunnel"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// maxInbound is the maximum number of inbound associations (VPP ipsec_tun.h, ITP_MAX_N_SA_IN).
const maxInbound = 4

// A protection is the protection of a tunnel, or of one next hop of it. It holds its associations.
type protection struct {
	at   uint32 // sw_if_index
	next ip_types.Address
	// out and in are held once per use. An association that is used in both directions has two
	// holds.
	out *association
	in  []*association
	// lost: the request that made it was refused, and VPP forgot it. Only dumps show it.
	lost bool
}

// protection returns the protection of an interface and next hop, or nil. A point-to-point
// tunnel has one, for any next hop. Lost ones do not count: VPP finds no trace of them, so a
// repeated request adds another one.
func (p *plugin) protection(i *core.Interface, next ip_types.Address) *protection {
	isP2P := i.Device.(tunnel.Protectable).Mode() == tunnel_types.TUNNEL_API_MODE_P2P
	for _, one := range p.protections.each {
		if one.at == i.Index && !one.lost && (isP2P || one.next == next) {
			return one
		}
	}
	return nil
}

// protect makes a protection, or replaces the associations of one. VPP loses a hold of each
// association that it has found before it refuses a request.
func (p *plugin) protect(i *core.Interface, q *ipsec.IpsecTunnelProtectUpdate, _ *ipsec.IpsecTunnelProtectUpdateReply) core.Errno {
	t := q.Tunnel
	if len(t.SaIn) > maxInbound {
		return api.LIMIT_EXCEEDED
	}
	one := &protection{at: i.Index, next: t.Nh}
	for _, number := range append(append([]uint32(nil), t.SaIn...), t.SaOut) {
		a := p.find(number)
		if a == nil {
			return api.INVALID_VALUE
		}
		a.holds++
		one.in, one.out = append(one.in, a), a
	}
	one.in = one.in[:len(one.in)-1]
	if _, is := i.Device.(tunnel.Protectable); !is {
		return api.INVALID_SW_IF_INDEX
	}
	if existing := p.protection(i, t.Nh); existing != nil {
		p.letGo(existing)
		existing.in, existing.out = one.in, one.out
		return core.OK
	}
	p.protections.put(one)
	if _, is := i.Device.(device); is && one.out.entry.Flags&isTunnel == 0 {
		one.lost = true
		return api.INVALID_DST_ADDRESS
	}
	return core.OK
}

// letGo gives up the holds of a protection. The last hold frees an association, also if its
// creator has deleted it before.
func (p *plugin) letGo(one *protection) {
	p.release(one.out)
	for _, a := range one.in {
		p.release(a)
	}
}

// unprotect ends a protection. A missing one and an interface of another kind give the same
// error.
func (p *plugin) unprotect(i *core.Interface, q *ipsec.IpsecTunnelProtectDel, _ *ipsec.IpsecTunnelProtectDelReply) core.Errno {
	if _, is := i.Device.(tunnel.Protectable); !is {
		return api.NO_SUCH_ENTRY
	}
	one := p.protection(i, q.Nh)
	if one == nil {
		return api.NO_SUCH_ENTRY
	}
	p.letGo(one)
	p.protections.remove(one)
	return core.OK
}

// removing ends the features of a deleted interface, while its binding to a database stays. Its
// protections end; before 24.10, they stay.
func (p *plugin) removing(i *core.Interface) {
	delete(p.inputs, i.Index)
	if p.vpp.Before("24.10") {
		return
	}
	for _, one := range p.protections.each {
		if one.at == i.Index && !one.lost {
			p.letGo(one)
			p.protections.remove(one)
		}
	}
}

// dumpProtections lists the protections of one interface, or all for ~0. Only the latter shows
// lost ones, which no request can remove.
func (p *plugin) dumpProtections(q *ipsec.IpsecTunnelProtectDump, yield func(ipsec.IpsecTunnelProtectDetails)) {
	for _, one := range p.protections.each {
		if uint32(q.SwIfIndex) != core.None && (uint32(q.SwIfIndex) != one.at || one.lost) {
			continue
		}
		d := ipsec.IpsecTunnelProtect{SwIfIndex: index(one.at), Nh: one.next, SaOut: one.out.entry.SadID}
		for _, a := range one.in {
			d.SaIn = append(d.SaIn, a.entry.SadID)
		}
		yield(ipsec.IpsecTunnelProtectDetails{Tun: d})
	}
}

// showProtections prints each protection with its associations.
func (p *plugin) showProtections() string {
	var b strings.Builder
	for _, one := range p.protections.each {
		fmt.Fprintf(&b, "%s next hop %s out %d in", p.vpp.NameOf(one.at), vppwire.Addr(one.next), one.out.entry.SadID)
		for _, a := range one.in {
			fmt.Fprintf(&b, " %d", a.entry.SadID)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
