package nat

import (
	"context"
	"errors"
	"net/netip"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat44_ei"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/scheduler"
)

// features are those of an interface. One with output has no sides.
type features struct{ inside, outside, output bool }

// poolAddress is an address of a pool. VRF is anyVRF for an address that serves packets of all
// VRFs.
type poolAddress struct {
	Addr netip.Addr
	VRF  uint32
	// Twice: for the sources of packets that come from outside.
	Twice bool
}

// addresses are a range of addresses, both ends included. It has only comparable fields, so two
// ranges are compared with ==.
type addresses struct {
	First, Last netip.Addr
	VRF         uint32
	Twice       bool
}

// A plugin is one of VPP's plugins for NAT44. It makes requests, and reads VPP's state. Methods
// that return a *conn.Step only build a request; the caller sends it with others in a batch.
// Implementations have no state, so they are safe for concurrent use.
type plugin interface {
	// running reads whether the plugin is enabled, and whether it forwards packets that it
	// does not translate.
	running(ctx context.Context) (enabled, forwarding bool, err error)
	// Disabling removes all state of the plugin: sides, pools, mappings and translations.
	enable(on bool) *conn.Step
	forward(on bool) *conn.Step
	side(at interface_types.InterfaceIndex, inside, add bool) *conn.Step
	output(at interface_types.InterfaceIndex, add bool) *conn.Step
	pool(r addresses, add bool) *conn.Step
	// by index; until 22.10 also of interfaces that VPP has deleted
	readSides(ctx context.Context) (map[interface_types.InterfaceIndex]features, error)
	// in VPP's order, plain addresses before those of twice-NAT
	readPool(ctx context.Context) ([]poolAddress, error)
	// serves reports whether the plugin has mappings of this kind.
	serves(m mapping) bool
	// mapping needs a mapping that the plugin serves. at is noInterface for one by address.
	mapping(tag string, m mapping, at interface_types.InterfaceIndex, add bool) *conn.Step
	// readMappings passes all mappings with a tag to r.
	readMappings(r *reader) error
	// endpointDependent tells which one it is.
	endpointDependent() bool
}

// plugin returns one of the two plugins.
func (h *handler) plugin(endpointIndependent bool) plugin {
	if endpointIndependent {
		return eiPlugin{h.API}
	}
	return edPlugin{h.API}
}

// plugins returns both plugins, that of the declared value first.
func (h *handler) plugins() [2]plugin {
	first := h.independent.Load()
	return [2]plugin{h.plugin(first), h.plugin(!first)}
}

// isEnabled reads whether a plugin is enabled. VPP may lack it. The state is read each time:
// another client of VPP can change it at any moment.
func isEnabled(ctx context.Context, p plugin) (bool, error) {
	on, _, err := p.running(ctx)
	if errors.Is(err, scheduler.ErrUnimplemented) {
		return false, nil
	}
	return on, err
}

// enabled returns the plugins that are enabled, that of the declared value first.
func (h *handler) enabled(ctx context.Context) (out []plugin, err error) {
	for _, p := range h.plugins() {
		on, err := isEnabled(ctx, p)
		if err != nil {
			return nil, err
		}
		if on {
			out = append(out, p)
		}
	}
	return out, nil
}

// inUse returns the plugin to add something to. If both are enabled, it is that of the declared
// value; the other one is not even asked. With neither, the error is ErrDisabled.
func (h *handler) inUse(ctx context.Context) (plugin, error) {
	for _, p := range h.plugins() {
		on, err := isEnabled(ctx, p)
		if err != nil {
			return nil, err
		}
		if on {
			return p, nil
		}
	}
	return nil, ErrDisabled
}

// isGone reports that VPP refuses to remove an item because it has none, or because the plugin
// is disabled. Until 22.10, VPP says the latter by 1.
func isGone(err error) bool {
	for _, gone := range []api.VPPApiError{api.NO_SUCH_ENTRY, api.UNSUPPORTED, api.FEATURE_ALREADY_DISABLED, 1} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}

// get returns the details that answer a request of the kind *_get, whose reply comes behind
// them. VPP ends with EAGAIN if it did not come to the end, and the reply says where to go on.
// The cursor is an index of a pool in VPP, and ~0 after the last item.
func get[T any, P interface {
	*T
	api.Message
}](ctx context.Context, a conn.API, request func(cursor uint32) api.Message, reply api.Message, cursor func() uint32) (out []T, err error) {
	at := uint32(0)
	for {
		step := conn.List[T, P](request(at), &out)
		step.Reply = reply
		if err := a.Batch(ctx, step); !errors.Is(err, api.EAGAIN) {
			return out, err
		}
		if at = cursor(); at == ^uint32(0) {
			return out, nil
		}
	}
}

