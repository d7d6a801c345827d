package vppsim

import (
	"cmp"
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/gre"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/ipip"
	"go.fd.io/govpp/binapi/vxlan"

	"github.com/keyplane/keyplane/internal/vppwire"
)

// Devices of tunnels. Each has the request that made it, with what VPP filled in.
type (
	vxlanTunnel struct{ q vxlan.VxlanAddDelTunnelV3 }
	greTunnel   struct{ t gre.GreTunnel }
	ipipTunnel  struct{ t ipip.IpipTunnel }
)

func (t vxlanTunnel) gone(w *world, _ *iface) { w.interfaces.release("vxlan", t.q.Instance) }
func (t greTunnel) gone(w *world, _ *iface)   { w.interfaces.release("gre", t.t.Instance) }
func (t ipipTunnel) gone(w *world, _ *iface)  { w.interfaces.release("ipip", t.t.Instance) }

// checkTunnel refuses ends and tables that no tunnel can have.
func (w *world) checkTunnel(src, dst ip_types.Address, table uint32) errno {
	switch {
	case src == dst:
		return api.SAME_SRC_DST
	case w.tables.find(src.Af == ip_types.ADDRESS_IP6, table) == nil:
		return api.NO_SUCH_FIB
	}
	return ok
}

// tunnel makes the interface of a tunnel.
func (w *world) tunnel(i *iface, ethernet bool) interface_types.InterfaceIndex {
	w.create(i)
	if ethernet {
		i.mac = randomMAC(i.index)
	}
	return interface_types.InterfaceIndex(i.index)
}

// upTunnel makes the interface of a tunnel that is up at once, and hidden when it is deleted.
func (w *world) upTunnel(kind, prefix string, i *iface) interface_types.InterfaceIndex {
	if len(w.hidden[kind]) == 0 {
		instance, _ := w.interfaces.instance(kind, false, 0)
		i.name, i.linkMTU, i.mtu = fmt.Sprintf("%s%d", prefix, instance), vxlanMTU, [4]uint32{vxlanMTU}
	}
	i = w.unhide(kind, i)
	w.setFlags(i, adminUp)
	return interface_types.InterfaceIndex(i.index)
}

// multicastBy checks the interface that a tunnel to a group sends by.
func (w *world) multicastBy(dst ip_types.Address, by interface_types.InterfaceIndex) errno {
	if vppwire.Addr(dst).IsMulticast() && w.interfaces.byIndex[uint32(by)] == nil {
		return api.INVALID_SW_IF_INDEX
	}
	return ok
}

// findTunnel finds the interface whose device is.
func findTunnel[D device](w *world, is func(D) bool) *iface {
	for _, i := range w.interfaces.byIndex {
		if d, of := i.device.(D); of && is(d) {
			return i
		}
	}
	return nil
}

func tunnelMessages() []entry {
	type index = interface_types.InterfaceIndex
	return []entry{
		call(func(w *world, q *vxlan.VxlanAddDelTunnelV3, r *vxlan.VxlanAddDelTunnelV3Reply) (e errno) {
			r.SwIfIndex, e = w.changeVXLAN(*q)
			return e
		}),
		call(func(w *world, q *vxlan.VxlanAddDelTunnelV2, r *vxlan.VxlanAddDelTunnelV2Reply) (e errno) {
			r.SwIfIndex, e = w.changeVXLAN(vxlan.VxlanAddDelTunnelV3{
				IsAdd: q.IsAdd, Instance: q.Instance, SrcAddress: q.SrcAddress, DstAddress: q.DstAddress, SrcPort: q.SrcPort, DstPort: q.DstPort,
				McastSwIfIndex: q.McastSwIfIndex, EncapVrfID: q.EncapVrfID, DecapNextIndex: q.DecapNextIndex, Vni: q.Vni,
			})
			return e
		}),
		dump(func(w *world, q *vxlan.VxlanTunnelV2Dump, yield func(vxlan.VxlanTunnelV2Details)) {
			for _, i := range w.interfaces.sorted() {
				t, is := i.device.(vxlanTunnel)
				if !is || uint32(q.SwIfIndex) != none && uint32(q.SwIfIndex) != i.index {
					continue
				}
				yield(vxlan.VxlanTunnelV2Details{
					SwIfIndex: index(i.index), Instance: t.q.Instance, SrcAddress: t.q.SrcAddress, DstAddress: t.q.DstAddress,
					SrcPort: t.q.SrcPort, DstPort: t.q.DstPort, McastSwIfIndex: t.q.McastSwIfIndex, EncapVrfID: t.q.EncapVrfID,
					DecapNextIndex: t.q.DecapNextIndex, Vni: t.q.Vni,
				})
			}
		}),
		call(func(w *world, q *gre.GreTunnelAddDel, r *gre.GreTunnelAddDelReply) (e errno) {
			r.SwIfIndex, e = w.changeGRE(q.IsAdd, q.Tunnel)
			return e
		}),
		dump(func(w *world, q *gre.GreTunnelDump, yield func(gre.GreTunnelDetails)) {
			for _, i := range w.interfaces.sorted() {
				if t, is := i.device.(greTunnel); is && (uint32(q.SwIfIndex) == none || uint32(q.SwIfIndex) == i.index) {
					t.t.SwIfIndex = index(i.index)
					yield(gre.GreTunnelDetails{Tunnel: t.t})
				}
			}
		}),
		call(func(w *world, q *ipip.IpipAddTunnel, r *ipip.IpipAddTunnelReply) (e errno) {
			r.SwIfIndex, e = w.addIPIP(q.Tunnel)
			return e
		}),
		call(func(w *world, q *ipip.IpipDelTunnel, _ *ipip.IpipDelTunnelReply) errno {
			i := w.interfaces.byIndex[uint32(q.SwIfIndex)]
			if i == nil {
				return api.NO_SUCH_ENTRY
			}
			if _, is := i.device.(ipipTunnel); !is {
				return api.NO_SUCH_ENTRY
			}
			w.remove(i)
			return ok
		}),
		dump(func(w *world, q *ipip.IpipTunnelDump, yield func(ipip.IpipTunnelDetails)) {
			for _, i := range w.interfaces.sorted() {
				if t, is := i.device.(ipipTunnel); is && (uint32(q.SwIfIndex) == none || uint32(q.SwIfIndex) == i.index) {
					t.t.SwIfIndex = index(i.index)
					yield(ipip.IpipTunnelDetails{Tunnel: t.t})
				}
			}
		}),
	}
}

