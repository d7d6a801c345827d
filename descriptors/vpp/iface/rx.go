package iface

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/events"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// rx checks the receive modes and placements.
func (f *findings) rx(v *interfaces.Interface) {
	modes, placements := map[int64]int{}, map[uint32]int{}
	for i, m := range v.GetRxModes() {
		field := fmt.Sprintf("rx_modes[%d].", i)
		f.rxMode(field+"mode", v.GetType(), m.GetMode())
		switch first, twice := modes[queueOf(m)]; {
		case twice && m.GetDefaultMode():
			f.Add(field+"default_mode", true, "one default, it is also rx_modes[%d]", first)
		case twice:
			f.Add(field+"queue", m.GetQueue(), "each queue once, it is also rx_modes[%d]", first)
		}
		modes[queueOf(m)] = i
	}
	for i, p := range v.GetRxPlacements() {
		if first, twice := placements[p.GetQueue()]; twice {
			f.Add(fmt.Sprintf("rx_placements[%d].queue", i), p.GetQueue(), "each queue once, it is also rx_placements[%d]", first)
		}
		placements[p.GetQueue()] = i
	}
}

// rxMode checks a mode. VPP polls the queues of DPDK devices.
func (f *findings) rxMode(field string, of interfaces.Interface_Type, mode interfaces.Interface_RxMode_Type) {
	switch {
	case mode == interfaces.Interface_RxMode_UNKNOWN || interfaces.Interface_RxMode_Type_name[int32(mode)] == "":
		f.Add(field, mode.String(), "POLLING, INTERRUPT, ADAPTIVE or DEFAULT")
	case of == interfaces.Interface_DPDK && mode != interfaces.Interface_RxMode_POLLING && mode != interfaces.Interface_RxMode_DEFAULT:
		f.Add(field, mode.String(), "POLLING or DEFAULT, as the type is DPDK")
	}
}

// allQueues stands for all queues without a mode of their own.
const allQueues = -1

// queueOf returns the queue of a mode, or allQueues for the default mode.
func queueOf(m *interfaces.Interface_RxMode) int64 {
	if m.GetDefaultMode() {
		return allQueues
	}
	return int64(m.GetQueue())
}

// rxParts returns the values for the receive queues: one with all modes, and one per
// placement.
func rxParts(v *interfaces.Interface) (out []scheduler.KeyValue) {
	if len(v.GetRxModes()) > 0 {
		modes := &interfaces.Interface{Name: v.GetName(), Type: v.GetType(), RxModes: v.GetRxModes()}
		out = append(out, scheduler.KeyValue{Key: keys.Interface(v.GetName()).RxModes(), Value: modes})
	}
	for _, p := range v.GetRxPlacements() {
		out = append(out, scheduler.KeyValue{Key: keys.Interface(v.GetName()).RxPlacement(p.GetQueue()), Value: p})
	}
	return out
}

// linkIsUpDependency exists because VPP sets up the queues of an interface when its link
// goes up.
func linkIsUpDependency(name string) []scheduler.Dependency {
	return []scheduler.Dependency{{Label: "interface-link-is-UP", Key: keys.Interface(name).LinkState(true)}}
}

// rxModeDescriptor sets the modes of all queues of an interface as one value, because the
// mode of all queues overwrites those of single ones.
func (h *handler) rxModeDescriptor() scheduler.Descriptor[*interfaces.Interface, struct{}] {
	return scheduler.Descriptor[*interfaces.Interface, struct{}]{
		Name:   RxModeName,
		Prefix: keys.Parts,
		Match:  func(key string) bool { _, ok := keys.ParseRxModes(key); return ok },

		Equivalent: func(_ string, old, new *interfaces.Interface) bool { return maps.Equal(modesOf(old), modesOf(new)) },
		Dependencies: func(key string, _ *interfaces.Interface) []scheduler.Dependency {
			name, _ := keys.ParseRxModes(key)
			return linkIsUpDependency(name)
		},
		Create: func(ctx context.Context, _ string, v *interfaces.Interface) (struct{}, error) {
			// Before the request: if its answer is lost, the modes may be set, and must be
			// read.
			h.rememberRx(v.GetName(), v.GetRxModes())
			return struct{}{}, h.setRxModes(ctx, v, v.GetRxModes())
		},
		Update: func(ctx context.Context, _ string, old, new *interfaces.Interface, _ struct{}) (struct{}, error) {
			if leavesQueues(old, new) {
				if err := h.resetRxModes(ctx, new); err != nil {
					return struct{}{}, err
				}
			}
			h.rememberRx(new.GetName(), new.GetRxModes())
			return struct{}{}, h.setRxModes(ctx, new, new.GetRxModes())
		},
		Delete: func(ctx context.Context, _ string, v *interfaces.Interface, _ struct{}) error {
			err := h.resetRxModes(ctx, v)
			if err != nil && !errors.Is(err, kinds.ErrNotThere) && !errors.Is(err, api.INVALID_SW_IF_INDEX) {
				return err
			}
			h.rememberRx(v.GetName(), nil)
			return nil
		},
	}
}

