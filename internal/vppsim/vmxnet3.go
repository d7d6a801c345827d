package vppsim

import (
	"cmp"
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vmxnet3"
)

// A vmxnet3Device is the device of an interface on a PCI device of VMware's. Here one is
// at every PCI address.
type vmxnet3Device struct{ q vmxnet3.Vmxnet3Create }

func (vmxnet3Device) gone(*world, *iface) {}

// Sizes of queues (VPP vmxnet3.c, vmxnet3_queue_size_valid).
const (
	vmxnet3Ring  = 1024
	leastVmxnet3 = 64
	mostVmxnet3  = 4096
)

func vmxnet3Messages() []entry {
	return []entry{
		call(func(w *world, q *vmxnet3.Vmxnet3Create, r *vmxnet3.Vmxnet3CreateReply) (e errno) {
			r.SwIfIndex, e = w.createVmxnet3(*q)
			return e
		}),
		on(func(q *vmxnet3.Vmxnet3Delete) interface_types.InterfaceIndex { return q.SwIfIndex },
			func(w *world, i *iface, _ *vmxnet3.Vmxnet3Delete, _ *vmxnet3.Vmxnet3DeleteReply) errno {
				if _, is := i.device.(vmxnet3Device); !is {
					return api.INVALID_SW_IF_INDEX
				}
				w.remove(i)
				return ok
			}),
		dump(func(w *world, q *vmxnet3.SwVmxnet3InterfaceDump, yield func(vmxnet3.SwVmxnet3InterfaceDetails)) {
			for _, i := range w.interfaces.sorted() {
				if d, is := i.device.(vmxnet3Device); is && (uint32(q.SwIfIndex) == none || uint32(q.SwIfIndex) == i.index) {
					yield(d.details(i))
				}
			}
		}),
	}
}

func (d vmxnet3Device) details(i *iface) vmxnet3.SwVmxnet3InterfaceDetails {
	out := vmxnet3.SwVmxnet3InterfaceDetails{
		SwIfIndex: interface_types.InterfaceIndex(i.index), IfName: i.name, HwAddr: i.mac, PciAddr: d.q.PciAddr,
		AdminUpDown: i.flags&adminUp != 0, RxCount: 1, TxCount: 1,
	}
	for n := range out.RxList { // lists of a fixed length in the message
		out.RxList[n] = vmxnet3.Vmxnet3RxList{RxFill: make([]uint16, 2), RxProduce: make([]uint16, 2), RxConsume: make([]uint16, 2)}
	}
	out.RxList[0].RxQsize, out.TxList[0].TxQsize = d.q.RxqSize, d.q.TxqSize
	return out
}

// createVmxnet3 names the interface after its PCI address, in hexadecimal.
func (w *world) createVmxnet3(q vmxnet3.Vmxnet3Create) (interface_types.InterfaceIndex, errno) {
	refused := interface_types.InterfaceIndex(none)
	q.RxqSize, q.TxqSize = cmp.Or(q.RxqSize, vmxnet3Ring), cmp.Or(q.TxqSize, vmxnet3Ring)
	for _, size := range []uint16{q.RxqSize, q.TxqSize} {
		if size < leastVmxnet3 || size > mostVmxnet3 || size%leastVmxnet3 != 0 {
			return refused, api.INVALID_VALUE
		}
	}
	if findTunnel(w, func(d vmxnet3Device) bool { return d.q.PciAddr == q.PciAddr }) != nil {
		return refused, api.INVALID_VALUE
	}
	p := q.PciAddr
	i := &iface{
		name:    fmt.Sprintf("vmxnet3-%x/%x/%x/%x", p&0xffff, p>>16&0xff, p>>24&0x1f, p>>29),
		devType: "VMXNET3 interface", device: vmxnet3Device{q}, linkMTU: 9000, mtu: [4]uint32{9000},
	}
	i.receive(q.RxqNum, interface_types.RX_MODE_API_POLLING)
	w.create(i)
	i.mac = randomMAC(i.index)
	return interface_types.InterfaceIndex(i.index), ok
}
