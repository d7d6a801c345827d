package iface

import (
	"context"
	"fmt"
	"hash/fnv"

	"go.fd.io/govpp/binapi/ethernet_types"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
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
func (h *handler) strayed(all []*found) {
	strays := map[uint32]*found{}
	for _, f := range all {
		if f.details.Tag == "" && f.wanted == nil && f.meta.Index != 0 && !ifindex.IsHardware(f.details) {
			strays[f.meta.Index] = f
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.strays = strays
}

// straysLike are the strays that may be one that v has made.
func (h *handler) straysLike(v *interfaces.Interface) (out []uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for index, f := range h.strays {
		if formOf(f.value) == formOf(v) && h.marked(f, v) {
			out = append(out, index)
		}
	}
	return out
}

// marked tells whether an interface has the mark of v, if its kind has one.
func (h *handler) marked(f *found, v *interfaces.Interface) bool {
	mark := h.kindOf(v).marked
	return mark == nil || mark(h, f, v)
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
		f := &found{details: details[0], meta: ifindex.MetaOf(details[0]), value: general(details[0], nil), wanted: v}
		all := map[uint32]*found{index: f}
		if parent := f.details.SupSwIfIndex; parent != index {
			all[parent] = &found{value: &interfaces.Interface{Name: h.index.Names()[parent]}}
		}
		if err := h.kindOf(v).retrieve(ctx, h, all); err != nil {
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
func (h *handler) madeBy(f *found, v *interfaces.Interface) bool {
	return h.marked(f, v) && !h.recreate("", f.value, v, f.meta)
}

// takenUp says that a stray is none any more, nor somebody else's.
func (h *handler) takenUp(f *found) {
	h.mu.Lock()
	delete(h.strays, f.meta.Index)
	h.mu.Unlock()
	if h.observe != nil {
		h.observe(scheduler.Observed{Key: keys.InterfaceKey(f.value.GetName())})
	}
}

// mark is the MAC address of an interface whose value declares none: of its name and the host, so
// that others do not have it. It stays the same when VPP is started anew.
func (h *handler) mark(v *interfaces.Interface) (mac ethernet_types.MacAddress) {
	if mac, ok := parseMAC(v.GetPhysAddress()); ok {
		return mac
	}
	sum := fnv.New64a()
	_, _ = fmt.Fprintf(sum, "%s\x00%s", h.Host, v.GetName())
	copy(mac[:], sum.Sum(nil))
	mac[0] = mac[0]&^0x03 | 0x02 // of one, and given by nobody
	return mac
}

// byMAC is the mark of a kind whose interfaces are made with that MAC address.
func byMAC(h *handler, f *found, v *interfaces.Interface) bool {
	return f.details.L2Address == h.mark(v)
}

// byName is the mark of a kind whose interfaces VPP calls as their values are.
func byName(_ *handler, f *found, v *interfaces.Interface) bool {
	return f.details.InterfaceName == v.GetName()
}
