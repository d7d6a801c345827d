package nat

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/internal/vppsim/ip"
)

// defaultEDSessions is VPP's number of sessions per thread (nat44_ed.c, nat44_plugin_enable).
const defaultEDSessions = 63 * 1024

// ed is the endpoint-dependent plugin.
type ed struct {
	box
	twice []entry           // addresses of twice-NAT
	vrfs  map[uint32]routes // tables of VRFs, which a disabled plugin makes, too
	// VPP dumps the length of the vector under the pool, and that never shrinks.
	slots    map[uint32]int // of the routes of each table, with those that were removed
	mappings mappings
}

// routes are the VRFs in which destinations are looked up, in the order of addition.
type routes []uint32

// newED registers the plugin's messages. A table of IPv4 stays while an address, mapping or
// route of the plugin uses it.
func newED(vpp *core.VPP, tables *ip.IP) {
	p := &ed{box: newBox(vpp, tables, api.UNSUPPORTED), vrfs: map[uint32]routes{}, slots: map[uint32]int{}}
	p.mappings = newMappings(vpp, &p.box, false)
	tables.UsedBy(func(k ip.Key) bool { return !k.IPv6 && p.usesTable(k.ID) })
	vpp.Register(core.Plugin{
		Messages: append([]core.Message{
			core.Call(p.plugin),
			core.Call(func(_ *nat44_ed.Nat44ShowRunningConfig, r *nat44_ed.Nat44ShowRunningConfigReply) core.Errno {
				r.Sessions, r.ForwardingEnabled, r.Flags = p.sessions, p.forwarding, nat44_ed.NAT44_IS_ENDPOINT_DEPENDENT
				return core.OK
			}),
			// Nothing but enabling resets it, so a disabled plugin takes it, too.
			core.Call(func(q *nat44_ed.Nat44ForwardingEnableDisable, _ *nat44_ed.Nat44ForwardingEnableDisableReply) core.Errno {
				p.forwarding = q.Enable
				return core.OK
			}),
			core.On(vpp, func(q *nat44_ed.Nat44InterfaceAddDelFeature) index { return q.SwIfIndex },
				func(i *core.Interface, q *nat44_ed.Nat44InterfaceAddDelFeature, _ *nat44_ed.Nat44InterfaceAddDelFeatureReply) core.Errno {
					return p.setSide(i, q.Flags&nat_types.NAT_IS_INSIDE != 0, q.IsAdd)
				}),
			core.On(vpp, func(q *nat44_ed.Nat44EdAddDelOutputInterface) index { return q.SwIfIndex },
				func(i *core.Interface, q *nat44_ed.Nat44EdAddDelOutputInterface, _ *nat44_ed.Nat44EdAddDelOutputInterfaceReply) core.Errno {
					return p.setOutput(i, q.IsAdd)
				}),
			core.Dump(p.dumpInterfaces),
			core.Get(p.dumpOutputs),
			core.Call(p.changeAddresses),
			core.Dump(p.dumpAddresses),
			core.Call(p.changeTable),
			core.Call(p.changeRoute),
			core.Dump(p.dumpTables),
			core.Dump(p.dumpTablesV2).With(&nat44_ed.Nat44EdVrfTablesV2Details{}),
			// The message tells releases apart; nothing here makes sessions.
			core.Dump(func(*nat44_ed.Nat44UserSessionV3Dump, func(nat44_ed.Nat44UserSessionV3Details)) {}),
		}, p.mappings.messages()...),
		Pages:    map[string]func() string{"show nat44 vrf tables": p.showTables, "show nat44 static mappings": p.mappings.show},
		Removing: p.removing,
	})
}

// plugin enables or disables the plugin. The modes that VPP's API still has but its code
// refuses give UNSUPPORTED.
func (p *ed) plugin(q *nat44_ed.Nat44EdPluginEnableDisable, _ *nat44_ed.Nat44EdPluginEnableDisableReply) core.Errno {
	if q.Enable && q.Flags&(nat44_ed.NAT44_IS_STATIC_MAPPING_ONLY|nat44_ed.NAT44_IS_CONNECTION_TRACKING) != 0 {
		return api.UNSUPPORTED
	}
	errno := p.enable(q.Enable, q.Sessions, defaultEDSessions)
	if errno == core.OK && !q.Enable {
		p.twice, p.vrfs, p.slots = nil, map[uint32]routes{}, map[uint32]int{}
		p.mappings.clear()
	}
	p.tables.Collect()
	return errno
}

// usesTable returns whether a table is in use. VPP locks a table for each of its users, so one
// that is still used survives its deletion.
func (p *ed) usesTable(vrf uint32) bool {
	if _, has := p.vrfs[vrf]; has || uses(p.pool, vrf) || uses(p.twice, vrf) || p.mappings.uses(vrf) {
		return true
	}
	for _, r := range p.vrfs {
		if slices.Contains(r, vrf) {
			return true
		}
	}
	return false
}

// dumpInterfaces leaves out interfaces with the output feature, which have a message of their
// own.
func (p *ed) dumpInterfaces(_ *nat44_ed.Nat44InterfaceDump, yield func(nat44_ed.Nat44InterfaceDetails)) {
	for i, of := range p.sided() {
		yield(nat44_ed.Nat44InterfaceDetails{SwIfIndex: i, Flags: flags(of, nat_types.NAT_IS_INSIDE, nat_types.NAT_IS_OUTSIDE)})
	}
}

