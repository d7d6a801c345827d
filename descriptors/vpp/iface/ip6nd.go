package iface

import (
	"context"
	"errors"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/slaac"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/unreported"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// autoconfDescriptor enables IPv6 address autoconfiguration and default routes from router
// advertisements. VPP does not list these settings, so they are noted while the interface
// exists.
func (h *handler) autoconfDescriptor() scheduler.Descriptor[*interfaces.Interface_IP6ND, struct{}] {
	return scheduler.Descriptor[*interfaces.Interface_IP6ND, struct{}]{
		Name:   IP6NDName,
		Prefix: keys.IP6NDs,

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

// setAutoconf sets the configuration; nil disables it. VPP accepts a repeated request.
func (h *handler) setAutoconf(ctx context.Context, key string, v *interfaces.Interface_IP6ND) error {
	name := key[len(keys.IP6NDs):]
	meta, ok := h.index.Get(name)
	if !ok {
		return kinds.NotThere(name)
	}
	was, pace := h.autoconfOf(name, meta.Index), (*slaac.Pace)(nil)
	if was == nil && h.table.InUse() {
		was, pace = slaac.Unknown(), &h.solicited // an earlier agent may have set it
	}
	configure := func() error { return h.autoconfigure(ctx, meta.SwIfIndex(), was, v, pace) }
	done := h.autoconf.Begin(name)
	if v == nil {
		err := h.leftovers.End(meta.Index, autoconfMark, configure)
		if err == nil {
			h.autoconf.Forget(name)
		}
		return err
	}
	err := h.leftovers.Set(meta.Index, name, autoconfMark, h.endAutoconf, configure)
	if err == nil {
		done(slaac.Note(meta.Index, v))
	}
	return err
}

// autoconfigure sends the setting for an index; a nil v disables both parts. The other interfaces
// get back at once what VPP then takes from them, too.
func (h *handler) autoconfigure(ctx context.Context, at interface_types.InterfaceIndex, was, v *slaac.Setting, pace *slaac.Pace) error {
	return slaac.Set(ctx, h.API, at, was, v, pace, func() []interface_types.InterfaceIndex {
		return slaac.Others(h.autoconf.Names(), h.autoconfOf, h.index.Get, at)
	})
}

// autoconfMark names the setting among the leftovers of an index. VPP keeps it for the next
// interface with that index.
const autoconfMark = "autoconfiguration"

// endAutoconf disables the setting of an index. VPP ignores a request that does not change it (VPP
// rd_cp.c, rd_cp_set_address_autoconfig).
func (h *handler) endAutoconf(ctx context.Context, at interface_types.InterfaceIndex) error {
	return h.autoconfigure(ctx, at, slaac.Unknown(), nil, &h.solicited)
}

// suspectAutoconf notes that a new interface may have inherited the setting of an
// interface that existed before the agent started. VPP does not list the setting.
func (h *handler) suspectAutoconf(index uint32) {
	if h.table.InUse() && h.API.Has(slaac.Message()) {
		h.leftovers.Note(index, "", autoconfMark, h.endAutoconf)
	}
}

// autoconfOf returns the setting of an interface that has an index, or slaac.Unknown; nil: it has none.
func (h *handler) autoconfOf(name string, index uint32) *slaac.Setting {
	note, state := h.autoconf.Of(name)
	if state == unreported.Unknown {
		return slaac.Unknown()
	}
	return slaac.Noted(note, index)
}

// readAutoconf fills in the setting of a found interface. VPP keeps it when somebody else deletes the interface,
// which is noted if the read learns.
//
// An unknown setting is reported so that it differs from the declared one: it is set again, or ended.
func (h *handler) readAutoconf(f *kinds.Found, learns bool) {
	name := f.Value.GetName()
	f.Value.Ip6Nd = h.autoconfOf(name, f.Meta.Index)
	if f.Value.Ip6Nd != nil && learns {
		h.leftovers.Note(f.Meta.Index, name, autoconfMark, h.endAutoconf)
	}
	if _, state := h.autoconf.Of(name); state == unreported.Unknown && f.Desired.GetIp6Nd() != nil {
		f.Value.Ip6Nd = nil
	}
}

// forgetAutoconfOfOthers forgets the settings of all interfaces but the found ones.
func (h *handler) forgetAutoconfOfOthers(found []*kinds.Found) {
	exist := make(map[string]bool, len(found))
	for _, f := range found {
		exist[f.Value.GetName()] = true
	}
	for _, name := range h.autoconf.Names() {
		if !exist[name] {
			h.autoconf.Forget(name)
		}
	}
}

// configuresItself tells whether an interface uses IPv6 address autoconfiguration.
func configuresItself(f *kinds.Found) bool {
	return f.Value.GetIp6Nd().GetAddressAutoconfig() || f.Desired.GetIp6Nd().GetAddressAutoconfig()
}

// isEUI64 tells whether an address has the form that VPP's autoconfiguration assigns: a
// /64 prefix with the MAC address (RFC 4291, appendix A). VPP would not assign a deleted
// address again (VPP rd_cp.c, ip6_ra_report_handler).
func isEUI64(p netip.Prefix) bool {
	a := p.Addr().As16()
	return p.Addr().Is6() && p.Bits() == 64 && a[11] == 0xff && a[12] == 0xfe
}
