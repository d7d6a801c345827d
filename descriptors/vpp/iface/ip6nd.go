package iface

import (
	"context"
	"errors"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/rd_cp"

	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// autoconfDescriptor has an interface take IPv6 addresses and default routes from what
// routers advertise. VPP does not tell whether it does: what was set is remembered as long
// as the interface stands.
func (h *handler) autoconfDescriptor() scheduler.Descriptor[*interfaces.Interface_IP6ND, struct{}] {
	return scheduler.Descriptor[*interfaces.Interface_IP6ND, struct{}]{
		Name:       IP6NDName,
		Prefix:     keys.IP6NDs,
		Connection: h.Southbound,

		Create: func(ctx context.Context, key string, v *interfaces.Interface_IP6ND) (struct{}, error) {
			return struct{}{}, h.setAutoconf(ctx, key, v)
		},
		Update: func(ctx context.Context, key string, _, v *interfaces.Interface_IP6ND, _ struct{}) (struct{}, error) {
			return struct{}{}, h.setAutoconf(ctx, key, v)
		},
		Delete: func(ctx context.Context, key string, _ *interfaces.Interface_IP6ND, _ struct{}) error {
			err := h.setAutoconf(ctx, key, nil)
			if errors.Is(err, api.INVALID_SW_IF_INDEX) || errors.Is(err, kinds.ErrNotThere) {
				return nil
			}
			return err
		},
	}
}

// setAutoconf sets what is asked for; nil: nothing. What is set already may be set again.
func (h *handler) setAutoconf(ctx context.Context, key string, v *interfaces.Interface_IP6ND) error {
	name := key[len(keys.IP6NDs):]
	meta, ok := h.index.Get(name)
	if !ok {
		return kinds.NotThere(name)
	}
	if err := h.autoconfigure(ctx, meta.SwIfIndex(), v); err != nil {
		return err
	}
	h.noteAutoconf(meta.Index, name, v)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.autoconf[name] = v
	return nil
}

func (h *handler) autoconfigure(ctx context.Context, at interface_types.InterfaceIndex, v *interfaces.Interface_IP6ND) error {
	return h.API.Call(ctx, &rd_cp.IP6NdAddressAutoconfig{
		SwIfIndex: at, Enable: v.GetAddressAutoconfig(), InstallDefaultRoutes: v.GetInstallDefaultRoutes(),
	}, &rd_cp.IP6NdAddressAutoconfigReply{})
}

// noteAutoconf notes what is set on an index. VPP has it for whoever gets that next, and takes
// it for done there when it is set again (VPP rd_cp.c, rd_cp_set_address_autoconfig).
func (h *handler) noteAutoconf(index uint32, name string, v *interfaces.Interface_IP6ND) {
	const what = "autoconfiguration"
	if v == nil {
		h.leftovers.Ended(index, what)
		return
	}
	h.leftovers.Note(index, name, what, func(ctx context.Context, at interface_types.InterfaceIndex) error {
		return h.autoconfigure(ctx, at, nil)
	})
}

// suspectAutoconf notes that an index, which an interface has just got, may have been one of another
// before this agent was: VPP does not tell what that has left.
func (h *handler) suspectAutoconf(index uint32) {
	if h.table.InUse() && h.API.Has(&rd_cp.IP6NdAddressAutoconfig{}) {
		h.noteAutoconf(index, "", &interfaces.Interface_IP6ND{})
	}
}

// forgetAutoconf forgets what was set on an interface.
func (h *handler) forgetAutoconf(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.autoconf, name)
}

// autoconfOf is what was set on an interface; nil: nothing, as far as is known.
func (h *handler) autoconfOf(name string) *interfaces.Interface_IP6ND {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.autoconf[name]
}

// configuresItself tells whether an interface takes IPv6 addresses from what routers advertise.
func configuresItself(f *kinds.Found) bool {
	return f.Value.GetIp6Nd().GetAddressAutoconfig() || f.Desired.GetIp6Nd().GetAddressAutoconfig()
}

// isEUI64 tells whether an address is one that VPP takes so: of a prefix of 64 bits and the MAC
// address (RFC 4291, appendix A). VPP would not take it again if it were deleted (VPP rd_cp.c,
// ip6_ra_report_handler).
func isEUI64(p netip.Prefix) bool {
	a := p.Addr().As16()
	return p.Addr().Is6() && p.Bits() == 64 && a[11] == 0xff && a[12] == 0xfe
}
