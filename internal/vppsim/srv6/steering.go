package srv6

import (
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/sr"
	"go.fd.io/govpp/binapi/sr_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// The return values of steering (VPP sr_steering.c).
const (
	badTraffic  core.Errno = -1
	nowhere     core.Errno = -2 // there is no such policy
	notHardware core.Errno = -3
	notSteered  core.Errno = -4
	noHeader    core.Errno = -5
)

// A steering sends traffic into a policy. Its identity is the traffic.
type steering struct {
	// kind decides which of the next fields count: table and prefix for packets, index for
	// frames.
	kind   sr_types.SrSteer
	table  uint32
	prefix ip_types.Prefix
	index  uint32
	policy *policy
}

// same reports whether two steerings are of the same traffic. The policy does not count, so a
// request with another policy replaces the steering.
func (a steering) same(b *steering) bool {
	return a.kind == b.kind && a.table == b.table && a.prefix == b.prefix && a.index == b.index
}

func (p *plugin) steeringMessages() []core.Message {
	return []core.Message{core.Call(p.steer), core.Dump(p.dumpSteering)}
}

// steer sends traffic into a policy, or ends that. VPP does not check that the table of the
// traffic exists, and dies without it. Traffic that is steered already goes into the new policy,
// even if that has no outer header.
func (p *plugin) steer(q *sr.SrSteeringAddDel, _ *sr.SrSteeringAddDelReply) core.Errno {
	s := steering{kind: q.TrafficType}
	ipv6 := q.TrafficType == sr_types.SR_STEER_API_IPV6
	switch q.TrafficType {
	case sr_types.SR_STEER_API_L2:
		s.index = uint32(q.SwIfIndex)
		if errno := p.steerable(s.index); errno != core.OK {
			return errno
		}
	case sr_types.SR_STEER_API_IPV4, sr_types.SR_STEER_API_IPV6:
		s.table, s.prefix = q.TableID, q.Prefix
	default:
		return badTraffic
	}
	at := slices.IndexFunc(p.steered, s.same)
	s.policy = p.policyOf(q.BsidAddr)
	switch {
	case q.IsDel && at < 0:
		return notSteered
	case !q.IsDel && s.policy == nil:
		return nowhere
	case !q.IsDel && at < 0 && !s.policy.encap && !ipv6:
		return noHeader
	case q.TrafficType != sr_types.SR_STEER_API_L2 && !p.tables.HasTable(ipv6, s.table):
		return core.Crash
	}
	p.replaceSteering(at, s, q.IsDel)
	return core.OK
}

// setFrames begins or ends the steering of the frames of an interface. From 26.06 on, such an
// interface is in layer 2: cross-connected to the interface with index 0, although nothing is sent
// there. At the end it goes to layer 3, wherever it is by then.
func (p *plugin) setFrames(index uint32, on bool) {
	const feature = "sr-pl-rewrite-encaps-l2"
	switch {
	case p.vpp.Before("26.06"):
		p.switching.SetEarlyFeature(index, feature, on)
	case on:
		p.switching.CrossConnect(index, 0)
		p.switching.SetFeature(index, feature, true)
	default:
		p.switching.ToL3(index)
	}
}

// replaceSteering enters steering at its place, or at the end for -1, or removes it.
func (p *plugin) replaceSteering(at int, s steering, remove bool) {
	if s.kind == sr_types.SR_STEER_API_L2 && (remove || at < 0) {
		p.setFrames(s.index, !remove)
	}
	switch {
	case remove:
		p.steered = slices.Delete(p.steered, at, at+1)
	case at >= 0:
		p.steered[at] = &s
	default:
		p.steered = append(p.steered, &s)
	}
}

// steerable returns whether the frames of an interface can be steered. From 26.06 on, those of
// sub-interfaces can. Before, VPP dies if the interface is not Ethernet.
func (p *plugin) steerable(index uint32) core.Errno {
	i := p.vpp.Interface(index)
	switch {
	case i == nil:
		return api.INVALID_SW_IF_INDEX
	case i.SubID != 0 && p.vpp.Before("26.06"):
		return notHardware
	case i.MAC == (ethernet_types.MacAddress{}) && p.vpp.Before("26.06"):
		return core.Crash
	}
	return core.OK
}

// dumpSteering lists all steering. Like a next hop, an IPv6 network comes as an IPv4 one if its
// first 12 bytes are zero.
func (p *plugin) dumpSteering(_ *sr.SrSteeringPolDump, yield func(sr.SrSteeringPolDetails)) {
	for _, s := range p.steered {
		d := sr.SrSteeringPolDetails{
			TrafficType: s.kind, FibTable: s.table, Prefix: s.prefix,
			SwIfIndex: interface_types.InterfaceIndex(s.index), Bsid: s.policy.bsid.As16(),
		}
		if s.kind == sr_types.SR_STEER_API_L2 {
			d.Prefix = vppwire.Prefix(netip.PrefixFrom(netip.IPv4Unspecified(), 0))
		} else {
			d.Prefix.Address = guessed(s.prefix.Address)
		}
		yield(d)
	}
}
