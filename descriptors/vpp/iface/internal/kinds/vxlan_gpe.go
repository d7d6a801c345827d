package kinds

import (
	"context"

	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/vxlan_gpe"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// vxlanGPEKind is the kind of VXLAN_TUNNEL with gpe. Its packets state the protocol
// inside. VPP hides a deleted one and uses it again (Hides), with all that was set on it.
func vxlanGPEKind() Kind {
	return Kind{
		Link:  "vxlan",
		NoMAC: true, NoMTU: true,
		Hides:    true,
		Validate: validateGPE,
		SameLink: func(old, new *interfaces.Interface) bool {
			a, b := old.GetVxlan().GetGpe(), new.GetVxlan().GetGpe()
			return sameVXLAN(old, new) && a.GetProtocol() == b.GetProtocol() && a.GetDecapVrfId() == b.GetDecapVrfId()
		},
		Recreate: func(old, new *interfaces.Interface) bool { return old.GetVrf() != new.GetVrf() },

		Dependencies: gpeDependencies,
		Versions:     vxlanVersions,

		Create: func(ctx context.Context, e *Env, v *interfaces.Interface) (uint32, error) {
			return e.changeGPE(ctx, v, true)
		},
		Delete: func(ctx context.Context, e *Env, v *interfaces.Interface, _ ifindex.Meta) error {
			_, err := e.changeGPE(ctx, v, false)
			return ignoreMissingTunnel(err)
		},
		Retrieve: retrieveGPEs,
	}
}

// validateGPE requires the protocol: its zero value would be valid for VPP, but means
// nothing.
func validateGPE(f *Findings, v *interfaces.Interface) {
	validateVXLAN(f, v)
	gpe := v.GetVxlan().GetGpe()
	if gpe.GetProtocol() == interfaces.VxlanLink_Gpe_UNKNOWN || interfaces.VxlanLink_Gpe_Protocol_name[int32(gpe.GetProtocol())] == "" {
		f.Add("vxlan.gpe.protocol", gpe.GetProtocol().String(), "IP4, IP6, ETHERNET or NSH")
	}
	if gpe.GetDecapVrfId() != 0 && !carriesIP(gpe) {
		f.Add("vxlan.gpe.decap_vrf_id", gpe.GetDecapVrfId(), "nothing, unless protocol is IP4 or IP6")
	}
}

// carriesIP reports whether the inner packets are looked up in a VRF table.
func carriesIP(gpe *interfaces.VxlanLink_Gpe) bool {
	return gpe.GetProtocol() == interfaces.VxlanLink_Gpe_IP4 || gpe.GetProtocol() == interfaces.VxlanLink_Gpe_IP6
}

// gpeDependencies require the IPv4 table too for IPv6 ends, as VPP looks up the table
// there (vxlan_gpe_api.c).
func gpeDependencies(v *interfaces.Interface) []scheduler.Dependency {
	gpe := v.GetVxlan().GetGpe()
	inside := tableDependency("vrf-table-for-vxlan-gpe-exists", gpe.GetDecapVrfId(), gpe.GetProtocol() == interfaces.VxlanLink_Gpe_IP6)
	deps := append(vxlanDependencies(v), inside...)
	if _, ipv6 := vxlanVersions(v); ipv6 {
		deps = append(deps, tableDependency("vrf-ipv4-table-for-vxlan-exists", v.GetVrf(), false)...)
	}
	return deps
}

// changeGPE passes protocols unchanged: VPP and the model number them in the same way.
func (e *Env) changeGPE(ctx context.Context, v *interfaces.Interface, add bool) (uint32, error) {
	x := v.GetVxlan()
	multicast, err := e.multicastInterface(x.GetMulticast())
	if err != nil && add {
		return 0, err
	}
	reply := &vxlan_gpe.VxlanGpeAddDelTunnelV2Reply{}
	err = e.API.Call(ctx, &vxlan_gpe.VxlanGpeAddDelTunnelV2{
		IsAdd: add, Local: wireAddress(x.GetSrcAddress()), Remote: wireAddress(x.GetDstAddress()), McastSwIfIndex: multicast,
		EncapVrfID: v.GetVrf(), DecapVrfID: x.GetGpe().GetDecapVrfId(), Protocol: ip_types.IPProto(x.GetGpe().GetProtocol()), Vni: x.GetVni(),
	}, reply)
	return uint32(reply.SwIfIndex), err
}

// retrieveGPEs takes the inner table from the desired value, except for IPv4. VPP lists a
// wrong table for the other protocols (vxlan_gpe_api.c).
func retrieveGPEs(ctx context.Context, e *Env, all map[uint32]*Found) error {
	if !anyOf(all, "VXLAN_GPE") {
		return nil
	}
	details, err := conn.Dump[vxlan_gpe.VxlanGpeTunnelV2Details](ctx, e.API, &vxlan_gpe.VxlanGpeTunnelV2Dump{SwIfIndex: ifindex.All})
	for _, d := range details {
		f := all[uint32(d.SwIfIndex)]
		if f == nil {
			continue
		}
		w := f.Desired.GetVxlan()
		gpe := &interfaces.VxlanLink_Gpe{Protocol: interfaces.VxlanLink_Gpe_Protocol(d.Protocol), DecapVrfId: d.DecapVrfID}
		if gpe.GetProtocol() != interfaces.VxlanLink_Gpe_IP4 {
			gpe.DecapVrfId = w.GetGpe().GetDecapVrfId()
		}
		f.Value.Vrf = d.EncapVrfID
		f.Value.Type, f.Value.Link = interfaces.Interface_VXLAN_TUNNEL, &interfaces.Interface_Vxlan{Vxlan: &interfaces.VxlanLink{
			SrcAddress: addressText(d.Local, w.GetSrcAddress()), DstAddress: addressText(d.Remote, w.GetDstAddress()), Vni: d.Vni,
			Multicast: nameOf(all, d.McastSwIfIndex), Gpe: gpe,
		}}
	}
	return err
}
