package abf

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.fd.io/govpp/api"
	vppabf "go.fd.io/govpp/binapi/abf"
	"go.fd.io/govpp/binapi/fib_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
)

// find returns a policy as VPP has it, or nil.
func (h *handler) find(ctx context.Context, id uint32) (*vppabf.AbfPolicy, error) {
	all, err := conn.Dump[vppabf.AbfPolicyDetails](ctx, h.API, &vppabf.AbfPolicyDump{})
	for _, d := range all {
		if d.Policy.PolicyID == id {
			return &d.Policy, err
		}
	}
	return nil, err
}

// remove removes a policy as VPP has it. If one of its interfaces was deleted, its paths are removed while
// another interface has the index for a moment.
func (h *handler) remove(ctx context.Context, id uint32) error {
	has, err := h.find(ctx, id)
	if err != nil || has == nil {
		return err
	}
	names, err := h.existing(ctx, true)
	if err != nil {
		return err
	}
	if h.noteLost(*has, names) {
		if err := h.Interfaces.Leftovers().Reclaim(ctx, h.API); err != nil {
			return err
		}
		if has, err = h.find(ctx, id); err != nil || has == nil {
			return err
		}
	}
	return h.removePaths(ctx, *has, has.Paths)
}

// removePaths removes paths of a policy. Before the last ones it ends all attachments.
func (h *handler) removePaths(ctx context.Context, has vppabf.AbfPolicy, paths []fib_types.FibPath) error {
	if len(paths) == len(has.Paths) {
		all, err := conn.Dump[vppabf.AbfItfAttachDetails](ctx, h.API, &vppabf.AbfItfAttachDump{})
		if err != nil {
			return err
		}
		for _, d := range all {
			if d.Attach.PolicyID != has.PolicyID {
				continue
			}
			// They stay known: the policy gets them again if it is made again.
			if err := h.setAttachment(ctx, d.Attach, false); err != nil && !errors.Is(err, api.NO_SUCH_ENTRY) {
				return err
			}
		}
	}
	has.Paths = paths
	return h.API.Call(ctx, &vppabf.AbfPolicyAddDel{Policy: has}, &vppabf.AbfPolicyAddDelReply{})
}

// noteLost notes the paths of a policy by none of these interfaces as leftovers, and reports whether there
// are any.
func (h *handler) noteLost(has vppabf.AbfPolicy, existing map[uint32]string) (lost bool) {
	for _, p := range has.Paths {
		if _, exists := existing[p.SwIfIndex]; p.SwIfIndex != noInterface && !exists {
			lost = true
			h.Interfaces.Leftovers().Note(p.SwIfIndex, "", fmt.Sprint("paths of policy ", has.PolicyID), h.endLost(has.PolicyID))
		}
	}
	return lost
}

// noInterface is the index of a path that names no interface.
const noInterface = ^uint32(0)

// endLost returns the removal of the paths of a policy that a deleted interface has left on an index, which
// another one has now. The policy goes with its last path.
func (h *handler) endLost(id uint32) func(context.Context, interface_types.InterfaceIndex) error {
	return func(ctx context.Context, at interface_types.InterfaceIndex) error {
		has, err := h.find(ctx, id)
		if err != nil || has == nil {
			return err
		}
		isLost := func(p fib_types.FibPath) bool { return p.SwIfIndex == uint32(at) }
		rest := *has
		rest.Paths = slices.DeleteFunc(slices.Clone(has.Paths), isLost)
		// A filler that the registry holds for an index counts as an interface here.
		links, err := conn.Dump[vppif.SwInterfaceDetails](ctx, h.API, &vppif.SwInterfaceDump{SwIfIndex: ifindex.All})
		if err != nil {
			return err
		}
		if h.noteLost(rest, named(links, nil)) {
			return fmt.Errorf("policy %d lost another interface meanwhile; its paths are removed later", id)
		}
		gone := slices.DeleteFunc(slices.Clone(has.Paths), func(p fib_types.FibPath) bool { return !isLost(p) })
		if len(gone) == 0 {
			return nil
		}
		return h.removePaths(ctx, *has, gone)
	}
}
