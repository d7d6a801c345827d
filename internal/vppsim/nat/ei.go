package nat

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ei"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/ip"
)

// defaultEISessions is VPP's number of sessions per thread (nat44_ei.c, nat44_ei_plugin_enable).
const defaultEISessions = 10 * 1024

// ei is the endpoint-independent plugin.
type ei struct{ box }

// newEI registers the plugin's messages. Unlike the other plugin, it answers with
// FEATURE_ALREADY_DISABLED while it is disabled.
func newEI(vpp *core.VPP, tables *ip.IP) {
	p := &ei{newBox(vpp, tables, already(vpp, api.FEATURE_ALREADY_DISABLED))}
	tables.UsedBy(func(k ip.Key) bool { return !k.IPv6 && uses(p.pool, k.ID) })
	vpp.Register(core.Plugin{
		Messages: []core.Message{
			core.Call(func(q *nat44_ei.Nat44EiPluginEnableDisable, _ *nat44_ei.Nat44EiPluginEnableDisableReply) core.Errno {
				defer p.tables.Collect()
				return p.enable(q.Enable, q.Sessions, defaultEISessions)
			}),
			core.Call(func(_ *nat44_ei.Nat44EiShowRunningConfig, r *nat44_ei.Nat44EiShowRunningConfigReply) core.Errno {
				r.Sessions, r.ForwardingEnabled = p.sessions, p.forwarding
				return core.OK
			}),
			core.Call(func(q *nat44_ei.Nat44EiForwardingEnableDisable, _ *nat44_ei.Nat44EiForwardingEnableDisableReply) core.Errno {
				p.forwarding = q.Enable
				return core.OK
			}),
			core.On(vpp, func(q *nat44_ei.Nat44EiInterfaceAddDelFeature) index { return q.SwIfIndex },
				func(i *core.Interface, q *nat44_ei.Nat44EiInterfaceAddDelFeature, _ *nat44_ei.Nat44EiInterfaceAddDelFeatureReply) core.Errno {
					return p.setSide(i, q.Flags&nat44_ei.NAT44_EI_IF_INSIDE != 0, q.IsAdd)
				}),
			core.On(vpp, func(q *nat44_ei.Nat44EiAddDelOutputInterface) index { return q.SwIfIndex },
				func(i *core.Interface, q *nat44_ei.Nat44EiAddDelOutputInterface, _ *nat44_ei.Nat44EiAddDelOutputInterfaceReply) core.Errno {
					return p.setOutput(i, q.IsAdd)
				}),
			core.Dump(p.dumpInterfaces),
			core.Get(p.dumpOutputs),
			core.Call(p.changeAddresses),
			core.Dump(func(_ *nat44_ei.Nat44EiAddressDump, yield func(nat44_ei.Nat44EiAddressDetails)) {
				for _, e := range p.pool {
					yield(nat44_ei.Nat44EiAddressDetails{IPAddress: e.address, VrfID: e.vrf})
				}
			}),
		},
		Removing: p.removing,
	})
}

// dumpInterfaces lists interfaces with sides.
func (p *ei) dumpInterfaces(_ *nat44_ei.Nat44EiInterfaceDump, yield func(nat44_ei.Nat44EiInterfaceDetails)) {
	for i, of := range p.sided() {
		yield(nat44_ei.Nat44EiInterfaceDetails{SwIfIndex: i, Flags: flags(of, nat44_ei.NAT44_EI_IF_INSIDE, nat44_ei.NAT44_EI_IF_OUTSIDE)})
	}
}

// dumpOutputs answers in one piece.
func (p *ei) dumpOutputs(_ *nat44_ei.Nat44EiOutputInterfaceGet, yield func(nat44_ei.Nat44EiOutputInterfaceDetails), r *nat44_ei.Nat44EiOutputInterfaceGetReply) core.Errno {
	r.Cursor = p.eachOutput(func(i index) { yield(nat44_ei.Nat44EiOutputInterfaceDetails{SwIfIndex: i}) })
	return core.OK
}

// changeAddresses needs the enabled plugin for removal, too, which the other plugin does not.
func (p *ei) changeAddresses(q *nat44_ei.Nat44EiAddDelAddressRange, _ *nat44_ei.Nat44EiAddDelAddressRangeReply) core.Errno {
	if !p.enabled {
		return p.disabled
	}
	defer p.tables.Collect()
	if q.IsAdd {
		p.need(q.VrfID)
	}
	return setRange(&p.pool, q.FirstIPAddress, q.LastIPAddress, q.VrfID, q.IsAdd)
}
