package iface

import (
	"context"
	"maps"
	"slices"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/leftovers"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
)

// candidates are the interfaces that may be orphans, by index.
func candidates(all map[uint32]*kinds.Found, lost map[string]leftovers.Creation, known map[uint32]bool) []*kinds.Found {
	for _, one := range lost {
		delete(known, one.Index)
	}
	return slices.DeleteFunc(kinds.Sorted(all), func(f *kinds.Found) bool {
		return f.Details.Tag != "" || f.Meta.Index == 0 || known[f.Meta.Index]
	})
}

// adopt gives the orphans that VPP has their names, and tells whether it had to look for
// any. Each interface in question is held against each orphan: what VPP does not tell of
// it is then what the orphan says.
func (h *handler) adopt(ctx context.Context, all map[uint32]*kinds.Found, lost map[string]leftovers.Creation) (looked bool, err error) {
	strays := candidates(all, lost, h.table.ReportedIndexes())
	if len(strays) == 0 {
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
	for round := range max(1, len(loose)) {
		for i, f := range strays {
			name := placed[f.Meta.Index]
			if name == "" && len(loose) > 0 {
				name = loose[(i+round)%len(loose)]
			}
			f.Desired = lost[name].Value
		}
		if err := h.tagMatching(ctx, all, strays); err != nil {
			return true, err
		}
	}
	return true, nil
}

// tagMatching names the strays that are just what they are held against, each name once.
func (h *handler) tagMatching(ctx context.Context, all map[uint32]*kinds.Found, strays []*kinds.Found) error {
	if err := h.readLinks(ctx, all); err != nil {
		return err
	}
	for _, f := range strays {
		if f.Details.Tag != "" || f.Desired == nil || hasTag(all, f.Desired.GetName()) || !h.createdBy(f, f.Desired) {
			continue
		}
		if err := h.env.SetTag(ctx, f.Meta, f.Desired.GetName()); err != nil {
			return err
		}
		f.Details.Tag, f.Value.Name = f.Desired.GetName(), f.Desired.GetName()
	}
	return nil
}

// hasTag tells whether an interface has the name.
func hasTag(all map[uint32]*kinds.Found, name string) bool {
	for _, f := range all {
		if f.Details.Tag == name {
			return true
		}
	}
	return false
}

// An agent that ends after it has asked for an interface and before VPP was told its name
// leaves a stray: an interface without a name. The next agent knows it by what it was made
// with, which is of one value alone: the ends of a tunnel, the ID of a VLAN, ...; where VPP
// would make any number of the kind, it has been made with a mark of the value's name.

// setUntagged replaces the strays that are known.
func (h *handler) setUntagged(all []*kinds.Found) {
	strays := map[uint32]*kinds.Found{}
	for _, f := range all {
		if f.Details.Tag == "" && f.Desired == nil && f.Meta.Index != 0 && !ifindex.IsHardware(f.Details) {
			strays[f.Meta.Index] = f
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.untagged = strays
}

// untaggedLike are the strays that may be one that v has made.
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

// marked tells whether an interface has the mark of v, if its kind has one.
func (h *handler) marked(f *kinds.Found, v *interfaces.Interface) bool {
	mark := h.kindOf(v).Marked
	return mark == nil || mark(h.env, f, v)
}

// adoptUntagged finds a stray that v has made.
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

// createdBy tells whether an interface is just what v makes.
func (h *handler) createdBy(f *kinds.Found, v *interfaces.Interface) bool {
	return h.marked(f, v) && !h.recreate("", f.Value, v, f.Meta)
}

// adopted says that a stray is none any more, nor somebody else's.
func (h *handler) adopted(f *kinds.Found) {
	h.mu.Lock()
	delete(h.untagged, f.Meta.Index)
	h.mu.Unlock()
	if h.observe != nil {
		h.observe(scheduler.Observed{Key: keys.InterfaceKey(f.Value.GetName())})
	}
}
