package kinds

import (
	"cmp"
	"context"
	"errors"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/rdma"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// rdmaRing is the default size of RDMA queues (VPP rdma/device.c).
const rdmaRing = 1024

// rdmaKind is the kind of RDMA. VPP shares the host link with Linux. VPP takes the name of
// the value as its own name, which marks the interface.
func rdmaKind() Kind {
	return Kind{
		Link:     "rdma",
		Validate: validateRDMA,
		SameLink: func(old, new *interfaces.Interface) bool { return rdmaOf(old) == rdmaOf(new) },
		Dependencies: func(v *interfaces.Interface) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: "rdma-host-interface-exists", Key: hostLink + v.GetRdma().GetHostIfName()}}
		},
		Create: createRDMA,
		Marked: byName,
		Delete: func(ctx context.Context, e *Env, _ *interfaces.Interface, meta ifindex.Meta) error {
			return ignoreMissing(e.API.Call(ctx, &rdma.RdmaDelete{SwIfIndex: meta.SwIfIndex()}, &rdma.RdmaDeleteReply{}))
		},
		Retrieve: retrieveRDMAs,
	}
}

// validateRDMA checks the link and the mode.
func validateRDMA(f *Findings, v *interfaces.Interface) {
	r := v.GetRdma()
	if r.GetHostIfName() == "" {
		f.Add("rdma.host_if_name", "", "a link of the host")
	}
	f.hostName("rdma.host_if_name", r.GetHostIfName())
	if interfaces.RDMALink_Mode_name[int32(r.GetMode())] == "" {
		f.Add("rdma.mode", int32(r.GetMode()), "AUTO, IBV or DV")
	}
}

// An rdmaLink is a link with all defaults filled in.
type rdmaLink struct {
	host       string
	mode       interfaces.RDMALink_Mode
	num        uint16
	rxqs, txqs uint16
}

// rdmaOf fills in VPP's defaults.
func rdmaOf(v *interfaces.Interface) rdmaLink {
	r := v.GetRdma()
	return rdmaLink{
		r.GetHostIfName(), r.GetMode(), uint16(max(r.GetRxqNum(), 1)),
		uint16(cmp.Or(r.GetRxqSize(), rdmaRing)), uint16(cmp.Or(r.GetTxqSize(), rdmaRing)),
	}
}

// createRDMA passes modes unchanged: VPP and the model number them in the same way.
func createRDMA(ctx context.Context, e *Env, v *interfaces.Interface) (uint32, error) {
	r := rdmaOf(v)
	q := rdma.RdmaCreateV3{HostIf: r.host, Name: v.GetName(), RxqNum: r.num, RxqSize: r.rxqs, TxqSize: r.txqs, Mode: rdma.RdmaMode(r.mode)}
	newest := rdma.RdmaCreateV4(q)
	request, err := e.API.First(&newest, &q)
	if err != nil {
		return 0, err
	}
	if _, newer := request.(*rdma.RdmaCreateV4); newer {
		reply := &rdma.RdmaCreateV4Reply{}
		err = e.API.Call(ctx, request, reply)
		return uint32(reply.SwIfIndex), err
	}
	reply := &rdma.RdmaCreateV3Reply{}
	err = e.API.Call(ctx, request, reply)
	return uint32(reply.SwIfIndex), err
}

// ignoreMissing returns err unless it means that no interface of the kind has the index.
func ignoreMissing(err error) error {
	if errors.Is(err, api.INVALID_INTERFACE) {
		return nil
	}
	return err
}

// retrieveRDMAs takes the link from the desired value, as VPP lists nothing of it.
func retrieveRDMAs(_ context.Context, _ *Env, all map[uint32]*Found) error {
	for _, f := range all {
		if f.Details.InterfaceDevType == "RDMA interface" {
			f.Value.Type, f.Value.Link = interfaces.Interface_RDMA, &interfaces.Interface_Rdma{Rdma: cmp.Or(f.Desired.GetRdma(), &interfaces.RDMALink{})}
		}
	}
	return nil
}
