package kinds

import (
	"context"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// loopbackKind is the kind of SOFTWARE_LOOPBACK. VPP chooses the name, so the MAC address
// carries the mark of the value.
func loopbackKind() Kind {
	return Kind{
		Marked: byMAC,
		Create: func(ctx context.Context, e *Env, v *interfaces.Interface) (uint32, error) {
			reply := &vppif.CreateLoopbackReply{}
			err := e.API.Call(ctx, &vppif.CreateLoopback{MacAddress: e.MarkMAC(v)}, reply)
			return uint32(reply.SwIfIndex), err
		},
		Delete: func(ctx context.Context, e *Env, _ *interfaces.Interface, meta ifindex.Meta) error {
			return e.API.Call(ctx, &vppif.DeleteLoopback{SwIfIndex: meta.SwIfIndex()}, &vppif.DeleteLoopbackReply{})
		},
		Retrieve: func(_ context.Context, _ *Env, all map[uint32]*Found) error {
			for _, f := range all {
				// local0, which each VPP has, is listed like the loopbacks.
				loopback := f.Details.InterfaceDevType == "Loopback" || f.Details.InterfaceDevType == "local"
				if loopback && f.Details.Type != interface_types.IF_API_TYPE_SUB {
					f.Value.Type = interfaces.Interface_SOFTWARE_LOOPBACK
				}
			}
			return nil
		},
	}
}
