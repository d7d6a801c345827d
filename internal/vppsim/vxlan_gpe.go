package vppsim

import (
	"cmp"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vxlan_gpe"
)

// A gpeTunnel is the device of a VXLAN-GPE tunnel: the request that made it.
type gpeTunnel struct {
	q vxlan_gpe.VxlanGpeAddDelTunnelV2
}

func (gpeTunnel) gone(*world, *iface) {}

const (
	gpePort = 4790 // RFC draft-ietf-nvo3-vxlan-gpe
	gpeIP4  = 1    // what is inside: IPv4
)

func vxlanGPEMessages() []entry {
	return []entry{
		call(func(w *world, q *vxlan_gpe.VxlanGpeAddDelTunnelV2, r *vxlan_gpe.VxlanGpeAddDelTunnelV2Reply) (e errno) {
			r.SwIfIndex, e = w.changeGPE(*q)
			return e
		}),
		dump(func(w *world, q *vxlan_gpe.VxlanGpeTunnelV2Dump, yield func(vxlan_gpe.VxlanGpeTunnelV2Details)) {
			for _, i := range w.interfaces.sorted() {
				t, is := i.device.(gpeTunnel)
				if !is || uint32(q.SwIfIndex) != none && uint32(q.SwIfIndex) != i.index {
					continue
				}
				yield(vxlan_gpe.VxlanGpeTunnelV2Details{
					SwIfIndex: interface_types.InterfaceIndex(i.index), Local: t.q.Local, Remote: t.q.Remote, LocalPort: t.q.LocalPort, RemotePort: t.q.RemotePort,
					Vni: t.q.Vni, Protocol: t.q.Protocol, McastSwIfIndex: t.q.McastSwIfIndex, EncapVrfID: t.q.EncapVrfID, DecapVrfID: t.q.DecapVrfID,
				})
			}
		}),
	}
}

// changeGPE looks for tables of IPv4 only, and for that of what is inside only if that is
// IPv4 (VPP vxlan_gpe_api.c).
func (w *world) changeGPE(q vxlan_gpe.VxlanGpeAddDelTunnelV2) (interface_types.InterfaceIndex, errno) {
	refused := interface_types.InterfaceIndex(none)
	switch {
	case w.tables.find(false, q.EncapVrfID) == nil:
		return refused, api.NO_SUCH_FIB
	case q.Protocol == gpeIP4 && w.tables.find(false, q.DecapVrfID) == nil:
		return refused, api.NO_SUCH_INNER_FIB
	case q.Local == q.Remote:
		return refused, api.SAME_SRC_DST
	}
	q.LocalPort, q.RemotePort = cmp.Or(q.LocalPort, gpePort), cmp.Or(q.RemotePort, gpePort)
	there := findTunnel(w, func(t gpeTunnel) bool {
		return t.q.Local == q.Local && t.q.Remote == q.Remote && t.q.Vni == q.Vni && t.q.LocalPort == q.LocalPort
	})
	if !q.IsAdd {
		if there == nil {
			return refused, api.NO_SUCH_ENTRY
		}
		w.hide("gpe", there)
		return interface_types.InterfaceIndex(there.index), ok
	}
	if there != nil {
		return refused, api.TUNNEL_EXIST
	}
	return w.upTunnel("gpe", "vxlan_gpe_tunnel", &iface{devType: "VXLAN_GPE", device: gpeTunnel{q}}), ok
}
