// Package slaac sets IPv6 address autoconfiguration (RFC 4862), and default routes from router
// advertisements.
//
//	err := slaac.Set(ctx, api, index, was, now, nil, others)
//
// VPP does not list these settings, so the caller notes them.
package slaac

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip6_nd"
	"go.fd.io/govpp/binapi/rd_cp"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// A Pace keeps solicitations rare whose reason is only suspected: that a new interface has inherited the
// setting of its index. Thousands of interfaces may be created in a second. The zero value is ready.
type Pace struct {
	mu   sync.Mutex // guards last
	last time.Time
}

// take reports whether routers may be solicited now. A nil Pace always allows it.
func (p *Pace) take() bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.last) < time.Second {
		return false
	}
	p.last = now
	return true
}

// A Setting is that of one interface; nil disables both parts.
type Setting = interfaces.Interface_IP6ND

// Unknown is the former setting of an interface that an earlier agent may have set.
func Unknown() *Setting { return &Setting{AddressAutoconfig: true, InstallDefaultRoutes: true} }

// Message is the request that VPP needs.
func Message() api.Message { return &rd_cp.IP6NdAddressAutoconfig{} }

// Set sends the setting of an index, which replaces the former one. VPP accepts a repeated request.
//
// When one interface stops taking addresses or default routes, VPP removes those of all
// interfaces (VPP rd_cp.c, rd_cp_set_address_autoconfig). So routers are then asked to advertise
// them again to the others. An error of that is ignored: VPP asks by itself, but it lets up to 2
// minutes pass.
func Set(ctx context.Context, a conn.API, at interface_types.InterfaceIndex, was, now *Setting, pace *Pace, others func() []interface_types.InterfaceIndex) error {
	err := a.Call(ctx, &rd_cp.IP6NdAddressAutoconfig{
		SwIfIndex: at, Enable: now.GetAddressAutoconfig(), InstallDefaultRoutes: now.GetInstallDefaultRoutes(),
	}, &rd_cp.IP6NdAddressAutoconfigReply{})
	if err == nil && ends(was, now) && pace.take() {
		_ = a.Batch(ctx, solicitations(others())...)
	}
	return err
}

// ends tells whether an interface stops taking addresses or default routes. Without addresses, it
// takes no routes either.
func ends(was, now *Setting) bool {
	return was.GetAddressAutoconfig() && (!now.GetAddressAutoconfig() || was.GetInstallDefaultRoutes() && !now.GetInstallDefaultRoutes())
}

// solicitations returns requests to ask the routers of interfaces, with the times that VPP itself
// uses (VPP rd_cp.c, router_solicitation_start_stop).
func solicitations(of []interface_types.InterfaceIndex) []*conn.Step {
	const first, longest = 1, 120 // seconds between two packets
	out := make([]*conn.Step, 0, len(of))
	for _, at := range of {
		q := &ip6_nd.IP6ndSendRouterSolicitation{SwIfIndex: at, Irt: first, Mrt: longest}
		out = append(out, conn.Ask(q, &ip6_nd.IP6ndSendRouterSolicitationReply{}))
	}
	return out
}

// Others returns the indexes of existing interfaces that take addresses, but one.
func Others(names []string, settingOf func(name string, index uint32) *Setting, get func(name string) (ifindex.Meta, bool), but interface_types.InterfaceIndex) (out []interface_types.InterfaceIndex) {
	for _, name := range names {
		meta, exists := get(name)
		if exists && meta.SwIfIndex() != but && settingOf(name, meta.Index).GetAddressAutoconfig() {
			out = append(out, meta.SwIfIndex())
		}
	}
	return out
}

// Note is the setting of the interface with an index, as text to save. Another interface of that name has another
// index, and not this setting.
func Note(index uint32, v *Setting) []byte {
	return fmt.Appendf(nil, "%d addresses=%t routes=%t", index, v.GetAddressAutoconfig(), v.GetInstallDefaultRoutes())
}

// Noted returns the setting of a note; nil: there is none of that index.
func Noted(note []byte, index uint32) *Setting {
	v, of := &Setting{}, uint32(0)
	n, _ := fmt.Sscanf(string(note), "%d addresses=%t routes=%t", &of, &v.AddressAutoconfig, &v.InstallDefaultRoutes)
	if n != 3 || of != index {
		return nil
	}
	return v
}
