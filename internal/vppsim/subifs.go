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
		on(func(q *l2.L2InterfaceVlanTagRewrite) index { return q.SwIfIndex }, rewriteTags),
	}
}

// A rewriting is what one operation on tags of VLANs (VPP l2_vtr.h) takes away and pushes.
type rewriting struct{ pops, pushes uint8 }

func rewritings() []rewriting {
	return []rewriting{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {2, 0}, {1, 1}, {1, 2}, {2, 1}, {2, 2}}
}

// vlanRewrite is how the tags of an interface are rewritten.
type vlanRewrite struct{ op, push, tag1, tag2 uint32 }

// rewriteTags takes away only tags that the interface is known to have, and keeps only
// what is pushed.
func rewriteTags(w *world, i *iface, q *l2.L2InterfaceVlanTagRewrite, _ *l2.L2InterfaceVlanTagRewriteReply) errno {
	if q.VtrOp >= uint32(len(rewritings())) {
		return api.INVALID_VALUE
	}
	op := rewritings()[q.VtrOp]
	if op.pops > i.tags {
		return api.INVALID_VLAN_TAG_COUNT
	}
	rewrite := vlanRewrite{op: q.VtrOp}
	if op.pushes > 0 {
		rewrite.push, rewrite.tag1 = min(q.PushDot1q, 1), q.Tag1
	}
	if op.pushes > 1 {
		rewrite.tag2 = q.Tag2
	}
	w.l2.rewrites[i.index] = rewrite
	return ok
}

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
