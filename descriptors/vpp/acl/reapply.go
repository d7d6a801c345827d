package acl

import (
	"context"
	"errors"
	"slices"

	"go.fd.io/govpp/api"
	vppacl "go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/layer2"
)

// reapply takes lists off an interface and applies them again, if VPP lists them but does not look at
// them in layer 2: the interface has left layer 2, by this agent or by somebody else. The lists of
// others are applied again, too. What VPP does look at is not touched, so no packet passes meanwhile.
func (h *handler) reapply(ctx context.Context, index interface_types.InterfaceIndex) error {
	if !h.API.Has(&vppacl.ACLInterfaceListDump{}, &vppacl.MacipACLInterfaceListDump{}) {
		return nil
	}
	end, err := h.attached.at(index).begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	lists, err := h.applied(ctx, index)
	if err != nil {
		return err
	}
	hosts, err := conn.Dump[vppacl.MacipACLInterfaceListDetails](ctx, h.API, &vppacl.MacipACLInterfaceListDump{SwIfIndex: index})
	lists = slices.DeleteFunc(lists, func(d vppacl.ACLInterfaceListDetails) bool { return d.SwIfIndex != index || len(d.Acls) == 0 })
	hosts = slices.DeleteFunc(hosts, func(d vppacl.MacipACLInterfaceListDetails) bool { return d.SwIfIndex != index || len(d.Acls) == 0 })
	if err != nil || len(lists)+len(hosts) == 0 {
		return err
	}
	features, err := layer2.Of(ctx, h.API, index)
	if err != nil {
		return err
	}
	for _, d := range lists {
		if isForgotten(d, features) {
			err = errors.Join(err, h.reapplyIP(ctx, d))
		}
	}
	if len(hosts) > 0 && !features.Has(layer2.Hosts) {
		err = errors.Join(err, h.reapplyMACIP(ctx, hosts))
	}
	return err
}

// isForgotten reports whether VPP does not look at the IP lists of a direction.
func isForgotten(d vppacl.ACLInterfaceListDetails, features layer2.Features) bool {
	in, out := d.NInput > 0, len(d.Acls) > int(d.NInput)
	return in && !features.Has(layer2.ListsIn) || out && !features.Has(layer2.ListsOut)
}

// reapplyIP applies the IP lists again. VPP notices only a change from none to some. Both requests
// are sent at once, so that the interface has no lists for as short as possible.
func (h *handler) reapplyIP(ctx context.Context, d vppacl.ACLInterfaceListDetails) error {
	err := h.API.Batch(ctx,
		conn.Ask(&vppacl.ACLInterfaceSetACLList{SwIfIndex: d.SwIfIndex}, &vppacl.ACLInterfaceSetACLListReply{}),
		conn.Ask(&vppacl.ACLInterfaceSetACLList{SwIfIndex: d.SwIfIndex, NInput: d.NInput, Acls: d.Acls}, &vppacl.ACLInterfaceSetACLListReply{}))
	if errors.Is(err, api.NO_SUCH_ENTRY) {
		err = h.applyExisting(ctx, d.SwIfIndex, d.Acls[:d.NInput], d.Acls[d.NInput:])
	}
	return err
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
func (h *handler) reapplyMACIP(ctx context.Context, all []vppacl.MacipACLInterfaceListDetails) error {
	for _, d := range all {
		for _, list := range d.Acls {
			request := &vppacl.MacipACLInterfaceAddDel{IsAdd: true, SwIfIndex: d.SwIfIndex, ACLIndex: list}
			err := h.API.Call(ctx, request, &vppacl.MacipACLInterfaceAddDelReply{})
			// A list that was deleted meanwhile is on no interface.
			if err != nil && !errors.Is(err, api.NO_SUCH_ENTRY) {
				return err
			}
		}
	}
	return nil
}
