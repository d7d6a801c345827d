package l2

import (
	"context"
	"errors"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	vppl2 "go.fd.io/govpp/binapi/l2"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
)

// leaveL2 asks what has an interface leave layer 2. VPP forgets then how the tags of its
// packets are rewritten, so that is put back, of a sub-interface: another one has it from
// who had its index before.
func (h *handler) leaveL2(ctx context.Context, index interface_types.InterfaceIndex, request, reply api.Message) error {
	before, err := conn.Dump[vppif.SwInterfaceDetails](ctx, h.API, &vppif.SwInterfaceDump{SwIfIndex: index})
	if err != nil {
		return err
	}
	if err := h.API.Call(ctx, request, reply); err != nil {
		return err
	}
	for _, d := range before {
		if d.SwIfIndex != index || d.Type != interface_types.IF_API_TYPE_SUB || d.VtrOp == 0 {
			continue // index 0 stands for all
		}
		err := h.API.Call(ctx, &vppl2.L2InterfaceVlanTagRewrite{
			SwIfIndex: index, VtrOp: d.VtrOp, PushDot1q: d.VtrPushDot1q, Tag1: d.VtrTag1, Tag2: d.VtrTag2,
		}, &vppl2.L2InterfaceVlanTagRewriteReply{})
		if err != nil && !errors.Is(err, api.INVALID_VLAN_TAG_COUNT) { // that: it makes sense in layer 2 alone
			return err
		}
	}
	return nil
}
