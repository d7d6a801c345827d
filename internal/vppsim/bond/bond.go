// Package bond simulates bonds and their members. An interface is a member of one bond at
// most. Members are released when their bond is deleted.
//
// Members are kept by the index of the member, because an interface can be in one bond
// only. No packet is sent, so the state machines of LACP never run: a member is in its
// bond at once, and never active in a bond of LACP.
//
// Before 26.06, the link of a bond is up from its creation. Since then, it needs a member that is
// active: one that is up and has a link.
package bond

import (
	"fmt"
	"maps"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/bond"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// A device is the device of a bond: the request that created it, with VPP's choices.
type device struct {
	request bond.BondCreate2
	// mac is the address that members get. A later change of the bond's own address does not
	// change it (VPP cli.c, bond_add_member).
	mac ethernet_types.MacAddress
}

// A member is an interface in a bond.
type member struct {
	bond          uint32
	passive, long bool                      // the modes of LACP
	own           ethernet_types.MacAddress // the address that it had before, and gets back
}

// A plugin has the members of all bonds of one VPP.
type plugin struct {
	vpp     *core.VPP
	members map[uint32]member // by index of the member
}

type index = interface_types.InterfaceIndex

// New adds the plugin. Deleting an interface that is no bond is refused with
// INVALID_SW_IF_INDEX.
func New(vpp *core.VPP) {
	p := &plugin{vpp, map[uint32]member{}}
	vpp.Register(core.Plugin{
		Messages: []core.Message{
			core.Call(p.create),
			core.Call(func(q *bond.BondDelete, _ *bond.BondDeleteReply) core.Errno {
				return core.Delete[*device](vpp, q.SwIfIndex, api.INVALID_SW_IF_INDEX)
			}),
			core.On(vpp, func(q *bond.BondAddMember) index { return q.SwIfIndex }, p.addMember),
			core.Call(p.detach),
			core.Dump(p.dumpBonds),
			core.Dump(p.dumpMembers),
		},
		Flags: func(i *core.Interface) {
			if m, is := p.members[i.Index]; is {
				p.followMembers(m.bond)
			}
		},
		Removing: func(i *core.Interface) {
			for _, at := range slices.Sorted(maps.Keys(p.members)) {
				if at == i.Index || p.members[at].bond == i.Index {
					p.release(at)
				}
			}
		},
	})
}

// create makes a bond that is down, and has a random MAC address unless the
// request has one. The mode decides how VPP spreads the load, whatever the request says;
// only LACP and XOR leave the choice.
func (p *plugin) create(q *bond.BondCreate2, r *bond.BondCreate2Reply) core.Errno {
	r.SwIfIndex = index(core.None)
	switch q.Mode {
	case bond.BOND_API_MODE_ROUND_ROBIN:
		q.Lb = bond.BOND_API_LB_ALGO_RR
	case bond.BOND_API_MODE_ACTIVE_BACKUP:
		q.Lb = bond.BOND_API_LB_ALGO_AB
	case bond.BOND_API_MODE_BROADCAST:
		q.Lb = bond.BOND_API_LB_ALGO_BC
	case bond.BOND_API_MODE_LACP:
		if slices.Contains(p.vpp.Options.Without, "lacp") {
			return api.FEATURE_DISABLED
		}
	case bond.BOND_API_MODE_XOR:
	default:
		return api.INVALID_ARGUMENT
	}
	number, free := p.vpp.Number("bond", q.ID)
	if !free {
		return api.INSTANCE_IN_USE
	}
	q.ID = number.N
	d := &device{request: *q}
	i := &core.Interface{
		Name: fmt.Sprintf("BondEthernet%d", number.N), DevType: "bond", Device: d, Number: number, MAC: q.MacAddress,
		NoLink: true, LinkMTU: 9000, MTU: [4]uint32{9000},
	}
	if p.vpp.Before("26.06") {
		i.NoLink, i.Flags = false, core.LinkUp
	}
	r.SwIfIndex = p.vpp.Create(i)
	if !q.UseCustomMac || i.MAC == (ethernet_types.MacAddress{}) {
		i.MAC = core.RandomMAC(i.Index)
	}
	d.mac = i.MAC
	return core.OK
}

// addMember accepts any interface, also a loopback, but no member of another bond. VPP dies of one
// without a MAC address, which it copies. The member gets the MAC address of the bond. A bond that
// was created without one gets the address of its first member instead.
func (p *plugin) addMember(i *core.Interface, q *bond.BondAddMember, _ *bond.BondAddMemberReply) core.Errno {
	to := p.vpp.Interface(uint32(q.BondSwIfIndex))
	if to == nil {
		return api.INVALID_INTERFACE
	}
	d, is := to.Device.(*device)
	if !is {
		return api.INVALID_INTERFACE
	}
	if _, in := p.members[i.Index]; in {
		return api.VALUE_EXIST
	}
	if !p.vpp.HasMAC(i) {
		return core.Crash
	}
	first := p.count(to.Index) == 0
	p.members[i.Index] = member{to.Index, q.IsPassive, q.IsLongTimeout, i.MAC}
	if first && !d.request.UseCustomMac {
		d.mac, to.MAC = i.MAC, i.MAC
	}
	i.MAC = d.mac
	p.followMembers(to.Index)
	return core.OK
}

// followMembers gives a bond a link if a member is active.
func (p *plugin) followMembers(at uint32) {
	i := p.vpp.Interface(at)
	if p.vpp.Before("26.06") || i == nil {
		return
	}
	active := false
	for index, m := range p.members {
		one := p.vpp.Interface(index)
		active = active || m.bond == at && one != nil && one.Flags == core.AdminUp|core.LinkUp
	}
	d := i.Device.(*device)
	p.vpp.SetLink(i, active && d.request.Mode != bond.BOND_API_MODE_LACP)
}

// release takes an interface out of its bond. It gets the MAC address back that it had before.
func (p *plugin) release(at uint32) {
	m := p.members[at]
	if i := p.vpp.Interface(at); i != nil {
		i.MAC = m.own
	}
	delete(p.members, at)
	p.followMembers(m.bond)
}

// count returns the number of members of a bond.
func (p *plugin) count(bond uint32) (n uint32) {
	for _, m := range p.members {
		if m.bond == bond {
			n++
		}
	}
	return n
}

// detach releases a member. An unknown index is refused like any other interface that is
// no member before 25.10.
func (p *plugin) detach(q *bond.BondDetachMember, _ *bond.BondDetachMemberReply) core.Errno {
	if _, errno := p.vpp.At(q.SwIfIndex); errno != core.OK && !p.vpp.Before("25.10") {
		return errno
	}
	if _, is := p.members[uint32(q.SwIfIndex)]; !is {
		return api.INVALID_INTERFACE
	}
	p.release(uint32(q.SwIfIndex))
	return core.OK
}

// dumpBonds lists one bond, or all for ~0.
func (p *plugin) dumpBonds(q *bond.SwBondInterfaceDump, yield func(bond.SwBondInterfaceDetails)) {
	for i, b := range core.Each[*device](p.vpp, q.SwIfIndex) {
		yield(bond.SwBondInterfaceDetails{
			SwIfIndex: index(i.Index), ID: b.request.ID, Mode: b.request.Mode, Lb: b.request.Lb, NumaOnly: b.request.NumaOnly,
			Members: p.count(i.Index), InterfaceName: i.Name,
		})
	}
}

// dumpMembers lists the members of one bond.
func (p *plugin) dumpMembers(q *bond.SwMemberInterfaceDump, yield func(bond.SwMemberInterfaceDetails)) {
	for _, i := range p.vpp.Interfaces() {
		if m, is := p.members[i.Index]; is && m.bond == uint32(q.SwIfIndex) {
			yield(bond.SwMemberInterfaceDetails{
				SwIfIndex: index(i.Index), InterfaceName: i.Name, IsPassive: m.passive, IsLongTimeout: m.long,
			})
		}
	}
}
