package vppsim

import (
	"fmt"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vlib"
)

// An rxQueue is a queue that packets are received by.
type rxQueue struct {
	thread uint32 // 0 is the main thread, 1 the first worker
	mode   interface_types.RxMode
}

// receive gives an interface its queues, at least one, all of the main thread.
func (i *iface) receive(queues uint16, mode interface_types.RxMode) {
	i.rx = make([]rxQueue, max(queues, 1))
	for n := range i.rx {
		i.rx[n].mode = mode
	}
}

func rxMessages() []entry {
	type index = interface_types.InterfaceIndex
	return []entry{
		on(func(q *vppif.SwInterfaceSetRxMode) index { return q.SwIfIndex }, setRxMode),
		on(func(q *vppif.SwInterfaceSetRxPlacement) index { return q.SwIfIndex }, setRxPlacement),
		call(func(w *world, _ *vlib.ShowThreads, r *vlib.ShowThreadsReply) errno {
			for id := range w.sim.o.Workers + 1 {
				name := "vpp_main"
				if id > 0 {
					name = fmt.Sprintf("vpp_wk_%d", id-1)
				}
				r.ThreadData = append(r.ThreadData, vlib.ThreadData{ID: id, Name: name})
			}
			return ok
		}),
		dump(func(w *world, q *vppif.SwInterfaceRxPlacementDump, yield func(vppif.SwInterfaceRxPlacementDetails)) {
			for _, i := range w.interfaces.sorted() {
				if uint32(q.SwIfIndex) != none && uint32(q.SwIfIndex) != i.index {
					continue
				}
				for id, queue := range i.rx {
					yield(vppif.SwInterfaceRxPlacementDetails{SwIfIndex: index(i.index), QueueID: uint32(id), WorkerID: queue.thread, Mode: queue.mode})
				}
			}
		}),
	}
}

// setRxMode sets the mode of one queue, or of all there are (VPP interface_cli.c).
func setRxMode(_ *world, i *iface, q *vppif.SwInterfaceSetRxMode, _ *vppif.SwInterfaceSetRxModeReply) errno {
	if i.kind == interface_types.IF_API_TYPE_SUB {
		return api.INVALID_VALUE
	}
	if q.QueueIDValid && q.QueueID >= uint32(len(i.rx)) {
		return api.UNIMPLEMENTED
	}
	if _, is := i.device.(afPacket); is && q.Mode == interface_types.RX_MODE_API_ADAPTIVE {
		return api.UNIMPLEMENTED
	}
	if q.Mode == interface_types.RX_MODE_API_DEFAULT {
		q.Mode = interface_types.RX_MODE_API_POLLING
	}
	for id := range i.rx {
		if !q.QueueIDValid || q.QueueID == uint32(id) {
			i.rx[id].mode = q.Mode
		}
	}
	return ok
}

// setRxPlacement numbers workers from 0, which without workers is the main thread.
func setRxPlacement(w *world, i *iface, q *vppif.SwInterfaceSetRxPlacement, _ *vppif.SwInterfaceSetRxPlacementReply) errno {
	if i.kind == interface_types.IF_API_TYPE_SUB {
		return api.INVALID_VALUE
	}
	thread := q.WorkerID + min(w.sim.o.Workers, 1)
	if q.IsMain {
		thread = 0
	}
	if thread > w.sim.o.Workers || q.QueueID >= uint32(len(i.rx)) {
		return api.UNIMPLEMENTED
	}
	i.rx[q.QueueID].thread = thread
	return ok
}
