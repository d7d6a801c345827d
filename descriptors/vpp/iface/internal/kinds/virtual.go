package kinds

import (
	"context"
	"net/netip"

	"go.fd.io/govpp/binapi/vrrp"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// ownerPriority is the priority of a virtual router that owns its addresses (RFC 5798). They must
// be on the interface before it starts, so VPP does not add them.
const ownerPriority = 255

// ReadVirtual notes the addresses that virtual routers with accept mode give to interfaces. VPP adds
// them when the router becomes the master, and removes them when it is that no longer (VPP vrrp.c,
// vrrp_vr_transition_addrs). The router may change between two requests, so its state does not
// count.
func (e *Env) ReadVirtual(ctx context.Context, all map[uint32]*Found) error {
	routers, err := conn.Dump[vrrp.VrrpVrDetails](ctx, e.API, &vrrp.VrrpVrDump{SwIfIndex: ifindex.All})
	if err != nil {
		return err
	}
	for _, r := range routers {
		f := all[uint32(r.Config.SwIfIndex)]
		if f == nil || r.Config.Flags&vrrp.VRRP_API_VR_ACCEPT == 0 || r.Config.Priority == ownerPriority {
			continue
		}
		if f.Virtual == nil {
			f.Virtual = map[netip.Addr]bool{}
		}
		for _, a := range r.Addrs {
			f.Virtual[vppwire.Addr(a)] = true
		}
	}
	return nil
}
