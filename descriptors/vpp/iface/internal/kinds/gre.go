package kinds

import (
	"context"

	"go.fd.io/govpp/binapi/gre"
	"go.fd.io/govpp/binapi/tunnel_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// greKind is the kind of GRE_TUNNEL. The delete message has all fields of the tunnel, not
// its index.
func greKind() Kind {
	return Kind{
		Link:  "gre",
		NoMAC: true,
		Validate: func(f *Findings, v *interfaces.Interface) {
			g := v.GetGre()
			if g.GetTunnelType() == interfaces.GreLink_UNKNOWN || interfaces.GreLink_Type_name[int32(g.GetTunnelType())] == "" {
				f.Add("gre.tunnel_type", g.GetTunnelType().String(), "L3, TEB or ERSPAN")
			}
			f.ends("gre", "src_addr", g.GetSrcAddr(), "dst_addr", g.GetDstAddr())
		},
		SameLink: func(old, new *interfaces.Interface) bool {
			return wireGRE(old.GetGre()) == wireGRE(new.GetGre())
		},
		Dependencies: func(v *interfaces.Interface) []scheduler.Dependency {
			_, ipv6 := tunnelVersions(v.GetGre().GetSrcAddr(), v.GetGre().GetDstAddr())
			return tableDependency("vrf-table-for-gre-exists", v.GetGre().GetOuterFibId(), ipv6)
		},
		Create: func(ctx context.Context, e *Env, v *interfaces.Interface) (uint32, error) {
			reply := &gre.GreTunnelAddDelReply{}
			err := e.API.Call(ctx, &gre.GreTunnelAddDel{IsAdd: true, Tunnel: wireGRE(v.GetGre())}, reply)
			return uint32(reply.SwIfIndex), err
		},
		Delete: func(ctx context.Context, e *Env, v *interfaces.Interface, _ ifindex.Meta) error {
			return ignoreMissingTunnel(e.API.Call(ctx, &gre.GreTunnelAddDel{Tunnel: wireGRE(v.GetGre())}, &gre.GreTunnelAddDelReply{}))
		},
		Retrieve: retrieveGREs,
	}
}

// greSession returns the session of a tunnel. An L3 or a TEB tunnel has none. VPP accepts the number
// for it too, uses it to find the tunnel, and lists 0 (VPP plugins/gre/interface.c,
// vnet_gre_tunnel_add). So a deletion by the listed tunnel would miss it.
func greSession(g *interfaces.GreLink) uint32 {
	switch g.GetTunnelType() {
	case interfaces.GreLink_L3, interfaces.GreLink_TEB:
		return 0
	default:
		return g.GetSessionId()
	}
}

// wireGRE converts the type: VPP numbers types from 0, the model from 1.
func wireGRE(g *interfaces.GreLink) gre.GreTunnel {
	return gre.GreTunnel{
		Type: gre.GreTunnelType(g.GetTunnelType() - interfaces.GreLink_L3), Mode: tunnel_types.TUNNEL_API_MODE_P2P,
		SessionID: uint16(greSession(g)), Instance: ^uint32(0), OuterTableID: g.GetOuterFibId(),
		// Instance ~0 lets VPP choose the number in the name.
		SwIfIndex: ifindex.All, Src: wireAddress(g.GetSrcAddr()), Dst: wireAddress(g.GetDstAddr()),
	}
}

// retrieveGREs lists GRE tunnels. Addresses are in the notation of the desired value, so a
// value that a person wrote differently is no difference.
func retrieveGREs(ctx context.Context, e *Env, all map[uint32]*Found) error {
	if !anyOf(all, "GRE tunnel device") {
		return nil
	}
	details, err := conn.Dump[gre.GreTunnelDetails](ctx, e.API, &gre.GreTunnelDump{SwIfIndex: ifindex.All})
	for _, d := range details {
		f := all[uint32(d.Tunnel.SwIfIndex)]
		if f == nil {
			continue
		}
		w := f.Desired.GetGre()
		f.Value.Type, f.Value.Link = interfaces.Interface_GRE_TUNNEL, &interfaces.Interface_Gre{Gre: &interfaces.GreLink{
			TunnelType: interfaces.GreLink_Type(d.Tunnel.Type) + interfaces.GreLink_L3,
			SrcAddr:    addressText(d.Tunnel.Src, w.GetSrcAddr()), DstAddr: addressText(d.Tunnel.Dst, w.GetDstAddr()),
			OuterFibId: d.Tunnel.OuterTableID, SessionId: uint32(d.Tunnel.SessionID),
		}}
	}
	return err
}