// edPlugin is the endpoint-dependent plugin, nat44-ed.
type edPlugin struct{ api conn.API }

func (edPlugin) endpointDependent() bool { return true }

// running: VPP fills in a default for the number of sessions when the plugin is enabled.
func (p edPlugin) running(ctx context.Context) (enabled, forwarding bool, err error) {
	reply := &nat44_ed.Nat44ShowRunningConfigReply{}
	err = p.api.Call(ctx, &nat44_ed.Nat44ShowRunningConfig{}, reply)
	return reply.Sessions != 0, reply.ForwardingEnabled, err
}

// enable: VPP refuses the other modes, static mappings only and connection tracking.
func (edPlugin) enable(on bool) *conn.Step {
	q := &nat44_ed.Nat44EdPluginEnableDisable{Enable: on, Flags: nat44_ed.NAT44_IS_ENDPOINT_DEPENDENT}
	return conn.Ask(q, &nat44_ed.Nat44EdPluginEnableDisableReply{})
}

// forward: enabling the plugin resets the setting, so this request must follow it.
func (edPlugin) forward(on bool) *conn.Step {
	return conn.Ask(&nat44_ed.Nat44ForwardingEnableDisable{Enable: on}, &nat44_ed.Nat44ForwardingEnableDisableReply{})
}

func (edPlugin) side(at interface_types.InterfaceIndex, inside, add bool) *conn.Step {
	q := &nat44_ed.Nat44InterfaceAddDelFeature{IsAdd: add, SwIfIndex: at, Flags: nat_types.NAT_IS_OUTSIDE}
	if inside {
		q.Flags = nat_types.NAT_IS_INSIDE
	}
	return conn.Ask(q, &nat44_ed.Nat44InterfaceAddDelFeatureReply{})
}

func (edPlugin) output(at interface_types.InterfaceIndex, add bool) *conn.Step {
	return conn.Ask(&nat44_ed.Nat44EdAddDelOutputInterface{IsAdd: add, SwIfIndex: at}, &nat44_ed.Nat44EdAddDelOutputInterfaceReply{})
}

func (edPlugin) pool(r addresses, add bool) *conn.Step {
	q := &nat44_ed.Nat44AddDelAddressRange{FirstIPAddress: r.First.As4(), LastIPAddress: r.Last.As4(), VrfID: r.VRF, IsAdd: add}
	if r.Twice {
		q.Flags = nat_types.NAT_IS_TWICE_NAT
	}
	return conn.Ask(q, &nat44_ed.Nat44AddDelAddressRangeReply{})
}

// readSides needs two messages: the dump leaves out interfaces with the output feature.
func (p edPlugin) readSides(ctx context.Context) (map[interface_types.InterfaceIndex]features, error) {
	all, err := conn.Dump[nat44_ed.Nat44InterfaceDetails](ctx, p.api, &nat44_ed.Nat44InterfaceDump{})
	if err != nil {
		return nil, err
	}
	out := map[interface_types.InterfaceIndex]features{}
	for _, d := range all {
		out[d.SwIfIndex] = features{inside: d.Flags&nat_types.NAT_IS_INSIDE != 0, outside: d.Flags&nat_types.NAT_IS_OUTSIDE != 0}
	}
	reply := &nat44_ed.Nat44EdOutputInterfaceGetReply{}
	outputs, err := get[nat44_ed.Nat44EdOutputInterfaceDetails](ctx, p.api, func(cursor uint32) api.Message {
		return &nat44_ed.Nat44EdOutputInterfaceGet{Cursor: cursor}
	}, reply, func() uint32 { return reply.Cursor })
	for _, d := range outputs {
		out[d.SwIfIndex] = features{output: true}
	}
	return out, err
}

func (p edPlugin) readPool(ctx context.Context) ([]poolAddress, error) {
	all, err := conn.Dump[nat44_ed.Nat44AddressDetails](ctx, p.api, &nat44_ed.Nat44AddressDump{})
	out := make([]poolAddress, 0, len(all))
	for _, d := range all {
		out = append(out, poolAddress{Addr: netip.AddrFrom4(d.IPAddress), VRF: d.VrfID, Twice: d.Flags&nat_types.NAT_IS_TWICE_NAT != 0})
	}
	return out, err
}

