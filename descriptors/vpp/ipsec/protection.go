package ipsec

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/gre"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ipip"
	vppipsec "go.fd.io/govpp/binapi/ipsec"
	"go.fd.io/govpp/binapi/tunnel_types"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipsec"
	"github.com/keyplane/keyplane/scheduler"
)

// maxInbound is the maximum number of inbound associations (VPP ipsec_tun.h, ITP_MAX_N_SA_IN).
const maxInbound = 4

// VPP's device classes of the tunnels that it can protect (those with ip_tun_desc).
const (
	ipsecDevice = "IPSEC Tunnel"
	ipipDevice  = "IPIP tunnel device"
	greDevice   = "GRE tunnel device"
)

// normalizeProtection removes a prefix length from the next hop.
func normalizeProtection(_ string, v *ipsec.TunnelProtection) (*ipsec.TunnelProtection, []string) {
	if !spelling.HasLength(v.GetNextHopAddr()) {
		return v, nil
	}
	v = proto.CloneOf(v)
	return v, spelling.Host("next_hop_addr", &v.NextHopAddr)
}

func validateProtection(_ string, v *ipsec.TunnelProtection) error {
	var f faults
	if v.GetInterface() == "" {
		f.Add("interface", "", "the name of an interface")
	}
	if n := len(v.GetSaOut()); n != 1 {
		f.Add("sa_out", fmt.Sprint(v.GetSaOut()), "one association: VPP protects all packets that leave with the same one")
	}
	if n := len(v.GetSaIn()); n == 0 || n > maxInbound {
		f.Add("sa_in", fmt.Sprint(v.GetSaIn()), "1 to %d associations", maxInbound)
	}
	seen := map[uint32]int{}
	for i, number := range v.GetSaIn() {
		if first, twice := seen[number]; twice {
			f.Add(fmt.Sprintf("sa_in[%d]", i), number, "each association once; sa_in[%d] has it already", first)
			continue
		}
		seen[number] = i
	}
	if v.GetNextHopAddr() != "" {
		if next, ok := f.address("next_hop_addr", v.GetNextHopAddr()); ok && next.IsUnspecified() {
			f.Add("next_hop_addr", v.GetNextHopAddr(), "the address of a next hop; without it, all packets of the tunnel are protected")
		}
	}
	return f.Err()
}

// outboundOf returns the association of packets that leave.
func outboundOf(v *ipsec.TunnelProtection) uint32 {
	if len(v.GetSaOut()) == 0 {
		return 0
	}
	return v.GetSaOut()[0]
}

// nextHopOf returns the next hop; of a point-to-point tunnel it is 0.0.0.0.
func nextHopOf(v *ipsec.TunnelProtection) netip.Addr {
	next, err := netip.ParseAddr(v.GetNextHopAddr())
	if err != nil {
		return netip.IPv4Unspecified()
	}
	return next
}

// equivalentProtection compares the associations; the inbound ones are a set.
func equivalentProtection(_ string, old, new *ipsec.TunnelProtection) bool {
	return old.GetInterface() == new.GetInterface() && nextHopOf(old) == nextHopOf(new) && outboundOf(old) == outboundOf(new) &&
		slices.Equal(slices.Sorted(slices.Values(old.GetSaIn())), slices.Sorted(slices.Values(new.GetSaIn())))
}

// protectionDependencies requires the interface and all associations.
func protectionDependencies(_ string, v *ipsec.TunnelProtection) []scheduler.Dependency {
	out := []scheduler.Dependency{{Label: "interface-exists", Key: keys.Interface(v.GetInterface()).Key()}}
	for i, number := range v.GetSaOut() {
		out = append(out, scheduler.Dependency{Label: fmt.Sprint("ipsec-sa-exists-out-", i), Key: keys.IPsecSA(number)})
	}
	for i, number := range v.GetSaIn() {
		out = append(out, scheduler.Dependency{Label: fmt.Sprint("ipsec-sa-exists-in-", i), Key: keys.IPsecSA(number)})
	}
	return out
}

