package l2

import (
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/l2"

	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// A rewrite is the rewriting of VLAN tags on an interface. The next interface of the same
// index inherits it, unless the old one was cross-connected.
type rewrite struct{ op, push, tag1, tag2 uint32 }

// An operation is the number of tags that a rewrite removes and pushes.
type operation struct{ pops, pushes uint8 }

// operations returns the operations by their numbers (VPP l2_vtr.h): disabled, push 1 and
// 2, pop 1 and 2, and the four translations.
func operations() []operation {
	return []operation{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {2, 0}, {1, 1}, {1, 2}, {2, 1}, {2, 2}}
}

// rewriteMessages returns the messages of tag rewriting, which outlives the interface.
func (p *L2) rewriteMessages() []core.Message {
	return []core.Message{
		core.On(p.vpp, func(q *l2.L2InterfaceVlanTagRewrite) index { return q.SwIfIndex }, p.setRewrite),
	}
}

// setRewrite refuses to remove more tags than the packets of the interface have: a main
// interface has none, and a sub-interface has one. It ignores tags that the operation does
// not push.
func (p *L2) setRewrite(i *core.Interface, q *l2.L2InterfaceVlanTagRewrite, _ *l2.L2InterfaceVlanTagRewriteReply) core.Errno {
	if q.VtrOp >= uint32(len(operations())) {
		return api.INVALID_VALUE
	}
	op := operations()[q.VtrOp]
	if op.pops > i.Tags {
		return api.INVALID_VLAN_TAG_COUNT
	}
	r := rewrite{op: q.VtrOp}
	if op.pushes > 0 {
		r.push, r.tag1 = min(q.PushDot1q, 1), q.Tag1
	}
	if op.pushes > 1 {
		r.tag2 = q.Tag2
	}
	p.rewrites[i.Index] = r
	return core.OK
}
