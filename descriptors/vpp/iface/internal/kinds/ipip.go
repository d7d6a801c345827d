package kinds

import (
	"context"

	"go.fd.io/govpp/binapi/ipip"
	"go.fd.io/govpp/binapi/tunnel_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// ipipKind is the kind of IPIP_TUNNEL. The VRF of the value is the outer table here, and a
// new one needs a new tunnel.
func ipipKind() Kind {
	return Kind{
		Link:  "ipip",
		NoMAC: true,
		Validate: func(f *Findings, v *interfaces.Interface) {
			p := v.GetIpip()
			if interfaces.IPIPLink_Mode_name[int32(p.GetTunnelMode())] == "" {
				f.Add("ipip.tunnel_mode", int32(p.GetTunnelMode()), "POINT_TO_POINT or POINT_TO_MULTIPOINT")
			}
			if p.GetTunnelMode() == interfaces.IPIPLink_POINT_TO_MULTIPOINT && p.GetDstAddr() == "" {
				f.own("ipip.src_addr", p.GetSrcAddr())
				return
			}
			f.ends("ipip", "src_addr", p.GetSrcAddr(), "dst_addr", p.GetDstAddr())
		},
		SameLink: func(old, new *interfaces.Interface) bool {
			a, b := old.GetIpip(), new.GetIpip()
			return a.GetTunnelMode() == b.GetTunnelMode() && sameEnd(a.GetSrcAddr(), b.GetSrcAddr()) && sameEnd(a.GetDstAddr(), b.GetDstAddr())
		},
		Recreate: func(old, new *interfaces.Interface) bool { return old.GetVrf() != new.GetVrf() },
		Dependencies: func(v *interfaces.Interface) []scheduler.Dependency {
			_, ipv6 := tunnelVersions(v.GetIpip().GetSrcAddr(), v.GetIpip().GetDstAddr())
			return tableDependency("vrf-table-for-ipip-exists", v.GetVrf(), ipv6)
		},
		Versions: func(v *interfaces.Interface) (bool, bool) {
			return tunnelVersions(v.GetIpip().GetSrcAddr(), v.GetIpip().GetDstAddr())
		},
		Create: createIPIP,
		Delete: func(ctx context.Context, e *Env, _ *interfaces.Interface, meta ifindex.Meta) error {
			return ignoreMissingTunnel(e.API.Call(ctx, &ipip.IpipDelTunnel{SwIfIndex: meta.SwIfIndex()}, &ipip.IpipDelTunnelReply{}))
		},
		Retrieve: retrieveIPIPs,
	}
}

// createIPIP leaves the remote end of a point-to-multipoint tunnel zero, but sets its IP
// version.
func createIPIP(ctx context.Context, e *Env, v *interfaces.Interface) (uint32, error) {
	p := v.GetIpip()
	t := ipip.IpipTunnel{Instance: ^uint32(0), SwIfIndex: ifindex.All, TableID: v.GetVrf(), Src: wireAddress(p.GetSrcAddr()), Dst: wireAddress(p.GetDstAddr())}
	if t.Dst.Af = t.Src.Af; p.GetTunnelMode() == interfaces.IPIPLink_POINT_TO_MULTIPOINT {
		t.Mode = tunnel_types.TUNNEL_API_MODE_MP
	}
	reply := &ipip.IpipAddTunnelReply{}
	err := e.API.Call(ctx, &ipip.IpipAddTunnel{Tunnel: t}, reply)
	return uint32(reply.SwIfIndex), err
}

// retrieveIPIPs lists IPIP tunnels. An unspecified remote end is none.
func retrieveIPIPs(ctx context.Context, e *Env, all map[uint32]*Found) error {
	if !anyOf(all, "IPIP tunnel device") {
		return nil
	}
	details, err := conn.Dump[ipip.IpipTunnelDetails](ctx, e.API, &ipip.IpipTunnelDump{SwIfIndex: ifindex.All})
	for _, d := range details {
		f := all[uint32(d.Tunnel.SwIfIndex)]
		if f == nil {
			continue
		}
		w := f.Desired.GetIpip()
		link := &interfaces.IPIPLink{SrcAddr: addressText(d.Tunnel.Src, w.GetSrcAddr())}
		if to := vppwire.Addr(d.Tunnel.Dst); !to.IsUnspecified() {
			link.DstAddr = addressText(d.Tunnel.Dst, w.GetDstAddr())
		}
		if d.Tunnel.Mode == tunnel_types.TUNNEL_API_MODE_MP {
			link.TunnelMode = interfaces.IPIPLink_POINT_TO_MULTIPOINT
		}
		f.Value.Vrf = d.Tunnel.TableID
		f.Value.Type, f.Value.Link = interfaces.Interface_IPIP_TUNNEL, &interfaces.Interface_Ipip{Ipip: link}
	}
	return err
}
