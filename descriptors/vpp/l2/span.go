package l2

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/span"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/layer2"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/readback"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// spanDescriptor implements port mirroring: VPP copies the packets of one interface to
// another.
func (h *handler) spanDescriptor() scheduler.Descriptor[*interfaces.Span, struct{}] {
	return scheduler.Descriptor[*interfaces.Span, struct{}]{
		Name:  SpanName,
		Model: models.For[*interfaces.Span](),

		Validate:     validateSpan,
		Dependencies: spanDependencies,

		Create: func(ctx context.Context, _ string, v *interfaces.Span) (struct{}, error) {
			return struct{}{}, h.setSpan(ctx, v, span.SpanState(v.GetDirection()))
		},
		Delete: func(ctx context.Context, _ string, v *interfaces.Span, _ struct{}) error {
			err := h.setSpan(ctx, v, span.SPAN_STATE_API_DISABLED)
			if errors.Is(err, iface.ErrNotFound) {
				return nil
			}
			return err
		},
		Retrieve: func(ctx context.Context, wanted []scheduler.Desired[*interfaces.Span]) scheduler.Retrieved[*interfaces.Span, struct{}] {
			return readback.Retriever[*interfaces.Span]{
				Read: func(ctx context.Context, learns bool) ([]*interfaces.Span, error) {
					all, err := h.readSpans(ctx, learns)
					return withoutRivals(all, wanted), err
				},
				ID: pairOf,
			}.Retrieve(ctx, wanted)
		},
		RetrieveAfter: []string{iface.Name},
	}
}

// pairOf identifies a mirror among those that the agent makes: the key of a value does not have its level.
func pairOf(v *interfaces.Span) string { return v.GetInterfaceFrom() + " " + v.GetInterfaceTo() }

// withoutRivals leaves out the mirrors that others have beside ours: of the same interfaces, but of the other level. While
// only such a one is there, it may be ours: of a value that declared the other level.
func withoutRivals(all []*interfaces.Span, wanted []scheduler.Desired[*interfaces.Span]) []*interfaces.Span {
	type mirror struct {
		pair string
		isL2 bool
	}
	has, rivals := map[mirror]bool{}, map[mirror]bool{}
	for _, v := range all {
		has[mirror{pairOf(v), v.GetIsL2()}] = true
	}
	for _, w := range wanted {
		if pair, isL2 := pairOf(w.Value), w.Value.GetIsL2(); has[mirror{pair, isL2}] {
			rivals[mirror{pair, !isL2}] = true
		}
	}
	return slices.DeleteFunc(all, func(v *interfaces.Span) bool { return rivals[mirror{pairOf(v), v.GetIsL2()}] })
}

// spanDependencies requires both interfaces. A mirror of bridged packets also requires that both are
// in a bridge domain or receive for a cross-connect. VPP sends the copies as layer 2 sends frames: it
// drops those for an interface that is not in layer 2, and looks beyond its lists if the interface has
// a high index (VPP span/node.c, and l2_output.c). It does the same with frames for a mirrored interface
// that is not in layer 2. When an interface leaves layer 2, VPP clears the feature, but still lists the
// mirror (VPP l2_input.c, set_int_l2_mode). So the mirror goes with the membership, and comes back with
// the next one.
func spanDependencies(_ string, v *interfaces.Span) []scheduler.Dependency {
	from, to := v.GetInterfaceFrom(), v.GetInterfaceTo()
	out := []scheduler.Dependency{
		{Label: "interface-from", Key: keys.Interface(from).Key()},
		{Label: "interface-to", Key: keys.Interface(to).Key()},
	}
	if v.GetIsL2() {
		out = append(out, isBridged("interface-is-bridged", from), isBridged("interface-to-is-bridged", to))
	}
	return out
}

// isBridged requires that an interface is in a bridge domain or receives for a cross-connect.
func isBridged(label, name string) scheduler.Dependency {
	return scheduler.Dependency{
		Label: label, Prefixes: []string{string(keys.BridgeMembers), keys.XConnects},
		Match: func(key string) bool {
			_, member, ok := keys.BridgeMembers.Parse(key)
			return ok && member == name || key == keys.XConnects+name
		},
	}
}

// validateSpan checks interfaces and direction.
func validateSpan(_ string, v *interfaces.Span) error {
	var f faults
	if v.GetInterfaceFrom() == "" {
		f.Add("interface_from", "", "the name of the interface that is mirrored")
	}
	if to := v.GetInterfaceTo(); to == "" || to == v.GetInterfaceFrom() {
		f.Add("interface_to", to, "the name of another interface")
	}
	if d := v.GetDirection(); d == interfaces.Span_UNKNOWN || interfaces.Span_Direction_name[int32(d)] == "" {
		f.Add("direction", d.String(), "RX, TX or BOTH")
	}
	return f.Err()
}

