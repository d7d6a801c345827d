package kinds

import (
	"context"
	"fmt"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// subKind is the kind of SUB_INTERFACE: one VLAN of another interface, with the MAC
// address and the MTU of its parent.
func subKind() Kind {
	return Kind{
		Link:  "sub",
		NoMAC: true, NoMTU: true,
		Validate: validateSub,
		SameLink: func(old, new *interfaces.Interface) bool {
			return proto.Equal(effectiveTags(old.GetSub()), effectiveTags(new.GetSub()))
		},
		Recreate: func(old, new *interfaces.Interface) bool {
			a, b := old.GetSub(), new.GetSub()
			return a.GetParentName() != b.GetParentName() || a.GetSubId() != b.GetSubId()
		},
		Dependencies: func(v *interfaces.Interface) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: "parent-interface-exists", Key: keys.Interface(v.GetSub().GetParentName()).Key()}}
		},
		Create:    createSub,
		Configure: RewriteTags,
		Update: func(context.Context, *Env, ifindex.Meta, *interfaces.Interface, *interfaces.Interface) error {
			return nil // Configure rewrites the tags
		},
		Delete:   deleteSub,
		Retrieve: retrieveSubs, Learn: learnSubs,
	}
}

// validateSub refuses operations that need two tags: create_vlan_subif makes an interface
// for packets with exactly one.
func validateSub(f *Findings, v *interfaces.Interface) {
	s := v.GetSub()
	if s.GetParentName() == "" || s.GetParentName() == v.GetName() {
		f.Add("sub.parent_name", s.GetParentName(), "the name of another interface")
	}
	switch op := s.GetTagRwOption(); op {
	case interfaces.SubInterface_DISABLED, interfaces.SubInterface_PUSH1, interfaces.SubInterface_PUSH2,
		interfaces.SubInterface_POP1, interfaces.SubInterface_TRANSLATE11, interfaces.SubInterface_TRANSLATE12:
	default:
		f.Add("sub.tag_rw_option", op, "DISABLED, PUSH1, PUSH2, POP1, TRANSLATE11 or TRANSLATE12: there is but one tag to take away")
	}
}

// effectiveTags returns the fields of s that have an effect. Only pushed tags do.
func effectiveTags(s *interfaces.SubInterface) *interfaces.SubInterface {
	out := &interfaces.SubInterface{ParentName: s.GetParentName(), SubId: s.GetSubId(), TagRwOption: s.GetTagRwOption()}
	switch s.GetTagRwOption() {
	case interfaces.SubInterface_PUSH2, interfaces.SubInterface_TRANSLATE12:
		out.Tag2 = s.GetTag2()
		fallthrough
	case interfaces.SubInterface_PUSH1, interfaces.SubInterface_TRANSLATE11:
		out.Tag1, out.PushDot1Q = s.GetTag1(), s.GetPushDot1Q()
	default: // the other operations push no tag
	}
	return out
}

// createSub creates the sub-interface on its parent, which the dependency guarantees. The
// parent may still be deleted at this moment by somebody else. VPP would take the parent of a
// parent that is a sub-interface itself (interface_api.c, vl_api_create_vlan_subif_t_handler).
func createSub(ctx context.Context, e *Env, v *interfaces.Interface) (uint32, error) {
	name := v.GetSub().GetParentName()
	parent, ok := e.Interfaces.Get(name)
	if !ok {
		return 0, fmt.Errorf("%s: %w", name, ErrNotThere)
	}
	if parent.Parent != parent.Index {
		return 0, scheduler.Terminal(fmt.Errorf("sub.parent_name is %q, which is a sub-interface; expected an interface that is none", name))
	}
	reply := &vppif.CreateVlanSubifReply{}
	err := e.API.Call(ctx, &vppif.CreateVlanSubif{SwIfIndex: parent.SwIfIndex(), VlanID: v.GetSub().GetSubId()}, reply)
	return uint32(reply.SwIfIndex), err
}

