package iface

import (
	"context"
	"errors"
	"fmt"
	"slices"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
)

// mostPlaceholders is how many interfaces Reclaim makes at once, at most.
const mostPlaceholders = 4096

// Reclaim ends all that is noted on indexes that no interface has. VPP ends nothing on such an index,
// so each of them gets an interface for a moment, which is deleted afterwards. It must not be left
// to whoever gets the index next: VPP 25.10 dies when a neighbour or TEIB entry comes or goes whose
// address is also that of one on such an index. For the same reason all indexes get their
// interface before anything is ended.
func (r *Remains) Reclaim(ctx context.Context, a conn.API) error {
	r.reclaiming.Lock()
	defer r.reclaiming.Unlock()
	return r.reclaim(ctx, a)
}

// Clear ends what others have left on an index, which an interface without a name has now. What is
// left on indexes that no interface has is ended before, for the reason that Reclaim gives.
func (r *Remains) Clear(ctx context.Context, a conn.API, index uint32) error {
	r.reclaiming.Lock()
	defer r.reclaiming.Unlock()
	if len(r.of(index)) == 0 {
		return nil
	}
	return errors.Join(r.reclaim(ctx, a), r.sweep(ctx, index, r.of(index), ""))
}

// reclaim is Reclaim with reclaiming held.
func (r *Remains) reclaim(ctx context.Context, a conn.API) (err error) {
	all, err := conn.Dump[vppif.SwInterfaceDetails](ctx, a, &vppif.SwInterfaceDump{SwIfIndex: ifindex.All})
	if err != nil {
		return err
	}
	dead, largest := r.all(), uint32(0)
	for _, d := range all {
		delete(dead, uint32(d.SwIfIndex))
		largest = max(largest, uint32(d.SwIfIndex))
	}
	for index := range dead {
		largest = max(largest, index)
	}
	if len(dead) == 0 {
		return nil
	}
	var made []interface_types.InterfaceIndex
	defer func() { err = errors.Join(err, deletePlaceholders(ctx, a, made)) }()
	// VPP gives out indexes that are free before it makes new ones.
	for missing := len(dead); missing > 0 && len(made) < mostPlaceholders; {
		reply := &vppif.CreateLoopbackReply{}
		if err := a.Call(ctx, &vppif.CreateLoopback{}, reply); err != nil {
			return err
		}
		made = append(made, reply.SwIfIndex)
		if _, was := dead[uint32(reply.SwIfIndex)]; was {
			missing--
		}
		if uint32(reply.SwIfIndex) > largest {
			break // somebody else has got what is missing
		}
	}
	var errs []error
	for _, index := range made {
		if err := r.sweep(ctx, uint32(index), r.of(uint32(index)), ""); err != nil {
			errs = append(errs, fmt.Errorf("ending what is left on sw_if_index %d: %w", index, err))
		}
	}
	return errors.Join(errs...)
}

// deletePlaceholders deletes them in such an order that VPP gives out their indexes as before.
func deletePlaceholders(ctx context.Context, a conn.API, made []interface_types.InterfaceIndex) error {
	var errs []error
	for _, index := range slices.Backward(made) {
		errs = append(errs, a.Call(ctx, &vppif.DeleteLoopback{SwIfIndex: index}, &vppif.DeleteLoopbackReply{}))
	}
	return errors.Join(errs...)
}
