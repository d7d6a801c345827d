package iface

import (
	"fmt"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// A subInterface is the device of a VLAN of another interface. It has the parent's link
// and no MAC address. It is deleted with its parent.
type subInterface struct{}

// maxVLAN is the largest VLAN ID that VPP accepts. The smallest is 1.
const maxVLAN = 4095

// subIfFlags: a sub-interface receives the packets that have exactly its one VLAN tag.
const subIfFlags = interface_types.SUB_IF_API_FLAG_ONE_TAG | interface_types.SUB_IF_API_FLAG_EXACT_MATCH

// subInterfaces registers the messages of VLAN sub-interfaces.
func (p plugin) subInterfaces() {
	p.vpp.Register(core.Plugin{Messages: []core.Message{
		core.On(p.vpp, func(q *vppif.CreateVlanSubif) index { return q.SwIfIndex }, p.createSubIf),
		core.On(p.vpp, func(q *vppif.DeleteSubif) index { return q.SwIfIndex },
			func(i *core.Interface, _ *vppif.DeleteSubif, _ *vppif.DeleteSubifReply) core.Errno {
				if !i.IsSub() {
					return api.INVALID_SUB_SW_IF_INDEX
				}
				p.vpp.Remove(i)
				return core.OK
			}),
	}})
}

// createSubIf makes a sub-interface that is down. A sub-interface of a sub-interface
// belongs to the main interface, so the VLAN IDs of both share one space. The name is the
// parent's with the VLAN ID, as in "loop0.100".
func (p plugin) createSubIf(parent *core.Interface, q *vppif.CreateVlanSubif, r *vppif.CreateVlanSubifReply) core.Errno {
	r.SwIfIndex = index(core.None)
	if q.VlanID == 0 || q.VlanID > maxVLAN {
		return api.INVALID_VLAN
	}
	for _, i := range p.vpp.Interfaces() {
		if i.IsSub() && i.Sup == parent.Sup && i.SubID == q.VlanID {
			return api.VLAN_ALREADY_EXISTS
		}
	}
	r.SwIfIndex = p.vpp.Create(&core.Interface{
		Name: fmt.Sprintf("%s.%d", parent.Name, q.VlanID), DevType: parent.DevType, Device: subInterface{},
		Kind: interface_types.IF_API_TYPE_SUB, Sup: parent.Sup, SubID: q.VlanID, Tags: 1, Outer: uint16(q.VlanID),
		SubFlags: subIfFlags, LinkMTU: parent.LinkMTU,
	})
	return core.OK
}