// RewriteTags sets the rewriting of VLAN tags. VPP numbers the operations as the model
// does (VPP l2_vtr.h). A nil v stands for no rewriting.
func RewriteTags(ctx context.Context, e *Env, index uint32, v *interfaces.Interface) error {
	s := v.GetSub()
	request := &l2.L2InterfaceVlanTagRewrite{
		SwIfIndex: interface_types.InterfaceIndex(index), VtrOp: uint32(s.GetTagRwOption()), Tag1: s.GetTag1(), Tag2: s.GetTag2(),
	}
	if s.GetPushDot1Q() {
		request.PushDot1q = 1
	}
	set := func() error { return e.API.Call(ctx, request, &l2.L2InterfaceVlanTagRewriteReply{}) }
	if request.VtrOp == 0 {
		return e.Leftovers.End(index, rewriteMark, set)
	}
	return e.Leftovers.Set(index, v.GetName(), rewriteMark, e.endRewrite, set)
}

// rewriteMark names the rewriting among the leftovers of an index. VPP keeps it for the next
// interface with that index.
const rewriteMark = "rewriting of tags"

// endRewrite ends the rewriting of an index.
func (e *Env) endRewrite(ctx context.Context, at interface_types.InterfaceIndex) error {
	return RewriteTags(ctx, e, uint32(at), nil)
}

// deleteSub ends the tag rewriting first, as the next interface with the index would
// inherit it.
func deleteSub(ctx context.Context, e *Env, v *interfaces.Interface, meta ifindex.Meta) error {
	if v.GetSub().GetTagRwOption() != interfaces.SubInterface_DISABLED {
		if err := RewriteTags(ctx, e, meta.Index, nil); err != nil {
			return err
		}
	}
	return e.API.Call(ctx, &vppif.DeleteSubif{SwIfIndex: meta.SwIfIndex()}, &vppif.DeleteSubifReply{})
}

// retrieveSubs reads all from the dump of interfaces; VPP has no dump of sub-interfaces.
func retrieveSubs(_ context.Context, _ *Env, all map[uint32]*Found) error {
	for _, f := range all {
		d := f.Details
		if d.Type != interface_types.IF_API_TYPE_SUB {
			continue
		}
		link := &interfaces.SubInterface{
			SubId: d.SubID, TagRwOption: interfaces.SubInterface_TagRewriteOptions(d.VtrOp), PushDot1Q: d.VtrPushDot1q != 0,
			Tag1: d.VtrTag1, Tag2: d.VtrTag2,
		}
		if parent := all[d.SupSwIfIndex]; parent != nil {
			link.ParentName = parent.Value.GetName()
			f.Value.Enabled = f.Value.GetEnabled() || awaits(f, parent)
		}
		f.Value.Type, f.Value.Link = interfaces.Interface_SUB_INTERFACE, &interfaces.Interface_Sub{Sub: link}
	}
	return nil
}

// awaits reports whether only its parent keeps a sub-interface from being enabled. VPP does not enable
// a sub-interface while its parent is disabled.
func awaits(f, parent *Found) bool {
	return parent.Details.Flags&AdminUp == 0 && f.Desired.GetEnabled()
}

// learnSubs notes the rewriting of tags, also of interfaces whose deletion the agent has not seen, and
// the disabled parents.
func learnSubs(e *Env, all map[uint32]*Found) {
	for _, f := range all {
		d := f.Details
		if d.Type != interface_types.IF_API_TYPE_SUB {
			continue
		}
		// Only of our own interfaces: those of others are not ours to clean.
		switch {
		case d.Tag == "":
		case d.VtrOp == 0:
			e.Leftovers.Ended(f.Meta.Index, rewriteMark)
		default:
			e.Leftovers.Note(f.Meta.Index, d.Tag, rewriteMark, e.endRewrite)
		}
		if parent := all[d.SupSwIfIndex]; parent != nil && awaits(f, parent) {
			e.AwaitedParents.Add(parent.Value.GetName())
		}
	}
}
