package vppsim

import (
	"cmp"
	"net"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/rdma"
)

// An rdmaDevice is the device of an interface on an RDMA device of the host. Here each link
// of the host is one.
type rdmaDevice struct{}

func (rdmaDevice) gone(*world, *iface) {}

// leastRDMARing is the fewest entries of a queue (VPP rdma/device.c, VLIB_FRAME_SIZE).
const leastRDMARing = 256

func rdmaMessages() []entry {
	return []entry{
		call(func(w *world, q *rdma.RdmaCreateV4, r *rdma.RdmaCreateV4Reply) (e errno) {
			r.SwIfIndex, e = w.createRDMA(*q)
			return e
		}),
		call(func(w *world, q *rdma.RdmaCreateV3, r *rdma.RdmaCreateV3Reply) (e errno) {
			r.SwIfIndex, e = w.createRDMA(rdma.RdmaCreateV4(*q))
			return e
		}),
		call(func(w *world, q *rdma.RdmaDelete, _ *rdma.RdmaDeleteReply) errno {
			i := w.interfaces.byIndex[uint32(q.SwIfIndex)]
			if i == nil || i.device != (rdmaDevice{}) {
				return api.INVALID_INTERFACE
			}
			w.remove(i)
			return ok
		}),
	}
}

func (w *world) createRDMA(q rdma.RdmaCreateV4) (interface_types.InterfaceIndex, errno) {
	refused := interface_types.InterfaceIndex(none)
	for _, size := range []uint16{q.RxqSize, q.TxqSize} {
		if size != 0 && (size < leastRDMARing || size&(size-1) != 0) {
			return refused, api.INVALID_VALUE
		}
	}
	if _, err := net.InterfaceByName(q.HostIf); err != nil {
		return refused, api.INVALID_INTERFACE
	}
	i := &iface{name: cmp.Or(q.Name, "rdma-"+q.HostIf), devType: "RDMA interface", device: rdmaDevice{}, linkMTU: 9000, mtu: [4]uint32{9000}}
	i.receive(q.RxqNum, interface_types.RX_MODE_API_POLLING)
	w.create(i)
	i.mac = randomMAC(i.index)
	return interface_types.InterfaceIndex(i.index), ok
}
