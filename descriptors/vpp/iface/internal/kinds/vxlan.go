package kinds

import (
	"context"
	"net/netip"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vxlan"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// vxlanKind is the kind of VXLAN_TUNNEL. The VRF of the value is the outer table here, and
// a new one needs a new tunnel.
func vxlanKind() Kind {
	return Kind{
		Link:     "vxlan",
		NoMTU:    true,
		Validate: validateVXLAN,
		SameLink: sameVXLAN,
		Recreate: func(old, new *interfaces.Interface) bool { return old.GetVrf() != new.GetVrf() },

		Dependencies: vxlanDependencies,
		Versions:     vxlanVersions,

		Create: func(ctx context.Context, e *Env, v *interfaces.Interface) (uint32, error) {
			return e.changeVXLAN(ctx, v, true)
		},
		Delete: func(ctx context.Context, e *Env, v *interfaces.Interface, _ ifindex.Meta) error {
			_, err := e.changeVXLAN(ctx, v, false)
			return ignoreMissingTunnel(err)
		},
		Retrieve: retrieveVXLANs,
	}
}

// validateVXLAN checks the fields that tunnels with and without GPE share.
func validateVXLAN(f *Findings, v *interfaces.Interface) {
	x := v.GetVxlan()
	f.ends("vxlan", "src_address", x.GetSrcAddress(), "dst_address", x.GetDstAddress())
	f.multicast("vxlan.multicast", x.GetMulticast(), "dst_address", x.GetDstAddress())
}

// multicast checks that a tunnel to a multicast group has an interface to send on.
func (f *Findings) multicast(field, by, dstField, dst string) {
	if a, err := netip.ParseAddr(dst); err == nil && a.IsMulticast() && by == "" {
		f.Add(field, by, "an interface, as %s is a multicast address", dstField)
	}
}

// sameVXLAN compares the fields that tunnels with and without GPE share.
func sameVXLAN(old, new *interfaces.Interface) bool {
	a, b := old.GetVxlan(), new.GetVxlan()
	return sameEnd(a.GetSrcAddress(), b.GetSrcAddress()) && sameEnd(a.GetDstAddress(), b.GetDstAddress()) &&
		a.GetVni() == b.GetVni() && a.GetMulticast() == b.GetMulticast()
}

// vxlanDependencies returns the outer table and, for a multicast group, the interface.
func vxlanDependencies(v *interfaces.Interface) []scheduler.Dependency {
	_, ipv6 := vxlanVersions(v)
	return append(tableDependency("vrf-table-for-vxlan-exists", v.GetVrf(), ipv6), multicastDependency("vxlan", v.GetVxlan().GetMulticast())...)
}

// vxlanVersions returns the IP version of the ends.
func vxlanVersions(v *interfaces.Interface) (ipv4, ipv6 bool) {
	return tunnelVersions(v.GetVxlan().GetSrcAddress(), v.GetVxlan().GetDstAddress())
}

// multicastDependency requires a multicast address on the interface that sends to the
// group.
func multicastDependency(link, name string) []scheduler.Dependency {
	if name == "" {
		return nil
	}
	return []scheduler.Dependency{{
		Label:    link + "-multicast-interface-exists",
		Prefixes: []string{keys.Interface(name).Addresses()},
		Match: func(key string) bool {
			a, _ := keys.ParseAddress(key)
			p, ok := a.Prefix()
			return ok && p.Addr().IsMulticast()
		},
	}}
}

// changeVXLAN creates or deletes the tunnel. Both use one message with all its fields, so
// the value of a deletion must be the one that was created.
func (e *Env) changeVXLAN(ctx context.Context, v *interfaces.Interface, add bool) (uint32, error) {
	x := v.GetVxlan()
	multicast, err := e.multicastInterface(x.GetMulticast())
	if err != nil && add {
		return 0, err
	}
	src, dst := wireAddress(x.GetSrcAddress()), wireAddress(x.GetDstAddress())
	request, err := e.API.First(
		&vxlan.VxlanAddDelTunnelV3{
			IsAdd: add, Instance: ^uint32(0), SrcAddress: src, DstAddress: dst, McastSwIfIndex: multicast,
			EncapVrfID: v.GetVrf(), DecapNextIndex: ^uint32(0), Vni: x.GetVni(),
		},
		&vxlan.VxlanAddDelTunnelV2{
			IsAdd: add, Instance: ^uint32(0), SrcAddress: src, DstAddress: dst, McastSwIfIndex: multicast,
			EncapVrfID: v.GetVrf(), DecapNextIndex: ^uint32(0), Vni: x.GetVni(),
		},
	)
	if err != nil {
		return 0, err
	}
	if _, newer := request.(*vxlan.VxlanAddDelTunnelV3); newer {
		reply := &vxlan.VxlanAddDelTunnelV3Reply{}
		err = e.API.Call(ctx, request, reply)
		return uint32(reply.SwIfIndex), err
	}
	reply := &vxlan.VxlanAddDelTunnelV2Reply{}
	err = e.API.Call(ctx, request, reply)
	return uint32(reply.SwIfIndex), err
}

// multicastInterface returns the index of the interface that sends to the group;
// ifindex.All: none.
func (e *Env) multicastInterface(name string) (interface_types.InterfaceIndex, error) {
	if name == "" {
		return ifindex.All, nil
	}
	meta, ok := e.Interfaces.Get(name)
	if !ok {
		return 0, NotThere(name)
	}
	return meta.SwIfIndex(), nil
}

// nameOf returns the name of the multicast interface; empty for index 0 and unknown
// indexes. Index 0 is VPP's own interface local0, which is never one for multicast.
func nameOf(all map[uint32]*Found, index interface_types.InterfaceIndex) string {
	if f := all[uint32(index)]; f != nil && index != 0 {
		return f.Value.GetName()
	}
	return ""
}

// retrieveVXLANs lists tunnels without GPE.
func retrieveVXLANs(ctx context.Context, e *Env, all map[uint32]*Found) error {
	if !anyOf(all, "VXLAN") {
		return nil
	}
	details, err := conn.Dump[vxlan.VxlanTunnelV2Details](ctx, e.API, &vxlan.VxlanTunnelV2Dump{SwIfIndex: ifindex.All})
	for _, d := range details {
		f := all[uint32(d.SwIfIndex)]
		if f == nil {
			continue
		}
		w := f.Desired.GetVxlan()
		link := &interfaces.VxlanLink{
			SrcAddress: addressText(d.SrcAddress, w.GetSrcAddress()), DstAddress: addressText(d.DstAddress, w.GetDstAddress()), Vni: d.Vni,
			Multicast: nameOf(all, d.McastSwIfIndex),
		}
		f.Value.Vrf = d.EncapVrfID
		f.Value.Type, f.Value.Link = interfaces.Interface_VXLAN_TUNNEL, &interfaces.Interface_Vxlan{Vxlan: link}
	}
	return err
}
