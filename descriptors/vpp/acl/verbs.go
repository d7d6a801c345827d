package acl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"go.fd.io/govpp/api"
	vppacl "go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/proto/ligato/vpp/acl"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// none is no list: in requests it asks for a new one, or for all of them (~0).
const none = ^uint32(0)

// create makes a list. A list with the same name that an earlier attempt made, whose answer
// was lost, is reused: VPP would keep both.
func (h *handler) create(ctx context.Context, _ string, v *acl.ACL) (Meta, error) {
	meta := Meta{Index: none, MACIP: isMACIP(v)}
	if earlier, ok := h.existing(ctx, v); ok {
		meta = earlier
	}
	meta, err := h.set(ctx, v, meta)
	if err == nil {
		h.remember(v.GetName(), meta)
	}
	return meta, err
}

// existing returns the list of this name and kind that is known, if it still exists. Its number
// may belong to another list meanwhile.
func (h *handler) existing(ctx context.Context, v *acl.ACL) (Meta, bool) {
	h.mu.Lock()
	meta, ok := h.known[v.GetName()]
	h.mu.Unlock()
	if !ok || meta.MACIP != isMACIP(v) {
		return Meta{}, false
	}
	if meta.MACIP {
		all, err := conn.Dump[vppacl.MacipACLDetails](ctx, h.API, &vppacl.MacipACLDump{ACLIndex: meta.Index})
		return meta, err == nil && len(all) == 1 && all[0].Tag == v.GetName()
	}
	all, err := conn.Dump[vppacl.ACLDetails](ctx, h.API, &vppacl.ACLDump{ACLIndex: meta.Index})
	return meta, err == nil && len(all) == 1 && all[0].Tag == v.GetName()
}

// remember records the number of a list that was made.
func (h *handler) remember(name string, meta Meta) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known[name] = meta
}

// forget drops a list that was deleted.
func (h *handler) forget(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.known, name)
}

// update replaces all rules of a list. It stays in place on its interfaces: no packet meets
// half of the rules.
func (h *handler) update(ctx context.Context, _ string, _, v *acl.ACL, meta Meta) (Meta, error) {
	return h.set(ctx, v, meta)
}

// set makes the list of meta, or a new one (VPP acl_add_replace, macip_acl_add_replace).
func (h *handler) set(ctx context.Context, v *acl.ACL, meta Meta) (Meta, error) {
	if meta.MACIP {
		reply := &vppacl.MacipACLAddReplaceReply{}
		err := h.API.Call(ctx, &vppacl.MacipACLAddReplace{ACLIndex: meta.Index, Tag: v.GetName(), R: macipRules(v)}, reply)
		return Meta{Index: reply.ACLIndex, MACIP: true}, err
	}
	reply := &vppacl.ACLAddReplaceReply{}
	err := h.API.Call(ctx, &vppacl.ACLAddReplace{ACLIndex: meta.Index, Tag: v.GetName(), R: ipRules(v)}, reply)
	return Meta{Index: reply.ACLIndex}, err
}

// delete removes a list. VPP refuses to remove an IP list that an interface has, so it is
// taken off interfaces that the agent does not know. VPP takes a MACIP list off by itself.
func (h *handler) delete(ctx context.Context, _ string, v *acl.ACL, meta Meta) error {
	remove := func() error {
		if meta.MACIP {
			return h.API.Call(ctx, &vppacl.MacipACLDel{ACLIndex: meta.Index}, &vppacl.MacipACLDelReply{})
		}
		return h.API.Call(ctx, &vppacl.ACLDel{ACLIndex: meta.Index}, &vppacl.ACLDelReply{})
	}
	err := remove()
	if errors.Is(err, api.ACL_IN_USE_INBOUND) || errors.Is(err, api.ACL_IN_USE_OUTBOUND) {
		err = h.takeOff(ctx, meta.Index)
		if err == nil {
			err = remove()
		}
	}
	if err != nil && !errors.Is(err, api.NO_SUCH_ENTRY) {
		return err
	}
	h.forget(v.GetName())
	return nil
}

