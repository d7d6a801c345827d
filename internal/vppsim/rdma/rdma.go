// Package rdma simulates VPP's plugin for RDMA devices. Every link of the host counts as
// an RDMA device here.
package rdma

import (
	"cmp"
	"net"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/rdma"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// A device is the device of an interface on an RDMA device. No message reads its
// parameters back.
type device struct{}

// minRing is the smallest size of a queue (VPP rdma/device.c, VLIB_FRAME_SIZE). A size is
// a power of two.
const minRing = 256

type plugin struct{ vpp *core.VPP }

// New adds the plugin. Versions 3 and 4 of the creation have the same fields. There is no dump.
func New(vpp *core.VPP) {
	p := plugin{vpp}
	vpp.Register(core.Plugin{Messages: []core.Message{
		core.Call(func(q *rdma.RdmaCreateV4, r *rdma.RdmaCreateV4Reply) (e core.Errno) {
			r.SwIfIndex, e = p.create(*q)
			return e
		}),
		core.Call(func(q *rdma.RdmaCreateV3, r *rdma.RdmaCreateV3Reply) (e core.Errno) {
			r.SwIfIndex, e = p.create(rdma.RdmaCreateV4(*q))
			return e
		}),
		core.Call(func(q *rdma.RdmaDelete, _ *rdma.RdmaDeleteReply) core.Errno {
			return core.Delete[device](vpp, q.SwIfIndex, api.INVALID_INTERFACE)
		}),
	}})
}

// create makes an interface with a random MAC address. Its name defaults to that of the
// link behind "rdma-".
func (p plugin) create(q rdma.RdmaCreateV4) (interface_types.InterfaceIndex, core.Errno) {
	refused := interface_types.InterfaceIndex(core.None)
	for _, size := range []uint16{q.RxqSize, q.TxqSize} {
		if size != 0 && (size < minRing || size&(size-1) != 0) {
			return refused, api.INVALID_VALUE
		}
	}
	if _, err := net.InterfaceByName(q.HostIf); err != nil {
		return refused, api.INVALID_INTERFACE
	}
	i := &core.Interface{
		Name: cmp.Or(q.Name, "rdma-"+q.HostIf), DevType: "RDMA interface", Device: device{}, LinkMTU: 9000, MTU: [4]uint32{9000},
	}
	i.Receive(q.RxqNum, interface_types.RX_MODE_API_POLLING)
	p.vpp.Create(i)
	i.MAC = core.RandomMAC(i.Index)
	return interface_types.InterfaceIndex(i.Index), core.OK
}
