// Package vmxnet3 simulates VPP's plugin for VMware's PCI devices. A device exists at
// every PCI address here. The address identifies the interface and is part of its name.
package vmxnet3

import (
	"cmp"
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vmxnet3"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// A device is the device of an interface: the request that created it.
type device struct{ request vmxnet3.Vmxnet3Create }

// Sizes of queues (VPP vmxnet3.c, vmxnet3_queue_size_valid). A size is a multiple of the
// smallest one.
const (
	defaultRing = 1024
	minRing     = 64
	maxRing     = 4096
)

type plugin struct{ vpp *core.VPP }

type index = interface_types.InterfaceIndex

// New adds the plugin. Deleting any other interface is refused with INVALID_SW_IF_INDEX.
func New(vpp *core.VPP) {
	p := plugin{vpp}
	vpp.Register(core.Plugin{Messages: []core.Message{
		core.Call(func(q *vmxnet3.Vmxnet3Create, r *vmxnet3.Vmxnet3CreateReply) (e core.Errno) {
			r.SwIfIndex, e = p.create(*q)
			return e
		}),
		core.Call(func(q *vmxnet3.Vmxnet3Delete, _ *vmxnet3.Vmxnet3DeleteReply) core.Errno {
			return core.Delete[device](vpp, q.SwIfIndex, api.INVALID_SW_IF_INDEX)
		}),
		core.Dump(func(q *vmxnet3.SwVmxnet3InterfaceDump, yield func(vmxnet3.SwVmxnet3InterfaceDetails)) {
			for i, d := range core.Each[device](vpp, q.SwIfIndex) {
				yield(d.details(i))
			}
		}),
	}})
}

// details shows one receive and one transmit queue. The lists of the message have a
// fixed length, so unused queues are there with zeros.
func (d device) details(i *core.Interface) vmxnet3.SwVmxnet3InterfaceDetails {
	out := vmxnet3.SwVmxnet3InterfaceDetails{
		SwIfIndex: index(i.Index), IfName: i.Name, HwAddr: i.MAC, PciAddr: d.request.PciAddr,
		AdminUpDown: i.IsUp(), RxCount: 1, TxCount: 1,
	}
	for n := range out.RxList {
		out.RxList[n] = vmxnet3.Vmxnet3RxList{RxFill: make([]uint16, 2), RxProduce: make([]uint16, 2), RxConsume: make([]uint16, 2)}
	}
	out.RxList[0].RxQsize, out.TxList[0].TxQsize = d.request.RxqSize, d.request.TxqSize
	return out
}

// create names the interface after its PCI address in hexadecimal: domain, bus, slot and
// function.
func (p plugin) create(q vmxnet3.Vmxnet3Create) (index, core.Errno) {
	refused := index(core.None)
	q.RxqSize, q.TxqSize = cmp.Or(q.RxqSize, defaultRing), cmp.Or(q.TxqSize, defaultRing)
	for _, size := range []uint16{q.RxqSize, q.TxqSize} {
		if size < minRing || size > maxRing || size%minRing != 0 {
			return refused, api.INVALID_VALUE
		}
	}
	if core.Find(p.vpp, func(d device) bool { return d.request.PciAddr == q.PciAddr }) != nil {
		return refused, api.INVALID_VALUE
	}
	pci := q.PciAddr
	i := &core.Interface{
		Name:    fmt.Sprintf("vmxnet3-%x/%x/%x/%x", pci&0xffff, pci>>16&0xff, pci>>24&0x1f, pci>>29),
		DevType: "VMXNET3 interface", Device: device{q}, LinkMTU: 9000, MTU: [4]uint32{9000},
	}
	i.Receive(q.RxqNum, interface_types.RX_MODE_API_POLLING)
	p.vpp.Create(i)
	i.MAC = core.RandomMAC(i.Index)
	return index(i.Index), core.OK
}