// rememberRx stores the modes that were set on an interface. VPP does not list which modes
// were set and which are defaults.
func (h *handler) rememberRx(name string, modes []*interfaces.Interface_RxMode) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.rxModes == nil {
		h.rxModes = map[string][]*interfaces.Interface_RxMode{}
	}
	if h.rxModes[name] = modes; modes == nil {
		delete(h.rxModes, name)
	}
}

// rxDesired returns the declared modes and placements of a found interface. If no modes
// are declared, it returns the modes that were set.
func (h *handler) rxDesired(f *kinds.Found) *interfaces.Interface {
	if len(f.Desired.GetRxModes()) > 0 {
		return f.Desired
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return &interfaces.Interface{Type: f.Value.GetType(), RxModes: h.rxModes[f.Value.GetName()], RxPlacements: f.Desired.GetRxPlacements()}
}

// modesOf returns the modes by queue.
func modesOf(v *interfaces.Interface) map[int64]interfaces.Interface_RxMode_Type {
	out := map[int64]interfaces.Interface_RxMode_Type{}
	for _, m := range v.GetRxModes() {
		out[queueOf(m)] = m.GetMode()
	}
	return out
}

// leavesQueues tells whether a queue has a mode in old and none in new.
func leavesQueues(old, new *interfaces.Interface) bool {
	left := modesOf(new)
	if _, all := left[allQueues]; all {
		return false
	}
	for queue := range modesOf(old) {
		if _, has := left[queue]; !has {
			return true
		}
	}
	return false
}

// resetRxModes sets all queues to the default of the type. For AF_PACKET that is
// INTERRUPT, and VPP takes DEFAULT for POLLING.
func (h *handler) resetRxModes(ctx context.Context, v *interfaces.Interface) error {
	own := interfaces.Interface_RxMode_DEFAULT
	if v.GetType() == interfaces.Interface_AF_PACKET {
		own = interfaces.Interface_RxMode_INTERRUPT
	}
	return h.setRxModes(ctx, v, []*interfaces.Interface_RxMode{{DefaultMode: true, Mode: own}})
}

// setRxModes sets the mode of all queues before the modes of single queues, which it would
// overwrite. VPP and the model number the modes in the same way.
func (h *handler) setRxModes(ctx context.Context, v *interfaces.Interface, modes []*interfaces.Interface_RxMode) error {
	meta, ok := h.index.Get(v.GetName())
	if !ok {
		return kinds.NotThere(v.GetName())
	}
	for _, ofAll := range []bool{true, false} {
		for _, m := range modes {
			if m.GetDefaultMode() != ofAll {
				continue
			}
			err := h.API.Call(ctx, &vppif.SwInterfaceSetRxMode{
				SwIfIndex: meta.SwIfIndex(), QueueIDValid: !ofAll, QueueID: m.GetQueue(), Mode: interface_types.RxMode(m.GetMode()),
			}, &vppif.SwInterfaceSetRxModeReply{})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// rxPlacementDescriptor binds one queue to a thread. Workers are numbered from 0, without
// the main thread.
func (h *handler) rxPlacementDescriptor() scheduler.Descriptor[*interfaces.Interface_RxPlacement, struct{}] {
	return scheduler.Descriptor[*interfaces.Interface_RxPlacement, struct{}]{
		Name:   RxPlaceName,
		Prefix: keys.Parts,
		Match:  func(key string) bool { _, _, ok := keys.ParseRxPlacement(key); return ok },

		Equivalent: func(_ string, old, new *interfaces.Interface_RxPlacement) bool {
			return old.GetMainThread() == new.GetMainThread() && (new.GetMainThread() || old.GetWorker() == new.GetWorker())
		},
		Dependencies: func(key string, _ *interfaces.Interface_RxPlacement) []scheduler.Dependency {
			name, _, _ := keys.ParseRxPlacement(key)
			return linkIsUpDependency(name)
		},
		Create: func(ctx context.Context, key string, v *interfaces.Interface_RxPlacement) (struct{}, error) {
			return struct{}{}, h.setPlacement(ctx, key, v)
		},
		Update: func(ctx context.Context, key string, _, v *interfaces.Interface_RxPlacement, _ struct{}) (struct{}, error) {
			return struct{}{}, h.setPlacement(ctx, key, v)
		},
		// A queue always has a thread, so there is nothing to undo.
		Delete: func(context.Context, string, *interfaces.Interface_RxPlacement, struct{}) error { return nil },
	}
}

// setPlacement sends the thread of a queue. VPP refuses a worker that it does not have.
func (h *handler) setPlacement(ctx context.Context, key string, v *interfaces.Interface_RxPlacement) error {
	name, queue, _ := keys.ParseRxPlacement(key)
	meta, ok := h.index.Get(name)
	if !ok {
		return kinds.NotThere(name)
	}
	return h.API.Call(ctx, &vppif.SwInterfaceSetRxPlacement{
		SwIfIndex: meta.SwIfIndex(), QueueID: queue, WorkerID: v.GetWorker(), IsMain: v.GetMainThread(),
	}, &vppif.SwInterfaceSetRxPlacementReply{})
}

// rxQueues are the queues of one interface.
type rxQueues []vppif.SwInterfaceRxPlacementDetails

// readRx fills in modes and placements of interfaces that declare some. While a link is
// down, these values are pending and are not read.
func (h *handler) readRx(ctx context.Context, all map[uint32]*kinds.Found) error {
	words, asked := map[uint32]*interfaces.Interface{}, map[uint32]rxQueues{} // by index
	for index, f := range all {
		w := h.rxDesired(f)
		if events.LinkIsUp(f.Details.Flags) && len(w.GetRxModes())+len(w.GetRxPlacements()) > 0 {
			words[index], asked[index] = w, nil
		}
	}
	if len(asked) == 0 {
		return nil
	}
	details, err := conn.Dump[vppif.SwInterfaceRxPlacementDetails](ctx, h.API, &vppif.SwInterfaceRxPlacementDump{SwIfIndex: ifindex.All})
	for _, d := range details {
		if queues, is := asked[uint32(d.SwIfIndex)]; is {
			asked[uint32(d.SwIfIndex)] = append(queues, d)
		}
	}
	// A VPP without workers runs all queues on its main thread, whatever was requested.
	threads := &vlib.ShowThreadsReply{}
	if err == nil {
		err = h.API.Call(ctx, &vlib.ShowThreads{}, threads)
	}
	for index, queues := range asked {
		v := all[index].Value
		v.RxModes, v.RxPlacements = queues.modesAs(words[index]), queues.placementsAs(words[index], len(threads.ThreadData) > 1)
	}
	return err
}

// modesAs returns the modes in the form that v declares. VPP has no default mode. It is
// the common mode of all queues without a declared mode.
func (queues rxQueues) modesAs(v *interfaces.Interface) (out []*interfaces.Interface_RxMode) {
	own, of := modesOf(v), map[int64]rxQueues{}
	for _, d := range queues {
		of[int64(d.QueueID)] = append(of[int64(d.QueueID)], d)
		if _, has := own[int64(d.QueueID)]; !has {
			of[allQueues] = append(of[allQueues], d)
		}
	}
	for _, m := range v.GetRxModes() {
		its := of[queueOf(m)]
		if len(its) == 0 && !m.GetDefaultMode() {
			continue
		}
		out = append(out, &interfaces.Interface_RxMode{Queue: m.GetQueue(), DefaultMode: m.GetDefaultMode(), Mode: its.modeAs(m.GetMode())})
	}
	return out
}

// modeAs returns the first mode that differs from wanted, or wanted. VPP does not list the
// mode that DEFAULT stands for, so DEFAULT matches every mode.
func (queues rxQueues) modeAs(wanted interfaces.Interface_RxMode_Type) interfaces.Interface_RxMode_Type {
	for _, d := range queues {
		if is := interfaces.Interface_RxMode_Type(d.Mode); is != wanted && wanted != interfaces.Interface_RxMode_DEFAULT {
			return is
		}
	}
	return wanted
}

// placementsAs returns the threads of the queues that v places. VPP numbers the main
// thread as 0. Without workers it is treated as the first worker.
func (queues rxQueues) placementsAs(v *interfaces.Interface, workers bool) (out []*interfaces.Interface_RxPlacement) {
	of := map[uint32]rxQueues{}
	for _, d := range queues {
		of[d.QueueID] = append(of[d.QueueID], d)
	}
	for _, p := range v.GetRxPlacements() {
		for _, d := range of[p.GetQueue()] {
			isMain := d.WorkerID == 0 && (workers || p.GetMainThread() || p.GetWorker() != 0)
			out = append(out, &interfaces.Interface_RxPlacement{Queue: d.QueueID, MainThread: isMain, Worker: max(d.WorkerID, 1) - 1})
		}
	}
	return out
}
