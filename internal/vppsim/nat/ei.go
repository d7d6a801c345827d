package nat

import (
	"fmt"
	"net/netip"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat44_ei"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/ip"
)

// defaultEISessions is VPP's number of sessions per thread (nat44_ei.c, nat44_ei_plugin_enable).
const defaultEISessions = 10 * 1024

// noProtocol is the protocol of an identity mapping of all ports (nat_proto_to_ip_proto).
const noProtocol = 255

// ei is the endpoint-independent plugin.
type ei struct {
	box
	mappings mappings
}

// newEI registers the plugin's messages. Unlike the other plugin, it answers with
// FEATURE_ALREADY_DISABLED while it is disabled.
func newEI(vpp *core.VPP, tables *ip.IP) {
	p := &ei{box: newBox(vpp, tables, already(vpp, api.FEATURE_ALREADY_DISABLED))}
	p.mappings = newMappings(vpp, &p.box, true)
	tables.UsedBy(func(k ip.Key) bool { return !k.IPv6 && (uses(p.pool, k.ID) || p.mappings.uses(k.ID)) })
	vpp.Register(core.Plugin{
		Messages: append([]core.Message{
			core.Call(func(q *nat44_ei.Nat44EiPluginEnableDisable, _ *nat44_ei.Nat44EiPluginEnableDisableReply) core.Errno {
				defer p.tables.Collect()
				errno := p.enable(q.Enable, q.Sessions, defaultEISessions)
				if errno == core.OK {
					p.mappings.clear()
				}
				return errno
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
		}, p.messagesOfMappings()...),
		Pages: map[string]func() string{
			"show nat44 ei static mappings": p.mappings.show,
			"show nat44 ei addresses":       p.showAddresses,
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
	defer p.mappings.forget()
	return setRange(&p.pool, q.FirstIPAddress, q.LastIPAddress, q.VrfID, q.IsAdd, p.mappings.binds)
}

// showAddresses prints the pool with the numbers of ports in use, in VPP's format
// (nat44_ei_show_addresses_command_fn).
func (p *ei) showAddresses() string {
	var b strings.Builder
	b.WriteString("NAT44 pool addresses:\n")
	for _, e := range p.pool {
		vrf := " independent"
		if e.vrf != anyVRF {
			vrf = fmt.Sprint(": ", e.vrf)
		}
		fmt.Fprintf(&b, "%s\n  tenant VRF%s\n", netip.AddrFrom4(e.address), vrf)
		for _, one := range []struct {
			number uint8
			name   string
		}{{0, "other"}, {17, "udp"}, {6, "tcp"}, {1, "icmp"}} {
			fmt.Fprintf(&b, "  %d busy %s ports\n", p.mappings.busy[ports{e.address, one.number}], one.name)
		}
	}
	return b.String()
}

// messagesOfMappings returns the handlers of mappings, which convert requests to those of the
// other plugin and back. This plugin has no flag for mappings that serve connections from outside
// only.
func (p *ei) messagesOfMappings() []core.Message {
	return []core.Message{
		core.Call(func(q *nat44_ei.Nat44EiAddDelStaticMapping, _ *nat44_ei.Nat44EiAddDelStaticMappingReply) core.Errno {
			return p.mappings.setStatic(&nat44_ed.Nat44AddDelStaticMappingV2{
				IsAdd: q.IsAdd, Flags: toED(q.Flags), LocalIPAddress: q.LocalIPAddress, ExternalIPAddress: q.ExternalIPAddress, Protocol: q.Protocol,
				LocalPort: q.LocalPort, ExternalPort: q.ExternalPort, ExternalSwIfIndex: q.ExternalSwIfIndex, VrfID: q.VrfID, Tag: q.Tag,
			})
		}),
		core.Call(func(q *nat44_ei.Nat44EiAddDelIdentityMapping, _ *nat44_ei.Nat44EiAddDelIdentityMappingReply) core.Errno {
			return p.mappings.setIdentity(&nat44_ed.Nat44AddDelIdentityMapping{
				IsAdd: q.IsAdd, Flags: toED(q.Flags), IPAddress: q.IPAddress, Protocol: q.Protocol, Port: q.Port, SwIfIndex: q.SwIfIndex, VrfID: q.VrfID, Tag: q.Tag,
			}, nil)
		}),
		core.Dump(func(_ *nat44_ei.Nat44EiStaticMappingDump, yield func(nat44_ei.Nat44EiStaticMappingDetails)) {
			p.mappings.dumpStatic(nil, func(d nat44_ed.Nat44StaticMappingDetails) {
				yield(nat44_ei.Nat44EiStaticMappingDetails{
					Flags: fromED(d.Flags), LocalIPAddress: d.LocalIPAddress, ExternalIPAddress: d.ExternalIPAddress, Protocol: d.Protocol,
					LocalPort: d.LocalPort, ExternalPort: d.ExternalPort, ExternalSwIfIndex: d.ExternalSwIfIndex, VrfID: d.VrfID, Tag: d.Tag,
				})
			})
		}),
		core.Dump(func(_ *nat44_ei.Nat44EiIdentityMappingDump, yield func(nat44_ei.Nat44EiIdentityMappingDetails)) {
			p.mappings.dumpIdentity(nil, func(d nat44_ed.Nat44IdentityMappingDetails) {
				if isAddressOnly(d.Flags) {
					d.Protocol = noProtocol
				}
				yield(nat44_ei.Nat44EiIdentityMappingDetails{
					Flags: fromED(d.Flags), IPAddress: d.IPAddress, Protocol: d.Protocol, Port: d.Port, SwIfIndex: d.SwIfIndex, VrfID: d.VrfID, Tag: d.Tag,
				})
			})
		}),
	}
}

// toED converts the only flag that mappings have in both plugins.
func toED(flags nat44_ei.Nat44EiConfigFlags) nat_types.NatConfigFlags {
	if flags&nat44_ei.NAT44_EI_ADDR_ONLY_MAPPING != 0 {
		return nat_types.NAT_IS_ADDR_ONLY
	}
	return 0
}

// fromED is the inverse of toED.
func fromED(flags nat_types.NatConfigFlags) nat44_ei.Nat44EiConfigFlags {
	if isAddressOnly(flags) {
		return nat44_ei.NAT44_EI_ADDR_ONLY_MAPPING
	}
	return 0
}
