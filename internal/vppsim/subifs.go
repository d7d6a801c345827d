package vppsim

import (
	"fmt"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
)

// A subDevice is what a VLAN of another interface has.
type subDevice struct{}

func (subDevice) gone(*world, *iface) {}

func subIfMessages() []entry {
	type index = interface_types.InterfaceIndex
	return []entry{
		on(func(q *vppif.CreateVlanSubif) index { return q.SwIfIndex }, createSubIf),
		on(func(q *vppif.DeleteSubif) index { return q.SwIfIndex },
			func(w *world, i *iface, _ *vppif.DeleteSubif, _ *vppif.DeleteSubifReply) errno {
				if i.kind != interface_types.IF_API_TYPE_SUB {
					return api.INVALID_SUB_SW_IF_INDEX
				}
				w.remove(i)
				return ok
			}),
		on(func(q *l2.L2InterfaceVlanTagRewrite) index { return q.SwIfIndex },
			func(w *world, i *iface, q *l2.L2InterfaceVlanTagRewrite, _ *l2.L2InterfaceVlanTagRewriteReply) errno {
				if pops := q.VtrOp >= vtrPop1; pops && i.kind != interface_types.IF_API_TYPE_SUB {
					return api.INVALID_VLAN_TAG_COUNT
				}
				i.vtr = vlanRewrite{q.VtrOp, q.PushDot1q, q.Tag1, q.Tag2}
				return ok
			}),
	}
}

// vtrPop1 is the first rewriting that takes a tag away (VPP l2_vtr.h).
const vtrPop1 = 3

// A sub-interface takes exactly the packets with its one tag.
const subIfFlags = interface_types.SUB_IF_API_FLAG_ONE_TAG | interface_types.SUB_IF_API_FLAG_EXACT_MATCH

func createSubIf(w *world, parent *iface, q *vppif.CreateVlanSubif, r *vppif.CreateVlanSubifReply) errno {
	r.SwIfIndex = interface_types.InterfaceIndex(none)
	if q.VlanID == 0 || q.VlanID > 4095 {
		return api.INVALID_VLAN
	}
	for _, i := range w.interfaces.byIndex {
		if i.kind == interface_types.IF_API_TYPE_SUB && i.sup == parent.sup && i.subID == q.VlanID {
			return api.VLAN_ALREADY_EXISTS
		}
	}
	r.SwIfIndex = interface_types.InterfaceIndex(w.create(&iface{
		name: fmt.Sprintf("%s.%d", parent.name, q.VlanID), devType: parent.devType, device: subDevice{},
		kind: interface_types.IF_API_TYPE_SUB, sup: parent.sup, subID: q.VlanID, tags: 1, outer: uint16(q.VlanID),
		subFlags: subIfFlags, linkMTU: parent.linkMTU,
	}))
	return ok
}