// eiPlugin is the endpoint-independent plugin, nat44-ei.
type eiPlugin struct{ api conn.API }

func (eiPlugin) endpointDependent() bool { return false }

// running: as with the other plugin, the number of sessions is 0 while it is disabled.
func (p eiPlugin) running(ctx context.Context) (enabled, forwarding bool, err error) {
	reply := &nat44_ei.Nat44EiShowRunningConfigReply{}
	err = p.api.Call(ctx, &nat44_ei.Nat44EiShowRunningConfig{}, reply)
	return reply.Sessions != 0, reply.ForwardingEnabled, err
}

func (eiPlugin) enable(on bool) *conn.Step {
	return conn.Ask(&nat44_ei.Nat44EiPluginEnableDisable{Enable: on}, &nat44_ei.Nat44EiPluginEnableDisableReply{})
}

func (eiPlugin) forward(on bool) *conn.Step {
	return conn.Ask(&nat44_ei.Nat44EiForwardingEnableDisable{Enable: on}, &nat44_ei.Nat44EiForwardingEnableDisableReply{})
}

func (eiPlugin) side(at interface_types.InterfaceIndex, inside, add bool) *conn.Step {
	q := &nat44_ei.Nat44EiInterfaceAddDelFeature{IsAdd: add, SwIfIndex: at, Flags: nat44_ei.NAT44_EI_IF_OUTSIDE}
	if inside {
		q.Flags = nat44_ei.NAT44_EI_IF_INSIDE
	}
	return conn.Ask(q, &nat44_ei.Nat44EiInterfaceAddDelFeatureReply{})
}

func (eiPlugin) output(at interface_types.InterfaceIndex, add bool) *conn.Step {
	return conn.Ask(&nat44_ei.Nat44EiAddDelOutputInterface{IsAdd: add, SwIfIndex: at}, &nat44_ei.Nat44EiAddDelOutputInterfaceReply{})
}

// pool: this plugin has no twice-NAT, and values of that depend on the other one.
func (eiPlugin) pool(r addresses, add bool) *conn.Step {
	q := &nat44_ei.Nat44EiAddDelAddressRange{FirstIPAddress: r.First.As4(), LastIPAddress: r.Last.As4(), VrfID: r.VRF, IsAdd: add}
	return conn.Ask(q, &nat44_ei.Nat44EiAddDelAddressRangeReply{})
}

func (p eiPlugin) readSides(ctx context.Context) (map[interface_types.InterfaceIndex]features, error) {
	all, err := conn.Dump[nat44_ei.Nat44EiInterfaceDetails](ctx, p.api, &nat44_ei.Nat44EiInterfaceDump{})
	if err != nil {
		return nil, err
	}
	out := map[interface_types.InterfaceIndex]features{}
	for _, d := range all {
		out[d.SwIfIndex] = features{inside: d.Flags&nat44_ei.NAT44_EI_IF_INSIDE != 0, outside: d.Flags&nat44_ei.NAT44_EI_IF_OUTSIDE != 0}
	}
	reply := &nat44_ei.Nat44EiOutputInterfaceGetReply{}
	outputs, err := get[nat44_ei.Nat44EiOutputInterfaceDetails](ctx, p.api, func(cursor uint32) api.Message {
		return &nat44_ei.Nat44EiOutputInterfaceGet{Cursor: cursor}
	}, reply, func() uint32 { return reply.Cursor })
	for _, d := range outputs {
		out[d.SwIfIndex] = features{output: true}
	}
	return out, err
}

func (p eiPlugin) readPool(ctx context.Context) ([]poolAddress, error) {
	all, err := conn.Dump[nat44_ei.Nat44EiAddressDetails](ctx, p.api, &nat44_ei.Nat44EiAddressDump{})
	out := make([]poolAddress, 0, len(all))
	for _, d := range all {
		out = append(out, poolAddress{Addr: netip.AddrFrom4(d.IPAddress), VRF: d.VrfID})
	}
	return out, err
}

// interfaceNamed returns the index of an interface that exists in VPP. The error wraps
// iface.ErrNotFound. Dependencies make that rare: an interface may vanish from VPP between the plan
// and the verb.
func (h *handler) interfaceNamed(name string) (interface_types.InterfaceIndex, error) {
	meta, err := iface.Find(h.Interfaces, name)
	if err != nil {
		return 0, err
	}
	return meta.SwIfIndex(), nil
}
