package acl

import (
	"context"
	"errors"
	"slices"

	"go.fd.io/govpp/api"
	vppacl "go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
)

// reapply takes all lists off an interface that has left layer 2, and applies them again. VPP then
// goes on to list them, and would not look at them when the interface comes back to a bridge domain
// (VPP l2_input.c, set_int_l2_mode). The lists of others are applied again, too.
func (h *handler) reapply(ctx context.Context, index interface_types.InterfaceIndex) error {
	if !h.API.Has(&vppacl.ACLInterfaceListDump{}, &vppacl.MacipACLInterfaceListDump{}) {
		return nil
	}
	end, err := h.attached.at(index).begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return errors.Join(h.reapplyIP(ctx, index), h.reapplyMACIP(ctx, index))
}

// reapplyIP applies the IP lists again. VPP notices only a change from none to some. Both requests
// are sent at once, so that the interface has no lists for as short as possible.
func (h *handler) reapplyIP(ctx context.Context, index interface_types.InterfaceIndex) error {
	all, err := h.applied(ctx, index)
	if err != nil {
		return err
	}
	for _, d := range all {
		if d.SwIfIndex != index || len(d.Acls) == 0 {
			continue
		}
		err := h.API.Batch(ctx,
			conn.Ask(&vppacl.ACLInterfaceSetACLList{SwIfIndex: index}, &vppacl.ACLInterfaceSetACLListReply{}),
			conn.Ask(&vppacl.ACLInterfaceSetACLList{SwIfIndex: index, NInput: d.NInput, Acls: d.Acls}, &vppacl.ACLInterfaceSetACLListReply{}))
		if errors.Is(err, api.NO_SUCH_ENTRY) {
			err = h.applyExisting(ctx, index, d.Acls[:d.NInput], d.Acls[d.NInput:])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// applyExisting applies those of some lists that exist. VPP refuses all if somebody else has
// deleted one.
func (h *handler) applyExisting(ctx context.Context, index interface_types.InterfaceIndex, in, out []uint32) error {
	exists, err := h.existingLists(ctx)
	if err != nil {
		return err
	}
	gone := func(list uint32) bool { return !exists[list] }
	return h.apply(ctx, index, slices.DeleteFunc(in, gone), slices.DeleteFunc(slices.Clone(out), gone))
}

// reapplyMACIP applies the MACIP list again. VPP takes it off before by itself.
func (h *handler) reapplyMACIP(ctx context.Context, index interface_types.InterfaceIndex) error {
	all, err := conn.Dump[vppacl.MacipACLInterfaceListDetails](ctx, h.API, &vppacl.MacipACLInterfaceListDump{SwIfIndex: index})
	if err != nil {
		return err
	}
	for _, d := range all {
		for _, list := range d.Acls {
			if d.SwIfIndex != index {
				continue
			}
			request := &vppacl.MacipACLInterfaceAddDel{IsAdd: true, SwIfIndex: index, ACLIndex: list}
			err := h.API.Call(ctx, request, &vppacl.MacipACLInterfaceAddDelReply{})
			// A list that was deleted meanwhile is on no interface.
			if err != nil && !errors.Is(err, api.NO_SUCH_ENTRY) {
				return err
			}
		}
	}
	return nil
}
