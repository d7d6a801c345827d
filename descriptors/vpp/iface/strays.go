package iface

import (
	"context"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ifindex"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// An agent that ends after it has asked for an interface and before VPP was told its name
// leaves a stray: an interface without a name. The next agent knows it by what it was made
// with, which is of one value alone: the ends of a tunnel, the ID of a VLAN, ...; where VPP
// would make any number of the kind, it has been made with a mark of the value's name.

// strayed replaces the strays that are known.
func (h *handler) strayed(all []*kinds.Found) {
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

// straysLike are the strays that may be one that v has made.
func (h *handler) straysLike(v *interfaces.Interface) (out []uint32) {
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

// takeUp finds a stray that v has made.
func (h *handler) takeUp(ctx context.Context, v *interfaces.Interface) (index uint32, is bool, err error) {
	for _, index := range h.straysLike(v) {
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
		if h.madeBy(f, v) {
			h.takenUp(f)
			return index, true, nil
		}
	}
	return 0, false, nil
}

// madeBy tells whether an interface is just what v makes.
func (h *handler) madeBy(f *kinds.Found, v *interfaces.Interface) bool {
	return h.marked(f, v) && !h.recreate("", f.Value, v, f.Meta)
}

// takenUp says that a stray is none any more, nor somebody else's.
func (h *handler) takenUp(f *kinds.Found) {
	h.mu.Lock()
	delete(h.untagged, f.Meta.Index)
	h.mu.Unlock()
	if h.observe != nil {
		h.observe(scheduler.Observed{Key: keys.InterfaceKey(f.Value.GetName())})
	}
}
