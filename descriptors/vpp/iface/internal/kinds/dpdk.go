package kinds

import (
	"context"

	vppif "go.fd.io/govpp/binapi/interface"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// dpdkKind is the kind of DPDK: hardware that VPP found at its start, under VPP's own
// name. It can neither be created nor deleted. A declared one is pending until VPP has it;
// a deleted one is disabled and loses its tag. Such an interface has the MAC address of
// its hardware, so the kind has NoMAC.
func dpdkKind() Kind {
	return Kind{
		NoMAC:    true,
		MayExist: true,
		Dependencies: func(v *interfaces.Interface) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: "dpdk-interface-exists", Prefixes: []string{keys.Interface(v.GetName()).LinkStates()}}}
		},
		Create: func(ctx context.Context, e *Env, v *interfaces.Interface) (uint32, error) {
			details, err := conn.Dump[vppif.SwInterfaceDetails](ctx, e.API, &vppif.SwInterfaceDump{SwIfIndex: ifindex.All})
			for _, d := range details {
				if ifindex.IsHardware(d) && d.InterfaceName == v.GetName() {
					return uint32(d.SwIfIndex), err
				}
			}
			if err == nil {
				err = NotThere(v.GetName())
			}
			return 0, err
		},
		// Hardware that was found before it was declared is updated, not created, and has
		// no tag yet.
		Configure: func(ctx context.Context, e *Env, index uint32, v *interfaces.Interface) error {
			return e.SetTag(ctx, ifindex.Meta{Index: index}, v.GetName())
		},
		Delete: func(ctx context.Context, e *Env, _ *interfaces.Interface, meta ifindex.Meta) error {
			return e.SetTag(ctx, meta, "")
		},
		Retrieve: func(_ context.Context, _ *Env, all map[uint32]*Found) error {
			for _, f := range all {
				if ifindex.IsHardware(f.Details) {
					f.Value.Type = interfaces.Interface_DPDK
				}
			}
			return nil
		},
	}
}
