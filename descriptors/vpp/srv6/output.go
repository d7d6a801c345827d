package srv6

import (
	"context"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/sr"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
)

// output makes the local SIDs anew that send frames out of an interface (End.DX2). From 26.06 on,
// VPP sends them as layer 2 does, and drops them after the interface has left layer 2, until a SID is
// made (VPP l2_input.c, set_int_l2_mode, and sr_localsid.c, sr_cli_localsid). Older releases show the
// VLAN with which the SID was made, and do not lose it.
func (h *handler) output(ctx context.Context, index interface_types.InterfaceIndex) error {
	all, err := conn.Dump[sr.SrLocalsidsDetails](ctx, h.API, &sr.SrLocalsidsDump{})
	if err != nil {
		return err
	}
	var steps []*conn.Step
	for _, d := range all {
		if d.Behavior != behaviorDX2 || d.XconnectIfaceOrVrfTable != uint32(index) || d.VlanIndex == noVLAN {
			continue
		}
		add := sr.SrLocalsidAddDel{Localsid: d.Addr, FibTable: d.FibTable, Behavior: d.Behavior, SwIfIndex: index, VlanIndex: noVLAN}
		end := add
		end.IsDel = true
		steps = append(steps, conn.Ask(&end, &sr.SrLocalsidAddDelReply{}), conn.Ask(&add, &sr.SrLocalsidAddDelReply{}))
	}
	if len(steps) == 0 {
		return nil
	}
	return h.API.Batch(ctx, steps...)
}