// protectionID identifies a protection. Other spellings of a next hop have other keys, but are the
// same to VPP.
func protectionID(v *ipsec.TunnelProtection) string {
	return v.GetInterface() + " " + nextHopOf(v).String()
}

// claimNextHop claims the tunnel, or the next hop on it.
func claimNextHop(_ string, v *ipsec.TunnelProtection) []scheduler.Claim {
	field, value := "next_hop_addr", v.GetNextHopAddr()
	if value == "" {
		field, value = "interface", v.GetInterface()
	}
	return []scheduler.Claim{{Resource: "vpp-tun-protect/" + protectionID(v), Field: field, Value: value, Want: "a tunnel and next hop without another protection"}}
}

// createProtection protects a tunnel (VPP ipsec_tunnel_protect_update).
func (h *handler) createProtection(ctx context.Context, _ string, v *ipsec.TunnelProtection) (struct{}, error) {
	created := h.createProtections(ctx, []scheduler.Desired[*ipsec.TunnelProtection]{{Value: v}})
	return struct{}{}, created[0].Err
}

// createProtections is createProtection for many values, without waiting for each reply.
func (h *handler) createProtections(ctx context.Context, values []scheduler.Desired[*ipsec.TunnelProtection]) []scheduler.Created[struct{}] {
	out, steps := make([]scheduler.Created[struct{}], len(values)), make([]*conn.Step, 0, len(values))
	sent := make([]*conn.Step, len(values))
	for i, w := range values {
		if sent[i], out[i].Err = h.protection(ctx, w.Value); out[i].Err == nil {
			steps = append(steps, sent[i])
		}
	}
	_ = h.API.Batch(ctx, steps...) // each step has its own
	for i, w := range values {
		if out[i].Err == nil {
			out[i].Err = protected(w.Value, sent[i].Err)
		}
	}
	return out
}

// updateProtection replaces the associations of a protection in place.
func (h *handler) updateProtection(ctx context.Context, key string, _, v *ipsec.TunnelProtection, _ struct{}) (struct{}, error) {
	return h.createProtection(ctx, key, v)
}

// protected explains the error of a request to protect a tunnel.
func protected(v *ipsec.TunnelProtection, err error) error {
	if errors.Is(err, api.INVALID_VALUE) {
		return fmt.Errorf("one of the security associations %d, %d: %w", v.GetSaOut(), v.GetSaIn(), iface.ErrNotFound)
	}
	return err
}

// protection returns the request that protects a tunnel. VPP has to accept it: when it refuses one,
// it keeps holds of associations, or even shows a protection that has no effect and never ends.
func (h *handler) protection(ctx context.Context, v *ipsec.TunnelProtection) (*conn.Step, error) {
	link, err := iface.Find(h.Interfaces, v.GetInterface())
	if err != nil {
		return nil, err
	}
	out := outboundOf(v)
	for _, number := range append([]uint32{out}, v.GetSaIn()...) {
		if _, ok := h.associations.Get(fmt.Sprint(number)); !ok {
			return nil, fmt.Errorf("%s: %w", nameOf(number), iface.ErrNotFound)
		}
	}
	switch link.DevType {
	case ipsecDevice:
		// Such a tunnel has no ends of its own.
		if sa, _ := h.associations.Get(fmt.Sprint(out)); !sa.Tunnel {
			return nil, fmt.Errorf("sa_out: %s has no tunnel_src_addr and tunnel_dst_addr; an IPSEC_TUNNEL interface has its outer header from there", nameOf(out))
		}
	case ipipDevice, greDevice:
	default:
		return nil, fmt.Errorf("interface %s is a %s; expected a tunnel of type IPSEC_TUNNEL, IPIP_TUNNEL or GRE_TUNNEL", v.GetInterface(), link.DevType)
	}
	if v.GetNextHopAddr() != "" {
		if err := h.expectMultipoint(ctx, v.GetInterface(), link); err != nil {
			return nil, err
		}
	}
	return conn.Ask(&vppipsec.IpsecTunnelProtectUpdate{Tunnel: vppipsec.IpsecTunnelProtect{
		SwIfIndex: link.SwIfIndex(), Nh: vppwire.Address(nextHopOf(v)), SaOut: out, SaIn: v.GetSaIn(),
	}}, &vppipsec.IpsecTunnelProtectUpdateReply{}), nil
}

