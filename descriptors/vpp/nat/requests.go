package nat

import (
	"errors"
	"net/netip"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat44_ei"
	"go.fd.io/govpp/binapi/nat_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
)

// serves: the endpoint-dependent plugin has every kind of mapping.
func (edPlugin) serves(mapping) bool { return true }

func (edPlugin) readMappings(r *reader) error {
	return errors.Join(r.static(), r.balanced(), r.identity())
}

// mapping returns the request to add a mapping, or to remove it.
func (p edPlugin) mapping(tag string, m mapping, at interface_types.InterfaceIndex, add bool) *conn.Step {
	var flags nat_types.NatConfigFlags
	if m.port == 0 {
		flags |= nat_types.NAT_IS_ADDR_ONLY
	}
	if m.identity {
		return conn.Ask(&nat44_ed.Nat44AddDelIdentityMapping{
			IsAdd: add, Flags: flags, IPAddress: as4(m.addr), Protocol: m.protocol, Port: m.port, SwIfIndex: at, VrfID: m.vrf, Tag: tag,
		}, &nat44_ed.Nat44AddDelIdentityMappingReply{})
	}
	// Without this flag, VPP keeps the local side, too, and refuses a second external side
	// for it.
	flags |= nat_types.NAT_IS_OUT2IN_ONLY
	switch m.twice {
	case nat.DNat44_StaticMapping_ENABLED:
		flags |= nat_types.NAT_IS_TWICE_NAT
	case nat.DNat44_StaticMapping_SELF:
		flags |= nat_types.NAT_IS_SELF_TWICE_NAT
	case nat.DNat44_StaticMapping_DISABLED:
	}
	if m.balanced != "" {
		q := &nat44_ed.Nat44AddDelLbStaticMapping{
			IsAdd: add, Flags: flags, ExternalAddr: as4(m.addr), ExternalPort: m.port, Protocol: m.protocol, Affinity: m.affinity, Tag: tag,
		}
		for _, l := range m.locals() {
			q.Locals = append(q.Locals, nat44_ed.Nat44LbAddrPort{Addr: as4(l.addr), Port: l.port, Probability: l.probability, VrfID: l.vrf})
		}
		q.LocalNum = uint32(len(q.Locals))
		return conn.Ask(q, &nat44_ed.Nat44AddDelLbStaticMappingReply{})
	}
	// Only the second version has the address of twice-NAT. VPP ignores it on removal, so
	// the first version suffices there.
	if add && m.pool.IsValid() {
		return conn.Ask(&nat44_ed.Nat44AddDelStaticMappingV2{
			IsAdd: true, MatchPool: true, PoolIPAddress: as4(m.pool), Flags: flags, LocalIPAddress: as4(m.local.addr), ExternalIPAddress: as4(m.addr),
			Protocol: m.protocol, LocalPort: m.local.port, ExternalPort: m.port, ExternalSwIfIndex: p.orNone(at), VrfID: m.local.vrf, Tag: tag,
		}, &nat44_ed.Nat44AddDelStaticMappingV2Reply{})
	}
	// Here ~0 means no interface in all releases, so orNone is not needed.
	return conn.Ask(&nat44_ed.Nat44AddDelStaticMapping{
		IsAdd: add, Flags: flags, LocalIPAddress: as4(m.local.addr), ExternalIPAddress: as4(m.addr), Protocol: m.protocol,
		LocalPort: m.local.port, ExternalPort: m.port, ExternalSwIfIndex: at, VrfID: m.local.vrf, Tag: tag,
	}, &nat44_ed.Nat44AddDelStaticMappingReply{})
}

// orNone returns the index for the second version of the request. Until 22.10, VPP takes ~0 for
// an interface there, and 0 for none. A message that came with 23.02 tells the releases apart.
func (p edPlugin) orNone(at interface_types.InterfaceIndex) interface_types.InterfaceIndex {
	if at == noInterface && !p.api.Has(&nat44_ed.Nat44UserSessionV3Dump{}) {
		return 0
	}
	return at
}

// serves: the endpoint-independent plugin has neither several local sides nor twice-NAT. It has
// mappings of an interface's address, but follows only addresses that it may also use for all
// other translations (nat44_ei_ip4_add_del_interface_address_cb). No value can declare that. An
// identity mapping of several VRFs is several of these; see sharePort.
func (eiPlugin) serves(m mapping) bool {
	return m.balanced == "" && m.link == "" && m.twice == nat.DNat44_StaticMapping_DISABLED
}

// mapping returns the request to add a mapping, or to remove it. This plugin has no flag for
// mappings that translate only what comes from outside.
func (eiPlugin) mapping(tag string, m mapping, at interface_types.InterfaceIndex, add bool) *conn.Step {
	var flags nat44_ei.Nat44EiConfigFlags
	if m.port == 0 {
		flags = nat44_ei.NAT44_EI_ADDR_ONLY_MAPPING
	}
	if m.identity {
		return conn.Ask(&nat44_ei.Nat44EiAddDelIdentityMapping{
			IsAdd: add, Flags: flags, IPAddress: as4(m.addr), Protocol: m.protocol, Port: m.port, SwIfIndex: at, VrfID: m.vrf, Tag: tag,
		}, &nat44_ei.Nat44EiAddDelIdentityMappingReply{})
	}
	return conn.Ask(&nat44_ei.Nat44EiAddDelStaticMapping{
		IsAdd: add, Flags: flags, LocalIPAddress: as4(m.local.addr), ExternalIPAddress: as4(m.addr), Protocol: m.protocol,
		LocalPort: m.local.port, ExternalPort: m.port, ExternalSwIfIndex: at, VrfID: m.local.vrf, Tag: tag,
	}, &nat44_ei.Nat44EiAddDelStaticMappingReply{})
}

// readMappings leaves out the mappings of interfaces, which no value can declare here.
func (p eiPlugin) readMappings(r *reader) error {
	static, err := conn.Dump[nat44_ei.Nat44EiStaticMappingDetails](r.ctx, p.api, &nat44_ei.Nat44EiStaticMappingDump{})
	if err != nil {
		return err
	}
	for _, d := range static {
		m := mapping{
			place: p.placeOf(d.ExternalIPAddress, d.ExternalPort, d.Protocol, d.Flags),
			local: local{addr: netip.AddrFrom4(d.LocalIPAddress), port: d.LocalPort, vrf: d.VrfID},
		}
		if err := r.take(d.Tag, m, d.ExternalSwIfIndex, d.ExternalSwIfIndex == noInterface); err != nil {
			return err
		}
	}
	identity, err := conn.Dump[nat44_ei.Nat44EiIdentityMappingDetails](r.ctx, p.api, &nat44_ei.Nat44EiIdentityMappingDump{})
	if err != nil {
		return err
	}
	for _, d := range identity {
		m := mapping{place: p.placeOf(d.IPAddress, d.Port, d.Protocol, d.Flags), identity: true, vrf: d.VrfID}
		if err := r.take(d.Tag, m, d.SwIfIndex, d.SwIfIndex == noInterface); err != nil {
			return err
		}
	}
	return nil
}

// placeOf is placeOf with this plugin's flags.
func (eiPlugin) placeOf(addr [4]byte, port uint16, protocol uint8, flags nat44_ei.Nat44EiConfigFlags) place {
	var same nat_types.NatConfigFlags
	if flags&nat44_ei.NAT44_EI_ADDR_ONLY_MAPPING != 0 {
		same = nat_types.NAT_IS_ADDR_ONLY
	}
	return placeOf(addr, port, protocol, same)
}
