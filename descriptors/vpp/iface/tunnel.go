package iface

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/gre"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/ipip"
	"go.fd.io/govpp/binapi/tunnel_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// end checks an end of a tunnel.
func (f *findings) end(field, text string) netip.Addr {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		f.Add(field, text, `an address, such as "10.0.0.1" or "fd00::1"`)
	}
	return a
}

// own checks the end of a tunnel that is here.
func (f *findings) own(field, text string) netip.Addr {
	a := f.end(field, text)
	if a.IsMulticast() {
		f.Add(field, text, "an address of this host, not of a group")
	}
	return a
}

// ends checks both ends: of one IP version, and different.
func (f *findings) ends(link, srcField, src, dstField, dst string) {
	a, b := f.own(link+"."+srcField, src), f.end(link+"."+dstField, dst)
	switch {
	case !a.IsValid() || !b.IsValid():
	case a == b:
		f.Add(link+"."+dstField, dst, "another address than %s", srcField)
	case a.Is4() != b.Is4():
		f.Add(link+"."+dstField, dst, "an address of the same IP version as %s", srcField)
	}
}

// tunnelVersions is of which IP version a tunnel between these ends is in its VRF.
func tunnelVersions(src, dst string) (ipv4, ipv6 bool) {
	a, _ := netip.ParseAddr(src)
	b, _ := netip.ParseAddr(dst)
	ipv6 = !a.Is4() && !b.Is4()
	return !ipv6, ipv6
}

// tableDependency is on the table of a tunnel, unless that is the one that is always there.
func tableDependency(label string, id uint32, ipv6 bool) []scheduler.Dependency {
	if id == 0 {
		return nil
	}
	return []scheduler.Dependency{{Label: label, Key: keys.VRFTable(id, ipv6)}}
}

// sameEnd compares addresses, however they are spelled.
func sameEnd(a, b string) bool {
	p, errP := netip.ParseAddr(a)
	q, errQ := netip.ParseAddr(b)
	return a == b || errP == nil && errQ == nil && p == q
}

func wireAddress(text string) ip_types.Address {
	a, err := netip.ParseAddr(text)
	if err != nil {
		return ip_types.Address{}
	}
	return vppwire.Address(a)
}

// addressText is an address of a message as the value spells it.
func addressText(a ip_types.Address, wanted string) string {
	if text := vppwire.Addr(a).String(); !sameEnd(text, wanted) {
		return text
	}
	return wanted
}

// unlessTunnelGone is err, unless it says that what is to be deleted is not there.
func unlessTunnelGone(err error) error {
	if errors.Is(err, api.NO_SUCH_ENTRY) {
		return nil
	}
	return err
}

// greKind is the kind of GRE_TUNNEL.
func greKind() kind {
	return kind{
		link:  "gre",
		noMAC: true,
		validate: func(f *findings, v *interfaces.Interface) {
			g := v.GetGre()
			if g.GetTunnelType() == interfaces.GreLink_UNKNOWN || interfaces.GreLink_Type_name[int32(g.GetTunnelType())] == "" {
				f.Add("gre.tunnel_type", g.GetTunnelType().String(), "L3, TEB or ERSPAN")
			}
			if g.GetSessionId() > 1<<10-1 {
				f.Add("gre.session_id", g.GetSessionId(), "at most 1023")
			}
			f.ends("gre", "src_addr", g.GetSrcAddr(), "dst_addr", g.GetDstAddr())
		},
		sameLink: func(old, new *interfaces.Interface) bool {
			return wireGRE(old.GetGre()) == wireGRE(new.GetGre())
		},
		dependencies: func(v *interfaces.Interface) []scheduler.Dependency {
			_, ipv6 := tunnelVersions(v.GetGre().GetSrcAddr(), v.GetGre().GetDstAddr())
			return tableDependency("vrf-table-for-gre-exists", v.GetGre().GetOuterFibId(), ipv6)
		},
		create: func(ctx context.Context, h *handler, v *interfaces.Interface) (uint32, error) {
			reply := &gre.GreTunnelAddDelReply{}
			err := h.API.Call(ctx, &gre.GreTunnelAddDel{IsAdd: true, Tunnel: wireGRE(v.GetGre())}, reply)
			return uint32(reply.SwIfIndex), err
		},
		delete: func(ctx context.Context, h *handler, v *interfaces.Interface, _ Meta) error {
			return unlessTunnelGone(h.API.Call(ctx, &gre.GreTunnelAddDel{Tunnel: wireGRE(v.GetGre())}, &gre.GreTunnelAddDelReply{}))
		},
		retrieve: retrieveGREs,
	}
}

// wireGRE numbers the types from 0; the model does from 1.
func wireGRE(g *interfaces.GreLink) gre.GreTunnel {
	return gre.GreTunnel{
		Type: gre.GreTunnelType(g.GetTunnelType() - interfaces.GreLink_L3), Mode: tunnel_types.TUNNEL_API_MODE_P2P,
		SessionID: uint16(g.GetSessionId()), Instance: ^uint32(0), OuterTableID: g.GetOuterFibId(),
		SwIfIndex: ifindex.All, Src: wireAddress(g.GetSrcAddr()), Dst: wireAddress(g.GetDstAddr()),
	}
}