// expectMultipoint returns an error for a point-to-point tunnel. VPP ignores the next hop there: a
// second protection would replace the first one.
func (h *handler) expectMultipoint(ctx context.Context, name string, link iface.Meta) error {
	mode, err := h.modeOf(ctx, link)
	if err == nil && mode == tunnel_types.TUNNEL_API_MODE_P2P {
		err = fmt.Errorf("next_hop_addr: interface %s is a point-to-point tunnel; expected none", name)
	}
	return err
}

// modeOf reads the mode of a tunnel from VPP.
func (h *handler) modeOf(ctx context.Context, link iface.Meta) (mode tunnel_types.TunnelMode, err error) {
	switch link.DevType {
	case ipsecDevice:
		all, err := conn.Dump[vppipsec.IpsecItfDetails](ctx, h.API, &vppipsec.IpsecItfDump{SwIfIndex: link.SwIfIndex()})
		for _, d := range all {
			mode = d.Itf.Mode
		}
		return mode, err
	case greDevice:
		all, err := conn.Dump[gre.GreTunnelDetails](ctx, h.API, &gre.GreTunnelDump{SwIfIndex: link.SwIfIndex()})
		for _, d := range all {
			mode = d.Tunnel.Mode
		}
		return mode, err
	}
	all, err := conn.Dump[ipip.IpipTunnelDetails](ctx, h.API, &ipip.IpipTunnelDump{SwIfIndex: link.SwIfIndex()})
	for _, d := range all {
		mode = d.Tunnel.Mode
	}
	return mode, err
}

// deleteProtection ends a protection. A deleted interface has none, from VPP 24.10 on.
func (h *handler) deleteProtection(ctx context.Context, _ string, v *ipsec.TunnelProtection, _ struct{}) error {
	link, ok := h.Interfaces.Get(v.GetInterface())
	if !ok {
		return nil
	}
	err := h.unprotect(nextHopOf(v))(ctx, link.SwIfIndex())
	if errors.Is(err, api.INVALID_SW_IF_INDEX) {
		return nil
	}
	return err
}

// unprotect returns the request that ends a protection, if there is one.
func (h *handler) unprotect(next netip.Addr) func(context.Context, interface_types.InterfaceIndex) error {
	return func(ctx context.Context, at interface_types.InterfaceIndex) error {
		err := h.API.Call(ctx, &vppipsec.IpsecTunnelProtectDel{SwIfIndex: at, Nh: vppwire.Address(next)}, &vppipsec.IpsecTunnelProtectDelReply{})
		if errors.Is(err, api.NO_SUCH_ENTRY) {
			return nil
		}
		return err
	}
}

// readProtections returns all protections. Before 24.10, VPP keeps those of deleted interfaces for the
// next interface with the index; they are noted if the read learns.
func (h *handler) readProtections(ctx context.Context, learns bool) ([]*ipsec.TunnelProtection, error) {
	existing, err := conn.Dump[vppipsec.IpsecTunnelProtectDetails](ctx, h.API, &vppipsec.IpsecTunnelProtectDump{SwIfIndex: ifindex.All})
	if err != nil {
		return nil, err
	}
	names := h.Interfaces.Names()
	out := make([]*ipsec.TunnelProtection, 0, len(existing))
	for _, d := range existing {
		next := vppwire.Addr(d.Tun.Nh)
		name := names[uint32(d.Tun.SwIfIndex)]
		if name == "" && !learns {
			continue
		}
		if name == "" {
			err := h.Interfaces.Leftovers().NoteOrphaned(ctx, h.API, uint32(d.Tun.SwIfIndex), "IPsec protection "+next.String(), h.unprotect(next))
			if err != nil {
				return nil, err
			}
			continue
		}
		v := &ipsec.TunnelProtection{Interface: name, SaOut: []uint32{d.Tun.SaOut}, SaIn: d.Tun.SaIn}
		if !next.IsUnspecified() {
			v.NextHopAddr = next.String()
		}
		out = append(out, v)
	}
	return out, nil
}