const (
	vxlanPort = 4789 // RFC 7348
	vxlanMTU  = 9000
	decapL2   = 1 // the node that what comes out goes to
)

// changeVXLAN: a new one is up at once.
func (w *world) changeVXLAN(q vxlan.VxlanAddDelTunnelV3) (interface_types.InterfaceIndex, errno) {
	refused := interface_types.InterfaceIndex(none)
	there := findTunnel(w, func(t vxlanTunnel) bool {
		return t.q.SrcAddress == q.SrcAddress && t.q.DstAddress == q.DstAddress && t.q.Vni == q.Vni && t.q.EncapVrfID == q.EncapVrfID
	})
	if !q.IsAdd {
		if there == nil {
			return refused, api.NO_SUCH_ENTRY
		}
		w.remove(there)
		return interface_types.InterfaceIndex(there.index), ok
	}
	if q.SrcAddress.Af != q.DstAddress.Af {
		return refused, api.INVALID_VALUE
	}
	if errno := w.checkTunnel(q.SrcAddress, q.DstAddress, q.EncapVrfID); errno != ok {
		return refused, errno
	}
	if errno := w.multicastBy(q.DstAddress, q.McastSwIfIndex); errno != ok {
		return refused, errno
	}
	if there != nil {
		return refused, api.TUNNEL_EXIST
	}
	instance, free := w.interfaces.instance("vxlan", q.Instance != none, q.Instance)
	if !free {
		return refused, api.INSTANCE_IN_USE
	}
	q.Instance, q.SrcPort, q.DstPort = instance, cmp.Or(q.SrcPort, vxlanPort), cmp.Or(q.DstPort, vxlanPort)
	if q.DecapNextIndex == none {
		q.DecapNextIndex = decapL2
	}
	return w.tunnel(&iface{
		name: fmt.Sprintf("vxlan_tunnel%d", instance), devType: "VXLAN", device: vxlanTunnel{q},
		flags: adminUp | linkUp, linkMTU: vxlanMTU, mtu: [4]uint32{vxlanMTU},
	}, true), ok
}

func (w *world) changeGRE(add bool, t gre.GreTunnel) (interface_types.InterfaceIndex, errno) {
	refused := interface_types.InterfaceIndex(none)
	there := findTunnel(w, func(o greTunnel) bool {
		return o.t.Src == t.Src && o.t.Dst == t.Dst && o.t.Type == t.Type && o.t.OuterTableID == t.OuterTableID && o.t.SessionID == t.SessionID
	})
	if !add {
		if there == nil {
			return refused, api.NO_SUCH_ENTRY
		}
		w.remove(there)
		return interface_types.InterfaceIndex(there.index), ok
	}
	if errno := w.checkTunnel(t.Src, t.Dst, t.OuterTableID); errno != ok {
		return refused, errno
	}
	if there != nil {
		return refused, api.IF_ALREADY_EXISTS
	}
	instance, free := w.interfaces.instance("gre", t.Instance != none, t.Instance)
	if !free {
		return refused, api.INSTANCE_IN_USE
	}
	t.Instance = instance
	i := &iface{name: fmt.Sprintf("gre%d", instance), devType: "GRE tunnel device", device: greTunnel{t}, linkMTU: 65512, mtu: [4]uint32{9000}}
	ethernet := t.Type != gre.GRE_API_TUNNEL_TYPE_L3
	if ethernet {
		i.linkMTU = 8998
	}
	return w.tunnel(i, ethernet), ok
}

func (w *world) addIPIP(t ipip.IpipTunnel) (interface_types.InterfaceIndex, errno) {
	refused := interface_types.InterfaceIndex(none)
	if t.Src.Af != t.Dst.Af {
		return refused, api.INVALID_PROTOCOL
	}
	if w.tables.find(t.Src.Af == ip_types.ADDRESS_IP6, t.TableID) == nil {
		return refused, api.NO_SUCH_FIB
	}
	if there := findTunnel(w, func(o ipipTunnel) bool { return o.t.Src == t.Src && o.t.Dst == t.Dst && o.t.TableID == t.TableID }); there != nil {
		return interface_types.InterfaceIndex(there.index), api.IF_ALREADY_EXISTS
	}
	instance, free := w.interfaces.instance("ipip", t.Instance != none, t.Instance)
	if !free {
		return refused, api.INSTANCE_IN_USE
	}
	t.Instance = instance
	return w.tunnel(&iface{
		name: fmt.Sprintf("ipip%d", instance), devType: "IPIP tunnel device", device: ipipTunnel{t}, linkMTU: 65516, mtu: [4]uint32{9000},
	}, false), ok
}