func retrieveGREs(ctx context.Context, h *handler, all map[uint32]*found) error {
	if !anyOf(all, "GRE tunnel device") {
		return nil
	}
	details, err := conn.Dump[gre.GreTunnelDetails](ctx, h.API, &gre.GreTunnelDump{SwIfIndex: ifindex.All})
	for _, d := range details {
		f := all[uint32(d.Tunnel.SwIfIndex)]
		if f == nil {
			continue
		}
		w := f.wanted.GetGre()
		f.value.Type, f.value.Link = interfaces.Interface_GRE_TUNNEL, &interfaces.Interface_Gre{Gre: &interfaces.GreLink{
			TunnelType: interfaces.GreLink_Type(d.Tunnel.Type) + interfaces.GreLink_L3,
			SrcAddr:    addressText(d.Tunnel.Src, w.GetSrcAddr()), DstAddr: addressText(d.Tunnel.Dst, w.GetDstAddr()),
			OuterFibId: d.Tunnel.OuterTableID, SessionId: uint32(d.Tunnel.SessionID),
		}}
	}
	return err
}

// anyOf tells whether there are interfaces of that sort at all: VPP without the plugin has
// no message to ask for them.
func anyOf(all map[uint32]*found, devType string) bool {
	return slices.ContainsFunc(sorted(all), func(f *found) bool { return f.details.InterfaceDevType == devType })
}

// ipipKind is the kind of IPIP_TUNNEL.
func ipipKind() kind {
	return kind{
		link:  "ipip",
		noMAC: true,
		validate: func(f *findings, v *interfaces.Interface) {
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
		sameLink: func(old, new *interfaces.Interface) bool {
			a, b := old.GetIpip(), new.GetIpip()
			return a.GetTunnelMode() == b.GetTunnelMode() && sameEnd(a.GetSrcAddr(), b.GetSrcAddr()) && sameEnd(a.GetDstAddr(), b.GetDstAddr())
		},
		recreate: func(old, new *interfaces.Interface) bool { return old.GetVrf() != new.GetVrf() },
		dependencies: func(v *interfaces.Interface) []scheduler.Dependency {
			_, ipv6 := tunnelVersions(v.GetIpip().GetSrcAddr(), v.GetIpip().GetDstAddr())
			return tableDependency("vrf-table-for-ipip-exists", v.GetVrf(), ipv6)
		},
		versions: func(v *interfaces.Interface) (bool, bool) {
			return tunnelVersions(v.GetIpip().GetSrcAddr(), v.GetIpip().GetDstAddr())
		},
		create: createIPIP,
		delete: func(ctx context.Context, h *handler, _ *interfaces.Interface, meta Meta) error {
			return unlessTunnelGone(h.API.Call(ctx, &ipip.IpipDelTunnel{SwIfIndex: meta.SwIfIndex()}, &ipip.IpipDelTunnelReply{}))
		},
		retrieve: retrieveIPIPs,
	}
}

// createIPIP: a tunnel to many has no other end, of the IP version of its own.
func createIPIP(ctx context.Context, h *handler, v *interfaces.Interface) (uint32, error) {
	p := v.GetIpip()
	t := ipip.IpipTunnel{Instance: ^uint32(0), SwIfIndex: ifindex.All, TableID: v.GetVrf(), Src: wireAddress(p.GetSrcAddr()), Dst: wireAddress(p.GetDstAddr())}
	if t.Dst.Af = t.Src.Af; p.GetTunnelMode() == interfaces.IPIPLink_POINT_TO_MULTIPOINT {
		t.Mode = tunnel_types.TUNNEL_API_MODE_MP
	}
	reply := &ipip.IpipAddTunnelReply{}
	err := h.API.Call(ctx, &ipip.IpipAddTunnel{Tunnel: t}, reply)
	return uint32(reply.SwIfIndex), err
}

func retrieveIPIPs(ctx context.Context, h *handler, all map[uint32]*found) error {
	if !anyOf(all, "IPIP tunnel device") {
		return nil
	}
	details, err := conn.Dump[ipip.IpipTunnelDetails](ctx, h.API, &ipip.IpipTunnelDump{SwIfIndex: ifindex.All})
	for _, d := range details {
		f := all[uint32(d.Tunnel.SwIfIndex)]
		if f == nil {
			continue
		}
		w := f.wanted.GetIpip()
		link := &interfaces.IPIPLink{SrcAddr: addressText(d.Tunnel.Src, w.GetSrcAddr())}
		if to := vppwire.Addr(d.Tunnel.Dst); !to.IsUnspecified() {
			link.DstAddr = addressText(d.Tunnel.Dst, w.GetDstAddr())
		}
		if d.Tunnel.Mode == tunnel_types.TUNNEL_API_MODE_MP {
			link.TunnelMode = interfaces.IPIPLink_POINT_TO_MULTIPOINT
		}
		f.value.Vrf = d.Tunnel.TableID
		f.value.Type, f.value.Link = interfaces.Interface_IPIP_TUNNEL, &interfaces.Interface_Ipip{Ipip: link}
	}
	return err
}
