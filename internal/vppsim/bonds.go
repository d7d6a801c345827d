package vppsim

import (
	"fmt"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/bond"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/interface_types"
)

// A bondDevice is the device of a bond.
type bondDevice struct{ q bond.BondCreate2 }

func (b bondDevice) gone(w *world, i *iface) {
	w.interfaces.release("bond", b.q.ID)
	for member, m := range w.bonded {
		if m.bond == i.index {
			delete(w.bonded, member)
		}
	}
}

// A bondMember is an interface in a bond.
type bondMember struct {
	bond          uint32
	passive, long bool
}

func bondMessages() []entry {
	type index = interface_types.InterfaceIndex
	return []entry{
		call(createBond),
		on(func(q *bond.BondDelete) index { return q.SwIfIndex },
			func(w *world, i *iface, _ *bond.BondDelete, _ *bond.BondDeleteReply) errno {
				if _, is := i.device.(bondDevice); !is {
					return api.INVALID_SW_IF_INDEX
				}
				w.remove(i)
				return ok
			}),
		on(func(q *bond.BondAddMember) index { return q.SwIfIndex }, addBondMember),
		call(func(w *world, q *bond.BondDetachMember, _ *bond.BondDetachMemberReply) errno {
			if _, errno := w.at(q.SwIfIndex); errno != ok && !w.before("25.10") {
				return errno
			}
			if _, is := w.bonded[uint32(q.SwIfIndex)]; !is {
				return api.INVALID_INTERFACE
			}
			delete(w.bonded, uint32(q.SwIfIndex))
			return ok
		}),
		dump(func(w *world, q *bond.SwBondInterfaceDump, yield func(bond.SwBondInterfaceDetails)) {
			for _, i := range w.interfaces.sorted() {
				b, is := i.device.(bondDevice)
				if !is || uint32(q.SwIfIndex) != none && uint32(q.SwIfIndex) != i.index {
					continue
				}
				members := uint32(0)
				for _, m := range w.bonded {
					if m.bond == i.index {
						members++
					}
				}
				yield(bond.SwBondInterfaceDetails{
					SwIfIndex: index(i.index), ID: b.q.ID, Mode: b.q.Mode, Lb: b.q.Lb, NumaOnly: b.q.NumaOnly, Members: members, InterfaceName: i.name,
				})
			}
		}),
		dump(func(w *world, q *bond.SwMemberInterfaceDump, yield func(bond.SwMemberInterfaceDetails)) {
			for _, i := range w.interfaces.sorted() {
				if m, is := w.bonded[i.index]; is && m.bond == uint32(q.SwIfIndex) {
					yield(bond.SwMemberInterfaceDetails{SwIfIndex: index(i.index), InterfaceName: i.name, IsPassive: m.passive, IsLongTimeout: m.long})
				}
			}
		}),
	}
}

// createBond: how the load is spread follows the mode, but for LACP and XOR.
func createBond(w *world, q *bond.BondCreate2, r *bond.BondCreate2Reply) errno {
	r.SwIfIndex = interface_types.InterfaceIndex(none)
	switch q.Mode {
	case bond.BOND_API_MODE_ROUND_ROBIN:
		q.Lb = bond.BOND_API_LB_ALGO_RR
	case bond.BOND_API_MODE_ACTIVE_BACKUP:
		q.Lb = bond.BOND_API_LB_ALGO_AB
	case bond.BOND_API_MODE_BROADCAST:
		q.Lb = bond.BOND_API_LB_ALGO_BC
	case bond.BOND_API_MODE_XOR, bond.BOND_API_MODE_LACP:
	default:
		return api.INVALID_ARGUMENT
	}
	id, free := w.interfaces.instance("bond", q.ID != none, q.ID)
	if !free {
		return api.INSTANCE_IN_USE
	}
	q.ID = id
	i := &iface{
		name: fmt.Sprintf("BondEthernet%d", id), devType: "bond", device: bondDevice{*q}, mac: q.MacAddress,
		flags: linkUp, linkMTU: 9000, mtu: [4]uint32{9000},
	}
	r.SwIfIndex = interface_types.InterfaceIndex(w.create(i))
	if !q.UseCustomMac || i.mac == (ethernet_types.MacAddress{}) {
		i.mac = randomMAC(i.index)
	}
	return ok
}

func addBondMember(w *world, i *iface, q *bond.BondAddMember, _ *bond.BondAddMemberReply) errno {
	to := w.interfaces.byIndex[uint32(q.BondSwIfIndex)]
	if to == nil {
		return api.INVALID_INTERFACE
	}
	if _, is := to.device.(bondDevice); !is {
		return api.INVALID_INTERFACE
	}
	if _, in := w.bonded[i.index]; in {
		return api.VALUE_EXIST
	}
	w.bonded[i.index] = bondMember{to.index, q.IsPassive, q.IsLongTimeout}
	return ok
}
