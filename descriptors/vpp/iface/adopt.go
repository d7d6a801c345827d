package iface

import (
	"context"
	"maps"
	"slices"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/leftovers"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// candidates returns the untagged interfaces that one of our unconfirmed creations may
// have made. VPP answers requests in order, and reports a creation only after its answer.
// So an index that VPP has reported does not belong to a creation without an answer.
// local0 has index 0 and is VPP's own.
func candidates(all map[uint32]*kinds.Found, lost map[string]leftovers.Creation, known map[uint32]bool) []*kinds.Found {
	for _, one := range lost {
		delete(known, one.Index)
	}
	return slices.DeleteFunc(kinds.Sorted(all), func(f *kinds.Found) bool {
		return f.Details.Tag != "" || f.Meta.Index == 0 || known[f.Meta.Index]
	})
}

// adopt tags the interfaces of unconfirmed creations, and tells whether there were
// candidates. It compares each candidate with each creation. Kinds take settings that VPP
// does not list from the desired value, so a candidate is read once for each creation.
func (h *handler) adopt(ctx context.Context, all map[uint32]*kinds.Found, lost map[string]leftovers.Creation) (looked bool, err error) {
	untagged := candidates(all, lost, h.table.ReportedIndexes())
	if len(untagged) == 0 {
		return false, nil
	}
	placed, loose := map[uint32]string{}, []string{}
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		if index := lost[name].Index; index != 0 {
			placed[index] = name
		} else {
			loose = append(loose, name)
		}
	}
	// In each round every candidate is compared with another creation, so after as many
	// rounds as there are creations each pair was compared once.
	for round := range max(1, len(loose)) {
		for i, f := range untagged {
			name := placed[f.Meta.Index]
			if name == "" && len(loose) > 0 {
				name = loose[(i+round)%len(loose)]
			}
			f.Desired = lost[name].Value
		}
		if err := h.tagMatching(ctx, all, untagged, lost); err != nil {
			return true, err
		}
	}
	return true, nil
}

// tagMatching tags the candidates that are equal to their creation. It uses each name
// once. A candidate whose tag VPP refuses does not keep the others from being read: it is skipped, and its
// creation leaves lost.
func (h *handler) tagMatching(ctx context.Context, all map[uint32]*kinds.Found, untagged []*kinds.Found, lost map[string]leftovers.Creation) error {
	if err := h.readLinks(ctx, all); err != nil {
		return err
	}
	for _, f := range untagged {
		if f.Details.Tag != "" || f.Desired == nil || hasTag(all, f.Desired.GetName()) || !h.createdBy(f, f.Desired) {
			continue
		}
		if err := h.env.SetTag(ctx, f.Meta, f.Desired.GetName()); err != nil {
			if !isRefusal(err) {
				return err
			}
			h.Log.Warn("an interface that the agent has created cannot be adopted; it is tried again", "interface", f.Desired.GetName(), "sw_if_index", f.Meta.Index, "err", err)
			delete(lost, f.Desired.GetName()) // it stays unconfirmed
			continue
		}
		f.Details.Tag, f.Value.Name = f.Desired.GetName(), f.Desired.GetName()
	}
	return nil
}

// hasTag tells whether an interface has this tag.
func hasTag(all map[uint32]*kinds.Found, name string) bool {
	for _, f := range all {
		if f.Details.Tag == name {
			return true
		}
	}
	return false
}

// An agent can stop after VPP created an interface and before VPP has the tag. The next
// agent identifies the untagged interface by the settings that only one value can have:
// the ends of a tunnel, the ID of a VLAN, ... Interfaces of other kinds are created with a
// mark that is derived from the name, for example a MAC address.

// setUntagged replaces the known untagged interfaces.
func (h *handler) setUntagged(all []*kinds.Found) {
	untagged := map[uint32]*kinds.Found{}
	for _, f := range all {
		if f.Details.Tag == "" && f.Desired == nil && f.Meta.Index != 0 && !ifindex.IsHardware(f.Details) {
			untagged[f.Meta.Index] = f
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.untagged = untagged
}

// untaggedLike returns the untagged interfaces that v may have created.
func (h *handler) untaggedLike(v *interfaces.Interface) (out []uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for index, f := range h.untagged {
		if kinds.FormOf(f.Value) == kinds.FormOf(v) && h.marked(f, v) {
			out = append(out, index)
		}
	}
	return out
}

// marked tells whether an interface has the mark of v. It is true for kinds without marks.
func (h *handler) marked(f *kinds.Found, v *interfaces.Interface) bool {
	mark := h.kindOf(v).Marked
	return mark == nil || mark(h.env, f, v)
}

// adoptUntagged finds an untagged interface that v has created.
func (h *handler) adoptUntagged(ctx context.Context, v *interfaces.Interface) (index uint32, is bool, err error) {
	for _, index := range h.untaggedLike(v) {
		details, err := conn.Dump[vppif.SwInterfaceDetails](ctx, h.API, &vppif.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(index)})
		if err != nil {
			return 0, false, err
		}
		if len(details) != 1 || details[0].Tag != "" {
			continue
		}
		f := &kinds.Found{Details: details[0], Meta: ifindex.MetaOf(details[0]), Value: general(details[0], nil), Desired: v}
		all := map[uint32]*kinds.Found{index: f}
		// The kind of sub-interfaces looks up the name of the parent in this map.
		if parent := f.Details.SupSwIfIndex; parent != index {
			all[parent] = &kinds.Found{Value: &interfaces.Interface{Name: h.index.Names()[parent]}}
		}
		if err := h.kindOf(v).Retrieve(ctx, h.env, all); err != nil {
			return 0, false, err
		}
		if h.createdBy(f, v) {
			h.adopted(f)
			return index, true, nil
		}
	}
	return 0, false, nil
}

// createdBy tells whether an interface is equal to the one that v creates.
func (h *handler) createdBy(f *kinds.Found, v *interfaces.Interface) bool {
	return h.marked(f, v) && !h.recreate("", f.Value, v, f.Meta)
}

// adopted removes an interface from the untagged ones, and from the scheduler's foreign
// values.
func (h *handler) adopted(f *kinds.Found) {
	h.mu.Lock()
	delete(h.untagged, f.Meta.Index)
	h.mu.Unlock()
	if h.observe != nil {
		h.observe(scheduler.Observed{Key: keys.Interface(f.Value.GetName()).Key()})
	}
}
