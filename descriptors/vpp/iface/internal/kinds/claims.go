package kinds

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// Claims returns the resources of VPP that only one interface can have. Without claims,
// VPP would refuse the second of two such values with a number for an error, or return the
// interface of the first one to both.
func Claims(_ string, v *interfaces.Interface) []scheduler.Claim {
	var c scheduler.Claim
	switch v.GetType() {
	case interfaces.Interface_SUB_INTERFACE:
		c = subClaim(v.GetSub())
	case interfaces.Interface_MEMIF:
		c = memifClaim(v.GetMemif())
	case interfaces.Interface_AF_PACKET:
		c = afPacketClaim(v.GetAfpacket())
	case interfaces.Interface_BOND_INTERFACE:
		id := v.GetBond().GetId()
		if id == anyID {
			return nil
		}
		c = scheduler.Claim{Resource: fmt.Sprint("vpp-bond/", id), Field: "bond.id", Value: id, Want: "an ID that no other bond has"}
	case interfaces.Interface_VXLAN_TUNNEL:
		c = vxlanClaim(v)
	case interfaces.Interface_GTPU_TUNNEL:
		c = gtpuClaim(v.GetGtpu())
	case interfaces.Interface_GRE_TUNNEL:
		c = greClaim(v.GetGre())
	case interfaces.Interface_IPIP_TUNNEL:
		c = ipipClaim(v)
	default:
		return nil
	}
	return []scheduler.Claim{c}
}

// subClaim has the parent and the VLAN: VPP has one sub-interface for them.
func subClaim(s *interfaces.SubInterface) scheduler.Claim {
	return scheduler.Claim{
		Resource: fmt.Sprintf("vpp-vlan/%s/%d", s.GetParentName(), s.GetSubId()),
		Field:    "sub.sub_id", Value: s.GetSubId(), Want: "a VLAN that no other sub-interface of " + s.GetParentName() + " has",
	}
}

// memifClaim has the socket and the ID. The same ID on two sockets is no conflict.
func memifClaim(m *interfaces.MemifLink) scheduler.Claim {
	return scheduler.Claim{
		Resource: fmt.Sprintf("vpp-memif/%s/%d", socketOf(m), m.GetId()),
		Field:    "memif.id", Value: m.GetId(), Want: "an ID that no other memif of this socket has",
	}
}

// afPacketClaim has the link as it is declared. One value may name a link of the host and
// another the same one as a Linux interface; VPP refuses the second, see ignoreIfOurs.
func afPacketClaim(a *interfaces.AfpacketLink) scheduler.Claim {
	field, link := "afpacket.host_if_name", a.GetHostIfName()
	if linux := a.GetLinuxInterface(); linux != "" {
		field, link = "afpacket.linux_interface", linux
	}
	return scheduler.Claim{Resource: "vpp-" + field + "/" + link, Field: field, Value: link, Want: "a link that no other AF_PACKET interface is on"}
}

// vxlanClaim ignores the table of VXLAN-GPE tunnels, as VPP does (vxlan_gpe.c,
// vnet_vxlan_gpe_add_del_tunnel).
func vxlanClaim(v *interfaces.Interface) scheduler.Claim {
	x, table := v.GetVxlan(), v.GetVrf()
	if FormOf(v).GPE {
		table = 0
	}
	return scheduler.Claim{
		Resource: fmt.Sprintf("vpp-%s/%s/%s/%d/%d", FormOf(v), canonical(x.GetSrcAddress()), canonical(x.GetDstAddress()), table, x.GetVni()),
		Field:    "vxlan.vni", Value: x.GetVni(), Want: "a VNI that no other tunnel between these ends has",
	}
}

// gtpuClaim has the remote end and the TEID, which identify a tunnel in VPP (VPP gtpu.c,
// vnet_gtpu_add_mod_del_tunnel).
func gtpuClaim(g *interfaces.GtpuLink) scheduler.Claim {
	return scheduler.Claim{
		Resource: fmt.Sprintf("vpp-gtpu/%s/%d", canonical(g.GetDstAddr()), g.GetTeid()),
		Field:    "gtpu.teid", Value: g.GetTeid(), Want: "an ID that no other tunnel to " + g.GetDstAddr() + " has",
	}
}

// greClaim has all fields that VPP's table of tunnels has as its key.
func greClaim(g *interfaces.GreLink) scheduler.Claim {
	return scheduler.Claim{
		Resource: fmt.Sprintf("vpp-gre/%s/%s/%s/%d/%d", g.GetTunnelType(), canonical(g.GetSrcAddr()), canonical(g.GetDstAddr()), g.GetOuterFibId(), greSession(g)),
		Field:    "gre.dst_addr", Value: g.GetDstAddr(), Want: "other ends than those of another GRE tunnel",
	}
}

// ipipClaim has the ends, the mode and the outer table. A multipoint tunnel may have no
// remote end; "many" stands for that.
func ipipClaim(v *interfaces.Interface) scheduler.Claim {
	p := v.GetIpip()
	return scheduler.Claim{
		Resource: fmt.Sprintf("vpp-ipip/%s/%s/%s/%d", p.GetTunnelMode(), canonical(p.GetSrcAddr()), cmp.Or(canonical(p.GetDstAddr()), "many"), v.GetVrf()),
		Field:    "ipip.dst_addr", Value: p.GetDstAddr(), Want: "other ends than those of another IPIP tunnel",
	}
}

// canonical returns an address in its standard notation.
func canonical(text string) string {
	if a, err := netip.ParseAddr(text); err == nil {
		return a.String()
	}
	return text
}
