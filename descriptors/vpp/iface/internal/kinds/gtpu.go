package kinds

import (
	"cmp"
	"context"

	"go.fd.io/govpp/binapi/gtpu"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// gtpuKind is the kind of GTPU_TUNNEL. VPP hides a deleted one and uses it again (Hides),
// with all that was set on it.
func gtpuKind() Kind {
	return Kind{
		Link:     "gtpu",
		NoMAC:    true,
		Hides:    true,
		Validate: validateGTPU,
		SameLink: sameGTPU,

		Dependencies: func(v *interfaces.Interface) []scheduler.Dependency {
			g := v.GetGtpu()
			_, ipv6 := gtpuVersions(v)
			return append(tableDependency("vrf-table-for-gtpu-exists", g.GetEncapVrfId(), ipv6), multicastDependency("gtpu", g.GetMulticast())...)
		},
		Versions: gtpuVersions,

		Create: func(ctx context.Context, e *Env, v *interfaces.Interface) (uint32, error) {
			return e.changeGTPU(ctx, v, true)
		},
		Delete: func(ctx context.Context, e *Env, v *interfaces.Interface, _ ifindex.Meta) error {
			_, err := e.changeGTPU(ctx, v, false)
			return ignoreMissingTunnel(err)
		},
		Retrieve: retrieveGTPUs,
	}
}

// validateGTPU accepts any number as the next node; only the deprecated field is an enum.
func validateGTPU(f *Findings, v *interfaces.Interface) {
	g := v.GetGtpu()
	f.ends("gtpu", "src_addr", g.GetSrcAddr(), "dst_addr", g.GetDstAddr())
	f.multicast("gtpu.multicast", g.GetMulticast(), "dst_addr", g.GetDstAddr())
	if next := deprecatedNext(g); interfaces.GtpuLink_NextNode_name[int32(next)] == "" {
		f.Add("gtpu.decap_next", int32(next), "DEFAULT, L2, IP4 or IP6")
	}
}

// sameGTPU compares with defaults filled in, as VPP reports them.
func sameGTPU(old, new *interfaces.Interface) bool {
	a, b := old.GetGtpu(), new.GetGtpu()
	return sameEnd(a.GetSrcAddr(), b.GetSrcAddr()) && sameEnd(a.GetDstAddr(), b.GetDstAddr()) && a.GetMulticast() == b.GetMulticast() &&
		a.GetTeid() == b.GetTeid() && remoteTEID(a) == remoteTEID(b) && a.GetEncapVrfId() == b.GetEncapVrfId() && decapNext(a) == decapNext(b)
}

// remoteTEID returns the TEID of outgoing packets; it defaults to the tunnel's own.
func remoteTEID(g *interfaces.GtpuLink) uint32 { return cmp.Or(g.GetRemoteTeid(), g.GetTeid()) }

// decapNext returns the next node for decapsulated packets; it defaults to L2.
func decapNext(g *interfaces.GtpuLink) uint32 {
	return cmp.Or(g.GetDecapNextNode(), uint32(deprecatedNext(g)), uint32(interfaces.GtpuLink_L2))
}

// deprecatedNext returns the older field; VPP numbers its nodes in the same way.
func deprecatedNext(g *interfaces.GtpuLink) interfaces.GtpuLink_NextNode {
	return g.GetDecapNext() //nolint:staticcheck // values in stores have it
}

// gtpuVersions returns the IP version of the ends.
func gtpuVersions(v *interfaces.Interface) (ipv4, ipv6 bool) {
	return tunnelVersions(v.GetGtpu().GetSrcAddr(), v.GetGtpu().GetDstAddr())
}

// changeGTPU does not use version 2 of the message. The model has none of its additions,
// and VPP crashes when it refuses one.
func (e *Env) changeGTPU(ctx context.Context, v *interfaces.Interface, add bool) (uint32, error) {
	g := v.GetGtpu()
	multicast, err := e.multicastInterface(g.GetMulticast())
	// A deletion does not need the multicast interface, which may be gone already.
	if err != nil && add {
		return 0, err
	}
	reply := &gtpu.GtpuAddDelTunnelReply{}
	err = e.API.Call(ctx, &gtpu.GtpuAddDelTunnel{
		IsAdd: add, SrcAddress: wireAddress(g.GetSrcAddr()), DstAddress: wireAddress(g.GetDstAddr()), McastSwIfIndex: multicast,
		EncapVrfID: g.GetEncapVrfId(), DecapNextIndex: decapNext(g), Teid: g.GetTeid(), Tteid: remoteTEID(g),
	}, reply)
	return uint32(reply.SwIfIndex), err
}

// retrieveGTPUs lists GTP-U tunnels. VPP reports the TEID of outgoing packets also where
// it was left to its default; sameGTPU accounts for that.
func retrieveGTPUs(ctx context.Context, e *Env, all map[uint32]*Found) error {
	if !anyOf(all, "GTPU") {
		return nil
	}
	details, err := conn.Dump[gtpu.GtpuTunnelDetails](ctx, e.API, &gtpu.GtpuTunnelDump{SwIfIndex: ifindex.All})
	for _, d := range details {
		f := all[uint32(d.SwIfIndex)]
		if f == nil {
			continue
		}
		w := f.Desired.GetGtpu()
		f.Value.Type, f.Value.Link = interfaces.Interface_GTPU_TUNNEL, &interfaces.Interface_Gtpu{Gtpu: &interfaces.GtpuLink{
			SrcAddr: addressText(d.SrcAddress, w.GetSrcAddr()), DstAddr: addressText(d.DstAddress, w.GetDstAddr()), Multicast: nameOf(all, d.McastSwIfIndex),
			Teid: d.Teid, RemoteTeid: d.Tteid, EncapVrfId: d.EncapVrfID, DecapNextNode: d.DecapNextIndex,
		}}
	}
	return err
}
