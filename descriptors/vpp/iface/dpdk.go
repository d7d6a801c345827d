package iface

import (
	"context"

	vppif "go.fd.io/govpp/binapi/interface"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// dpdkKind is the kind of DPDK: hardware that VPP has found by itself, under the name that VPP
// gave it. It cannot be made, so that it waits for it, nor deleted: it is taken down instead.
func dpdkKind() kind {
	return kind{
		noMAC: true,
		dependencies: func(v *interfaces.Interface) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: "dpdk-interface-exists", Prefixes: []string{keys.LinkStates(v.GetName())}}}
		},
		create: func(ctx context.Context, h *handler, v *interfaces.Interface) (uint32, error) {
			details, err := conn.Dump[vppif.SwInterfaceDetails](ctx, h.API, &vppif.SwInterfaceDump{SwIfIndex: ifindex.All})
			for _, d := range details {
				if ifindex.IsHardware(d) && d.InterfaceName == v.GetName() {
					return uint32(d.SwIfIndex), err
				}
			}
			if err == nil {
				err = notThere(v.GetName())
			}
			return 0, err
		},
		// One that was seen before it was declared is updated, but has no name of ours yet.
		configured: func(ctx context.Context, h *handler, index uint32, v *interfaces.Interface) error {
			return h.setTag(ctx, Meta{Index: index}, v.GetName())
		},
		delete: func(ctx context.Context, h *handler, _ *interfaces.Interface, meta Meta) error {
			return h.setTag(ctx, meta, "")
		},
		retrieve: func(_ context.Context, _ *handler, all map[uint32]*found) error {
			for _, f := range all {
				if ifindex.IsHardware(f.details) {
					f.value.Type = interfaces.Interface_DPDK
				}
			}
			return nil
		},
	}
}
