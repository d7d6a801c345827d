package kinds

import (
	"cmp"
	"context"
	"fmt"

	"go.fd.io/govpp/binapi/vmxnet3"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// vmxnet3Ring is the default size of a queue of a VMXNET3 interface (VPP vmxnet3.c).
const vmxnet3Ring = 1024

// vmxnet3Kind is the kind of VMXNET3_INTERFACE. Its name has the PCI address of the
// device, as VPP's own name does.
func vmxnet3Kind() Kind {
	return Kind{
		Link: "vmx_net3",
		Validate: func(f *Findings, v *interfaces.Interface) {
			if _, err := pciAddress(v.GetName()); err != nil {
				f.Add("name", v.GetName(), `the PCI address of the device in hexadecimal, such as "vmxnet3-0/b/0/0" (domain, bus, slot, function)`)
			}
		},
		SameLink: func(old, new *interfaces.Interface) bool {
			a, b := old.GetVmxNet3(), new.GetVmxNet3()
			return cmp.Or(a.GetRxqSize(), vmxnet3Ring) == cmp.Or(b.GetRxqSize(), vmxnet3Ring) &&
				cmp.Or(a.GetTxqSize(), vmxnet3Ring) == cmp.Or(b.GetTxqSize(), vmxnet3Ring)
		},
		Create: createVmxnet3,
		Marked: byName,
		Delete: func(ctx context.Context, e *Env, _ *interfaces.Interface, meta ifindex.Meta) error {
			return ignoreMissing(e.API.Call(ctx, &vmxnet3.Vmxnet3Delete{SwIfIndex: meta.SwIfIndex()}, &vmxnet3.Vmxnet3DeleteReply{}))
		},
		Retrieve: retrieveVmxnet3s,
	}
}

// pciAddress returns the PCI address in a name, packed as in VPP (vlib/pci/pci.h,
// vlib_pci_addr_t). The line feed in the format makes the scan fail on text behind the
// address.
func pciAddress(name string) (uint32, error) {
	var domain uint16
	var bus, slot, function uint8
	n, err := fmt.Sscanf(name+"\n", "vmxnet3-%x/%x/%x/%x\n", &domain, &bus, &slot, &function)
	if err != nil || n != 4 || slot > 1<<5-1 || function > 1<<3-1 {
		return 0, fmt.Errorf("%s: no PCI address", name)
	}
	return uint32(domain) | uint32(bus)<<16 | uint32(slot)<<24 | uint32(function)<<29, nil
}

// createVmxnet3 attaches VPP to the device at the PCI address in the name.
func createVmxnet3(ctx context.Context, e *Env, v *interfaces.Interface) (uint32, error) {
	address, err := pciAddress(v.GetName())
	if err != nil {
		return 0, err
	}
	link := v.GetVmxNet3()
	request := &vmxnet3.Vmxnet3Create{PciAddr: address, RxqSize: uint16(link.GetRxqSize()), TxqSize: uint16(link.GetTxqSize())}
	if link.GetEnableElog() {
		request.EnableElog = 1
	}
	reply := &vmxnet3.Vmxnet3CreateReply{}
	err = e.API.Call(ctx, request, reply)
	return uint32(reply.SwIfIndex), err
}

// retrieveVmxnet3s takes the logging of events from the desired value, as VPP does not
// list it.
func retrieveVmxnet3s(ctx context.Context, e *Env, all map[uint32]*Found) error {
	if !anyOf(all, "VMXNET3 interface") {
		return nil
	}
	details, err := conn.Dump[vmxnet3.SwVmxnet3InterfaceDetails](ctx, e.API, &vmxnet3.SwVmxnet3InterfaceDump{SwIfIndex: ifindex.All})
	for _, d := range details {
		if f := all[uint32(d.SwIfIndex)]; f != nil {
			f.PCI = d.PciAddr
			f.Value.Type, f.Value.Link = interfaces.Interface_VMXNET3_INTERFACE, &interfaces.Interface_VmxNet3{VmxNet3: &interfaces.VmxNet3Link{
				EnableElog: f.Desired.GetVmxNet3().GetEnableElog(), RxqSize: uint32(d.RxList[0].RxQsize), TxqSize: uint32(d.TxList[0].TxQsize),
			}}
		}
	}
	return err
}