// setSpan sets the mirrored direction; SPAN_STATE_API_DISABLED ends the mirror. The numbers
// of the model's directions are those of VPP.
func (h *handler) setSpan(ctx context.Context, v *interfaces.Span, state span.SpanState) error {
	from, err := h.indexOf(v.GetInterfaceFrom(), state == span.SPAN_STATE_API_DISABLED)
	if err != nil {
		return err
	}
	to, err := h.indexOf(v.GetInterfaceTo(), state == span.SPAN_STATE_API_DISABLED)
	if err != nil {
		return err
	}
	h.mirrors.Lock()
	defer h.mirrors.Unlock()
	return h.API.Call(ctx, mirroring(from, to, v.GetIsL2(), state), &span.SwInterfaceSpanEnableDisableReply{})
}

// mirroring returns the request that sets a mirror.
func mirroring(from, to interface_types.InterfaceIndex, isL2 bool, state span.SpanState) *span.SwInterfaceSpanEnableDisable {
	return &span.SwInterfaceSpanEnableDisable{SwIfIndexFrom: from, SwIfIndexTo: to, State: state, IsL2: isL2}
}

// restoreMirrors makes the mirrors of bridged packets anew, if their interface has left layer 2 and
// has lost the features that mirror. VPP enables the feature for the first mirror of an interface only, so all of them end before.
func (h *handler) restoreMirrors(ctx context.Context, from interface_types.InterfaceIndex) error {
	h.mirrors.Lock()
	defer h.mirrors.Unlock()
	all, err := conn.Dump[span.SwInterfaceSpanDetails](ctx, h.API, &span.SwInterfaceSpanDump{IsL2: true})
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(d span.SwInterfaceSpanDetails) bool { return d.SwIfIndexFrom != from })
	if len(all) == 0 {
		return nil
	}
	features, err := layer2.Of(ctx, h.API, from)
	if err != nil {
		return err
	}
	in, out := features.Has(layer2.MirrorIn), features.Has(layer2.MirrorOut)
	if !slices.ContainsFunc(all, func(d span.SwInterfaceSpanDetails) bool {
		return d.State&span.SPAN_STATE_API_RX != 0 && !in || d.State&span.SPAN_STATE_API_TX != 0 && !out
	}) {
		return nil
	}
	var ends, begins []*conn.Step
	for _, d := range all {
		ends = append(ends, conn.Ask(mirroring(from, d.SwIfIndexTo, true, span.SPAN_STATE_API_DISABLED), &span.SwInterfaceSpanEnableDisableReply{}))
		begins = append(begins, conn.Ask(mirroring(from, d.SwIfIndexTo, true, d.State), &span.SwInterfaceSpanEnableDisableReply{}))
	}
	return h.API.Batch(ctx, append(ends, begins...)...)
}

// indexOf returns the sw_if_index of an interface. With gone, it also finds a deleted
// interface: VPP keeps a mirror when the interface is deleted, and applies it to the next
// interface with that index.
func (h *handler) indexOf(name string, gone bool) (interface_types.InterfaceIndex, error) {
	if index, known := h.Interfaces.Last(name); gone && known {
		return interface_types.InterfaceIndex(index), nil
	}
	meta, err := iface.Find(h.Interfaces, name)
	return meta.SwIfIndex(), err
}

// readSpans returns the mirrors of layer 2 and of device level, which VPP lists separately.
func (h *handler) readSpans(ctx context.Context, learns bool) ([]*interfaces.Span, error) {
	var out []*interfaces.Span
	names := h.interfaceNames()
	for _, l2 := range []bool{false, true} {
		all, err := conn.Dump[span.SwInterfaceSpanDetails](ctx, h.API, &span.SwInterfaceSpanDump{IsL2: l2})
		if err != nil {
			return nil, err
		}
		for _, d := range all {
			from, to := names[uint32(d.SwIfIndexFrom)], names[uint32(d.SwIfIndexTo)]
			if from != "" && to != "" {
				out = append(out, &interfaces.Span{InterfaceFrom: from, InterfaceTo: to, Direction: interfaces.Span_Direction(d.State), IsL2: d.IsL2})
			} else if learns {
				if err := h.noteOrphanedMirror(ctx, d, from == ""); err != nil {
					return nil, err
				}
			}
		}
	}
	return out, nil
}

// noteOrphanedMirror records a mirror whose interface was deleted. It is ended as soon as
// another interface has the index: VPP refuses requests for indexes without an interface.
func (h *handler) noteOrphanedMirror(ctx context.Context, d span.SwInterfaceSpanDetails, from bool) error {
	gone := d.SwIfIndexTo
	if from {
		gone = d.SwIfIndexFrom
	}
	what := fmt.Sprint("mirror ", d.SwIfIndexFrom, " ", d.SwIfIndexTo, " ", d.IsL2)
	return h.Interfaces.Leftovers().NoteOrphaned(ctx, h.API, uint32(gone), what, func(ctx context.Context, _ interface_types.InterfaceIndex) error {
		request := mirroring(d.SwIfIndexFrom, d.SwIfIndexTo, d.IsL2, span.SPAN_STATE_API_DISABLED)
		return h.API.Call(ctx, request, &span.SwInterfaceSpanEnableDisableReply{})
	})
}