// takeOff takes an IP list off all interfaces that have it.
func (h *handler) takeOff(ctx context.Context, list uint32) error {
	all, err := h.applied(ctx, allInterfaces)
	if err != nil {
		return err
	}
	for _, d := range all {
		if slices.Contains(d.Acls, list) {
			if err := h.takeOffOne(ctx, list, d.SwIfIndex); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeOffOne takes an IP list off an interface. Its vector is read again, since another request may
// have changed it before this one's turn.
func (h *handler) takeOffOne(ctx context.Context, list uint32, index interface_types.InterfaceIndex) error {
	end, err := h.attached.at(index).begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	all, err := h.applied(ctx, index)
	if err != nil {
		return err
	}
	for _, d := range all {
		is := func(one uint32) bool { return one == list }
		in, out := slices.DeleteFunc(slices.Clone(d.Acls[:d.NInput]), is), slices.DeleteFunc(slices.Clone(d.Acls[d.NInput:]), is)
		if err := h.apply(ctx, index, in, out); err != nil {
			return err
		}
	}
	return nil
}

type found = scheduler.Found[*acl.ACL, Meta]

// tagged has the tag of a list, without the mark of its owner, under the name of vpp-agent 3.5.
type tagged struct {
	Tag string `json:"acl_tag"`
}

// retrieve yields all lists with their interfaces. An interface without a name is left out: it
// is deleted, or not the agent's. If the read learns, it renews the knowledge of what interfaces
// have. Otherwise verbs may run beside it.
func (h *handler) retrieve(ctx context.Context, wanted []scheduler.Desired[*acl.ACL]) iter.Seq2[found, error] {
	return reading.Of(func(learns bool, yield func(found, error) bool) {
		declared := make(map[string]bool, len(wanted))
		for _, w := range wanted {
			declared[w.Value.GetName()] = true
			h.Tags.Expect(w.Value.GetName())
		}
		all, err := h.read(ctx, learns, declared)
		if err != nil {
			yield(found{}, err)
			return
		}
		if learns {
			h.rememberAll(all)
		}
		for _, one := range all {
			tag := one.Value.GetName()
			one.Foreign = tag == "" || h.Tags.Foreign(tag)
			one.OwnerUnknown = h.ownerUnknown(tag, declared)
			one.Value.Name = nameOf(tag, one.Meta.Index, one.Meta.MACIP)
			if !yield(one, nil) {
				return
			}
		}
	})
}

// ownerUnknown reports whether a list may be that of another program: its tag has no owner, and no
// declared list has this name.
func (h *handler) ownerUnknown(tag string, declared map[string]bool) bool {
	return !declared[tag] && h.Tags.Unsigned(tag)
}

// rememberAll replaces the known numbers by those of a dump, in which names are tags.
func (h *handler) rememberAll(all []found) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known = map[string]Meta{}
	for _, one := range all {
		h.Tags.Learn(one.Value.GetName())
		if tag := one.Value.GetName(); tag != "" && !h.Tags.Foreign(tag) {
			h.known[tag] = one.Meta
		}
	}
}

// slots returns the names of this agent's IP lists by number.
func (h *handler) slots(ip []vppacl.ACLDetails, declared map[string]bool) map[uint32]string {
	out := make(map[uint32]string, len(ip))
	for _, d := range ip {
		if !h.Tags.Foreign(d.Tag) && !h.ownerUnknown(d.Tag, declared) {
			out[d.ACLIndex] = d.Tag
		}
	}
	return out
}

// read dumps all lists; their names are their tags. Two lists with the same tag come from a
// request whose answer was lost: all but the first get a name with a number, which nobody
// declares, so that the scheduler removes them.
func (h *handler) read(ctx context.Context, learns bool, declared map[string]bool) ([]found, error) {
	ip, err := conn.Dump[vppacl.ACLDetails](ctx, h.API, &vppacl.ACLDump{ACLIndex: none})
	if err != nil {
		return nil, err
	}
	macip, err := conn.Dump[vppacl.MacipACLDetails](ctx, h.API, &vppacl.MacipACLDump{ACLIndex: none})
	if err != nil {
		return nil, err
	}
	at, applied, err := h.readAttachments(ctx)
	if err != nil {
		return nil, err
	}
	if learns {
		h.renewVectors(applied, h.slots(ip, declared))
	}
	seen := map[string]bool{}
	unique := func(tag string, index uint32) string {
		if tag != "" && seen[tag] {
			return fmt.Sprintf("%s#%d", tag, index)
		}
		seen[tag] = true
		return tag
	}
	var out []found
	for _, d := range ip {
		v := &acl.ACL{Name: unique(d.Tag, d.ACLIndex), Interfaces: at[Meta{Index: d.ACLIndex}]}
		for _, r := range d.R {
			v.Rules = append(v.Rules, ipRuleFrom(r))
		}
		out = append(out, found{Value: v, Meta: Meta{Index: d.ACLIndex}, Details: &tagged{d.Tag}})
	}
	for _, d := range macip {
		meta := Meta{Index: d.ACLIndex, MACIP: true}
		v := &acl.ACL{Name: unique(d.Tag, d.ACLIndex), Interfaces: at[meta]}
		for _, r := range d.R {
			v.Rules = append(v.Rules, macipRuleFrom(r))
		}
		out = append(out, found{Value: v, Meta: meta, Details: &tagged{d.Tag}})
	}
	return out, nil
}
