package leftovers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.fd.io/govpp/binapi/ethernet_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
)

const (
	// maxFillers is the maximum number of interfaces that Reclaim creates at once.
	maxFillers = 4096
	// toFinish is the time in which a Reclaim ends after its context has ended.
	toFinish = 2 * time.Second
	// maxAbove is the maximum number of them above all indexes that are known. Of free indexes, VPP gives out
	// the one that was freed last first.
	maxAbove = 16
)

// ErrClosed is the error of a Reclaim after Close.
var ErrClosed = errors.New("the agent ends, so no fillers are created")

// Reclaim ends the noted state of indexes without an interface. VPP ends nothing on such an
// index, so each index gets a filler interface, which is deleted afterwards.
//
// The state must not stay for the next interface with the index. VPP 25.10 crashes when a
// neighbour or TEIB entry is added or deleted and an index without an interface has an entry
// of the same address. For the same reason, all free indexes get their fillers before
// any state is ended.
//
// A Reclaim that has begun goes on for a while after ctx has ended: nobody else would delete its
// fillers.
func (r *Registry) Reclaim(ctx context.Context, a conn.API) error {
	r.reclaiming.Lock()
	defer r.reclaiming.Unlock()
	return r.reclaim(ctx, a)
}

// Close waits for the Reclaim that is under way, and prevents others. The connection to VPP ends after it.
func (r *Registry) Close() {
	r.reclaiming.Lock()
	defer r.reclaiming.Unlock()
	r.closed = true
}

// Clear ends the state that others left on an index, which a new interface without a tag
// has. The state of free indexes is ended first, for the reason that Reclaim gives.
func (r *Registry) Clear(ctx context.Context, a conn.API, index uint32) error {
	r.reclaiming.Lock()
	defer r.reclaiming.Unlock()
	if len(r.of(index)) == 0 {
		return nil
	}
	return errors.Join(r.reclaim(ctx, a), r.EndOthers(ctx, index, r.of(index), ""))
}

// reclaim is Reclaim with reclaiming held.
func (r *Registry) reclaim(ctx context.Context, a conn.API) (err error) {
	if r.closed {
		return ErrClosed
	}
	ctx, end := prolonged(ctx)
	defer end()
	all, err := r.withoutFillers(ctx, a)
	if err != nil {
		return err
	}
	free, largest := r.All(), uint32(0)
	for _, d := range all {
		delete(free, uint32(d.SwIfIndex))
		largest = max(largest, uint32(d.SwIfIndex))
	}
	for index := range free {
		largest = max(largest, index)
	}
	if len(free) == 0 {
		return nil
	}
	var fillers []interface_types.InterfaceIndex
	defer func() { err = errors.Join(err, deleteFillers(ctx, a, fillers)) }()
	// VPP gives out free indexes before it makes new ones. A new one may be the first sign that others have
	// taken some, or that VPP keeps an index, as that of a deleted GTPU tunnel.
	for missing, above := len(free), 0; missing > 0 && above < maxAbove && len(fillers) < maxFillers; {
		index, err := r.filler(ctx, a)
		if err != nil {
			return err
		}
		fillers = append(fillers, index)
		if _, wanted := free[uint32(index)]; wanted {
			missing--
		}
		if uint32(index) > largest {
			above++
		}
	}
	var errs []error
	for _, index := range fillers {
		if err := r.EndOthers(ctx, uint32(index), r.of(uint32(index)), ""); err != nil {
			errs = append(errs, fmt.Errorf("state of a deleted interface on sw_if_index %d was not ended: %w", index, err))
		}
	}
	return errors.Join(errs...)
}

// Filling calls do, which may have free indexes taken by fillers: fill creates one. They are deleted afterwards.
func (r *Registry) Filling(ctx context.Context, a conn.API, do func(fill func() error) error) (err error) {
	r.reclaiming.Lock()
	defer r.reclaiming.Unlock()
	if r.closed {
		return ErrClosed
	}
	ctx, end := prolonged(ctx)
	defer end()
	var fillers []interface_types.InterfaceIndex
	defer func() { err = errors.Join(err, deleteFillers(ctx, a, fillers)) }()
	return do(func() error {
		index, err := r.filler(ctx, a)
		if err == nil {
			fillers = append(fillers, index)
		}
		return err
	})
}

// filler creates a filler.
func (r *Registry) filler(ctx context.Context, a conn.API) (interface_types.InterfaceIndex, error) {
	reply := &vppif.CreateLoopbackReply{}
	err := a.Call(ctx, &vppif.CreateLoopback{MacAddress: r.FillerMAC}, reply)
	return reply.SwIfIndex, err
}

// Interfaces returns all interfaces but fillers. Those of an agent that was killed, which nobody else
// would delete, are deleted if clears is true; it waits for a Reclaim that is under way then.
func (r *Registry) Interfaces(ctx context.Context, a conn.API, clears bool) ([]vppif.SwInterfaceDetails, error) {
	all, err := dump(ctx, a)
	if err != nil || !slices.ContainsFunc(all, r.isFiller) {
		return all, err
	}
	if !clears {
		return slices.DeleteFunc(all, r.isFiller), nil
	}
	r.reclaiming.Lock()
	defer r.reclaiming.Unlock()
	return r.withoutFillers(ctx, a)
}

// withoutFillers is Interfaces with reclaiming held: all fillers are those of another agent.
func (r *Registry) withoutFillers(ctx context.Context, a conn.API) ([]vppif.SwInterfaceDetails, error) {
	all, err := dump(ctx, a)
	if err != nil {
		return nil, err
	}
	var fillers []interface_types.InterfaceIndex
	for _, d := range all {
		if r.isFiller(d) {
			fillers = append(fillers, d.SwIfIndex)
		}
	}
	return slices.DeleteFunc(all, r.isFiller), deleteFillers(ctx, a, fillers)
}

// isFiller tells whether an interface is a filler of this agent, or of an earlier one.
func (r *Registry) isFiller(d vppif.SwInterfaceDetails) bool {
	return d.Tag == "" && d.L2Address == r.FillerMAC && r.FillerMAC != ethernet_types.MacAddress{}
}

func dump(ctx context.Context, a conn.API) ([]vppif.SwInterfaceDetails, error) {
	return conn.Dump[vppif.SwInterfaceDetails](ctx, a, &vppif.SwInterfaceDump{SwIfIndex: ifindex.All})
}

// prolonged returns a context that ends some time after ctx.
func prolonged(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(toFinish, end) })
	return longer, func() {
		stop()
		end()
	}
}

// deleteFillers deletes them in reverse order. VPP reuses the index that was freed
// last, so it gives out the indexes in the same order as before.
func deleteFillers(ctx context.Context, a conn.API, fillers []interface_types.InterfaceIndex) error {
	var errs []error
	for _, index := range slices.Backward(fillers) {
		errs = append(errs, a.Call(ctx, &vppif.DeleteLoopback{SwIfIndex: index}, &vppif.DeleteLoopbackReply{}))
	}
	return errors.Join(errs...)
}