// dumpOutputs answers in one piece.
func (p *ed) dumpOutputs(_ *nat44_ed.Nat44EdOutputInterfaceGet, yield func(nat44_ed.Nat44EdOutputInterfaceDetails), r *nat44_ed.Nat44EdOutputInterfaceGetReply) core.Errno {
	r.Cursor = p.eachOutput(func(i index) { yield(nat44_ed.Nat44EdOutputInterfaceDetails{SwIfIndex: i}) })
	return core.OK
}

// changeAddresses adds or removes a range. A disabled plugin has no address to remove. So VPP
// answers NO_SUCH_ENTRY to removal, and not that it is disabled.
func (p *ed) changeAddresses(q *nat44_ed.Nat44AddDelAddressRange, _ *nat44_ed.Nat44AddDelAddressRangeReply) core.Errno {
	pool := &p.pool
	if q.Flags&nat_types.NAT_IS_TWICE_NAT != 0 {
		pool = &p.twice
	}
	if q.IsAdd && !p.enabled {
		return api.UNSUPPORTED
	}
	defer p.tables.Collect()
	if q.IsAdd {
		p.need(q.VrfID)
	}
	return setRange(pool, q.FirstIPAddress, q.LastIPAddress, q.VrfID, q.IsAdd, p.mappings.binds)
}

// dumpAddresses lists plain addresses before those of twice-NAT, as VPP keeps two pools.
func (p *ed) dumpAddresses(_ *nat44_ed.Nat44AddressDump, yield func(nat44_ed.Nat44AddressDetails)) {
	for _, e := range p.pool {
		yield(nat44_ed.Nat44AddressDetails{IPAddress: e.address, VrfID: e.vrf})
	}
	for _, e := range p.twice {
		yield(nat44_ed.Nat44AddressDetails{IPAddress: e.address, VrfID: e.vrf, Flags: nat_types.NAT_IS_TWICE_NAT})
	}
}

// changeTable makes the table of a VRF, or removes it with its routes.
func (p *ed) changeTable(q *nat44_ed.Nat44EdAddDelVrfTable, _ *nat44_ed.Nat44EdAddDelVrfTableReply) core.Errno {
	_, has := p.vrfs[q.TableVrfID]
	switch {
	case q.IsAdd && has:
		return api.VALUE_EXIST
	case !q.IsAdd && !has:
		return api.NO_SUCH_ENTRY
	case q.IsAdd:
		p.need(q.TableVrfID)
		p.vrfs[q.TableVrfID] = nil
	default:
		delete(p.vrfs, q.TableVrfID)
		delete(p.slots, q.TableVrfID)
	}
	p.tables.Collect()
	return core.OK
}

// changeRoute adds a route to a table or removes one. VPP does not make the table for it.
func (p *ed) changeRoute(q *nat44_ed.Nat44EdAddDelVrfRoute, _ *nat44_ed.Nat44EdAddDelVrfRouteReply) core.Errno {
	table, exists := p.vrfs[q.TableVrfID]
	at := slices.Index(table, q.VrfID)
	switch {
	case !exists || !q.IsAdd && at < 0:
		return api.NO_SUCH_ENTRY
	case q.IsAdd && at >= 0:
		return api.VALUE_EXIST
	case q.IsAdd:
		p.need(q.VrfID)
		p.vrfs[q.TableVrfID] = append(table, q.VrfID)
		p.slots[q.TableVrfID] = max(p.slots[q.TableVrfID], len(table)+1)
	default:
		p.vrfs[q.TableVrfID] = slices.Delete(table, at, at+1)
	}
	p.tables.Collect()
	return core.OK
}

// dumpTables lists the routes of each table, and not the table: VPP forgets to say which it is,
// and the order of the bytes (nat44_ed_api.c, nat44_ed_vrf_tables_send_details).
func (p *ed) dumpTables(_ *nat44_ed.Nat44EdVrfTablesDump, yield func(nat44_ed.Nat44EdVrfTablesDetails)) {
	p.eachTable(func(d nat44_ed.Nat44EdVrfTablesDetails) {
		d.TableVrfID = 0
		for i, r := range d.VrfIds {
			d.VrfIds[i] = r<<24 | r>>24 | r<<8&0xff0000 | r>>8&0xff00
		}
		yield(d)
	})
}

// dumpTablesV2 answers with details of the first version, as VPP does.
func (p *ed) dumpTablesV2(_ *nat44_ed.Nat44EdVrfTablesV2Dump, yield func(nat44_ed.Nat44EdVrfTablesDetails)) {
	p.eachTable(yield)
}

// eachTable yields the tables. In place of removed routes, VPP sends what it finds in memory
// behind the others. A client that trusts the number of routes then sees VRFs that nobody
// declared.
func (p *ed) eachTable(yield func(nat44_ed.Nat44EdVrfTablesDetails)) {
	const found = 0xdeadbeef
	for _, t := range slices.Sorted(maps.Keys(p.vrfs)) {
		d := nat44_ed.Nat44EdVrfTablesDetails{TableVrfID: t, NVrfIds: uint32(p.slots[t]), VrfIds: slices.Clone(p.vrfs[t])}
		for len(d.VrfIds) < p.slots[t] {
			d.VrfIds = append(d.VrfIds, found)
		}
		yield(d)
	}
}

// showTables prints the page in the real VPP's format (nat44_ed_cli.c), as clients of older
// releases read it.
func (p *ed) showTables() string {
	var b strings.Builder
	n := 0
	for _, t := range slices.Sorted(maps.Keys(p.vrfs)) {
		fmt.Fprintf(&b, "table %d:\n", t)
		for _, r := range p.vrfs[t] {
			fmt.Fprintf(&b, "[%d] vrf-id %d\n", n, r)
			n++
		}
	}
	return b.String()
}
