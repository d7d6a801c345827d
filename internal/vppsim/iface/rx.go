package iface

import (
	"fmt"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// queues registers the messages about receive queues and threads. Loopbacks and tunnels
// have no receive queue, and the dump does not list them.
func (p plugin) queues() {
	p.vpp.Register(core.Plugin{Messages: []core.Message{
		core.On(p.vpp, func(q *vppif.SwInterfaceSetRxMode) index { return q.SwIfIndex }, setRxMode),
		core.On(p.vpp, func(q *vppif.SwInterfaceSetRxPlacement) index { return q.SwIfIndex }, p.setRxPlacement),
		core.Dump(p.dumpQueues),
		core.Call(p.showThreads),
	}})
}

// showThreads lists the main thread as number 0 and the workers from 1.
func (p plugin) showThreads(_ *vlib.ShowThreads, r *vlib.ShowThreadsReply) core.Errno {
	for id := range p.vpp.Options.Workers + 1 {
		name := "vpp_main"
		if id > 0 {
			name = fmt.Sprintf("vpp_wk_%d", id-1)
		}
		r.ThreadData = append(r.ThreadData, vlib.ThreadData{ID: id, Name: name})
	}
	return core.OK
}

// dumpQueues lists each queue. Its WorkerID is the thread number, so 1 is the first
// worker; see setRxPlacement.
func (p plugin) dumpQueues(q *vppif.SwInterfaceRxPlacementDump, yield func(vppif.SwInterfaceRxPlacementDetails)) {
	for _, i := range p.vpp.Interfaces() {
		if uint32(q.SwIfIndex) != core.None && uint32(q.SwIfIndex) != i.Index {
			continue
		}
		for id, queue := range i.RX {
			yield(vppif.SwInterfaceRxPlacementDetails{
				SwIfIndex: index(i.Index), QueueID: uint32(id), WorkerID: queue.Thread, Mode: queue.Mode,
			})
		}
	}
}

// setRxMode sets the mode of one queue, or of all queues (VPP interface_cli.c). It
// succeeds for an interface without queues. The default mode is polling.
func setRxMode(i *core.Interface, q *vppif.SwInterfaceSetRxMode, _ *vppif.SwInterfaceSetRxModeReply) core.Errno {
	switch {
	case i.IsSub():
		return api.INVALID_VALUE
	case q.QueueIDValid && q.QueueID >= uint32(len(i.RX)):
		return api.UNIMPLEMENTED
	case i.NoAdaptive && q.Mode == interface_types.RX_MODE_API_ADAPTIVE:
		return api.UNIMPLEMENTED
	}
	if q.Mode == interface_types.RX_MODE_API_DEFAULT {
		q.Mode = interface_types.RX_MODE_API_POLLING
	}
	for id := range i.RX {
		if !q.QueueIDValid || q.QueueID == uint32(id) {
			i.RX[id].Mode = q.Mode
		}
	}
	return core.OK
}

// setRxPlacement moves a queue to a thread. In the request workers count from 0, while the
// dump counts threads. Without workers number 0 is the main thread.
func (p plugin) setRxPlacement(
	i *core.Interface, q *vppif.SwInterfaceSetRxPlacement, _ *vppif.SwInterfaceSetRxPlacementReply,
) core.Errno {
	if i.IsSub() {
		return api.INVALID_VALUE
	}
	thread := q.WorkerID + min(p.vpp.Options.Workers, 1)
	if q.IsMain {
		thread = 0
	}
	if thread > p.vpp.Options.Workers || q.QueueID >= uint32(len(i.RX)) {
		return api.UNIMPLEMENTED
	}
	i.RX[q.QueueID].Thread = thread
	return core.OK
}
