package vppsim

import (
	"cmp"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/gtpu"
	"go.fd.io/govpp/binapi/interface_types"
)

// A gtpuTunnel is the device of a GTPU tunnel: the request that made it.
type gtpuTunnel struct{ q gtpu.GtpuAddDelTunnel }

func (gtpuTunnel) gone(*world, *iface) {}

// mostDecapNext is the last node that what comes out of a GTPU tunnel can go to (VPP gtpu.api).
const mostDecapNext = uint32(gtpu.GTPU_API_DECAP_NEXT_IP6)

func gtpuMessages() []entry {
	return []entry{
		call(func(w *world, q *gtpu.GtpuAddDelTunnel, r *gtpu.GtpuAddDelTunnelReply) (e errno) {
			r.SwIfIndex, e = w.changeGTPU(*q)
			return e
		}),
		dump(func(w *world, q *gtpu.GtpuTunnelDump, yield func(gtpu.GtpuTunnelDetails)) {
			for _, i := range w.interfaces.sorted() {
				t, is := i.device.(gtpuTunnel)
				if !is || uint32(q.SwIfIndex) != none && uint32(q.SwIfIndex) != i.index {
					continue
				}
				yield(gtpu.GtpuTunnelDetails{
					SwIfIndex: interface_types.InterfaceIndex(i.index), SrcAddress: t.q.SrcAddress, DstAddress: t.q.DstAddress, McastSwIfIndex: t.q.McastSwIfIndex,
					EncapVrfID: t.q.EncapVrfID, DecapNextIndex: t.q.DecapNextIndex, Teid: t.q.Teid, Tteid: t.q.Tteid,
				})
			}
		}),
	}
}

// changeGTPU: a tunnel is known by its other end and its own TEID (VPP gtpu.c).
func (w *world) changeGTPU(q gtpu.GtpuAddDelTunnel) (interface_types.InterfaceIndex, errno) {
	refused := interface_types.InterfaceIndex(none)
	errno := w.checkTunnel(q.SrcAddress, q.DstAddress, q.EncapVrfID)
	if errno == ok {
		errno = w.multicastBy(q.DstAddress, q.McastSwIfIndex)
	}
	if errno != ok {
		return refused, errno
	}
	there := findTunnel(w, func(t gtpuTunnel) bool { return t.q.DstAddress == q.DstAddress && t.q.Teid == q.Teid })
	if !q.IsAdd {
		if there == nil {
			return refused, api.NO_SUCH_ENTRY
		}
		w.hide("gtpu", there)
		return interface_types.InterfaceIndex(there.index), ok
	}
	if there != nil {
		return refused, api.TUNNEL_EXIST
	}
	if q.DecapNextIndex == none {
		q.DecapNextIndex = decapL2
	}
	if q.DecapNextIndex > mostDecapNext {
		return refused, api.INVALID_DECAP_NEXT
	}
	q.Tteid = cmp.Or(q.Tteid, q.Teid)
	return w.upTunnel("gtpu", "gtpu_tunnel", &iface{devType: "GTPU", device: gtpuTunnel{q}}), ok
}
