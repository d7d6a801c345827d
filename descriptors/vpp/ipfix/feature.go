package ipfix

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/flowprobe"
	"go.fd.io/govpp/binapi/interface_types"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/ipfix"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// Meta is the metadata of a recording: what VPP must be asked to end. VPP ends no recording of
// another direction or variant.
type Meta struct {
	Which     flowprobe.FlowprobeWhich
	Direction flowprobe.FlowprobeDirection
}

type found = scheduler.Found[*ipfix.FlowProbeFeature, Meta]

// featureDescriptor implements the recording of the packets that leave by an interface. VPP
// records one kind of packets per interface.
func (h *handler) featureDescriptor() scheduler.Descriptor[*ipfix.FlowProbeFeature, Meta] {
	return scheduler.Descriptor[*ipfix.FlowProbeFeature, Meta]{
		Name:  FeatureName,
		Model: models.For[*ipfix.FlowProbeFeature](),

		Validate:   validateFeature,
		Equivalent: func(_ string, old, new *ipfix.FlowProbeFeature) bool { return proto.Equal(old, new) },
		Dependencies: func(_ string, v *ipfix.FlowProbeFeature) []scheduler.Dependency {
			return []scheduler.Dependency{
				{Label: "flowprobe-params", Key: keys.FlowprobeParams},
				{Label: "interface", Key: keys.Interface(v.GetInterface()).Key()},
			}
		},

		Create:        h.record,
		Delete:        h.end,
		Retrieve:      h.retrieveFeatures,
		RetrieveAfter: []string{iface.Name, ParamsName},
	}
}

// validateFeature demands an interface and exactly one kind of packets. VPP's request has room
// for one.
func validateFeature(_ string, v *ipfix.FlowProbeFeature) error {
	var f models.Faults
	if v.GetInterface() == "" {
		f.Add("interface", "", "the name of an interface")
	}
	n := 0
	for _, is := range []bool{v.GetL2(), v.GetIp4(), v.GetIp6()} {
		if is {
			n++
		}
	}
	if n != 1 {
		f.Add("ip4", fmt.Sprintf("l2 %t, ip4 %t, ip6 %t", v.GetL2(), v.GetIp4(), v.GetIp6()),
			"one of l2, ip4 and ip6: VPP records one kind of packets per interface")
	}
	return f.Err()
}

// metaOf returns the recording of a valid value.
func metaOf(v *ipfix.FlowProbeFeature) Meta {
	m := Meta{Direction: flowprobe.FLOWPROBE_DIRECTION_TX}
	switch {
	case v.GetL2():
		m.Which = flowprobe.FLOWPROBE_WHICH_L2
	case v.GetIp6():
		m.Which = flowprobe.FLOWPROBE_WHICH_IP6
	default:
		m.Which = flowprobe.FLOWPROBE_WHICH_IP4
	}
	return m
}

// valueOf is the inverse of metaOf. The model has no value for another direction: that value
// has none of the three kinds, so it differs from every declared one.
func valueOf(name string, m Meta) *ipfix.FlowProbeFeature {
	v := &ipfix.FlowProbeFeature{Interface: name}
	if m.Direction == flowprobe.FLOWPROBE_DIRECTION_TX {
		v.L2 = m.Which == flowprobe.FLOWPROBE_WHICH_L2
		v.Ip4 = m.Which == flowprobe.FLOWPROBE_WHICH_IP4
		v.Ip6 = m.Which == flowprobe.FLOWPROBE_WHICH_IP6
	}
	return v
}

// mark names a recording among the leftovers of an index: VPP keeps it when the interface is
// deleted, and then refuses new parameters.
const mark = "recording of flows"

// record begins to record an interface.
func (h *handler) record(ctx context.Context, _ string, v *ipfix.FlowProbeFeature) (Meta, error) {
	link, err := iface.Find(h.Interfaces, v.GetInterface())
	if err != nil {
		return Meta{}, err
	}
	m := metaOf(v)
	begin := func() error { return h.begin(ctx, link.SwIfIndex(), m) }
	if err := h.Interfaces.Leftovers().Set(link.Index, v.GetInterface(), mark, h.ending(m), begin); err != nil {
		return Meta{}, err
	}
	return m, h.noteTables(ctx)
}

// begin asks VPP to record, and ends another recording of the interface before. A recording of
// that kind may exist: the answer to an earlier request was lost.
func (h *handler) begin(ctx context.Context, at interface_types.InterfaceIndex, m Meta) error {
	err := h.set(ctx, at, m, true)
	if !errors.Is(err, api.ENTRY_ALREADY_EXISTS) && !errors.Is(err, api.CANNOT_ENABLE_DISABLE_FEATURE) {
		return err
	}
	all, errRead := h.recordings(ctx, at)
	switch was, has := all[at]; {
	case errRead != nil:
		return errRead
	case !has:
		return err
	case was == m:
		return nil
	default:
		if err := h.set(ctx, at, was, false); err != nil {
			return err
		}
		return h.set(ctx, at, m, true)
	}
}

// end ends the recording of an interface. If the interface is gone, VPP keeps the recording for
// its index, where it stays noted until another interface has the index.
func (h *handler) end(ctx context.Context, _ string, v *ipfix.FlowProbeFeature, m Meta) error {
	index, known := h.Interfaces.Last(v.GetInterface())
	if link, ok := h.Interfaces.Get(v.GetInterface()); ok {
		index, known = link.Index, true
	}
	if !known {
		return nil
	}
	err := h.Interfaces.Leftovers().End(index, mark, func() error {
		return h.ending(m)(ctx, interface_types.InterfaceIndex(index))
	})
	if errors.Is(err, api.INVALID_SW_IF_INDEX) {
		h.Interfaces.Leftovers().Note(index, "", mark, h.ending(m))
		return nil
	}
	return err
}

// ending returns the request that ends a recording, if there is one. VPP before 22.06 does not
// check that, and would lose count of its recordings, so it is read first.
func (h *handler) ending(m Meta) func(context.Context, interface_types.InterfaceIndex) error {
	return func(ctx context.Context, at interface_types.InterfaceIndex) error {
		if h.isOld() {
			all, err := h.recordings(ctx, at)
			if was, has := all[at]; err != nil || !has || was != m {
				return err
			}
		}
		err := h.set(ctx, at, m, false)
		if errors.Is(err, api.NO_SUCH_ENTRY) || errors.Is(err, api.ENTRY_ALREADY_EXISTS) || errors.Is(err, api.CANNOT_ENABLE_DISABLE_FEATURE) {
			return nil // there is none, or another one, or nothing can be recorded at all
		}
		return err
	}
}

// A recorded interface is a value with its metadata.
type recorded struct {
	value *ipfix.FlowProbeFeature
	meta  Meta
}

// readFeatures returns the recordings of interfaces with names. One whose interface was deleted
// is noted if the read learns: it is ended when another interface has the index.
func (h *handler) readFeatures(ctx context.Context, learns bool) ([]recorded, error) {
	all, err := h.recordings(ctx, everyInterface)
	if err != nil {
		return nil, err
	}
	names := h.Interfaces.Names()
	var out []recorded
	for at, m := range all {
		if name := names[uint32(at)]; name != "" {
			out = append(out, recorded{valueOf(name, m), m})
			continue
		}
		if !learns {
			continue
		}
		if err := h.Interfaces.Leftovers().NoteOrphaned(ctx, h.API, uint32(at), mark, h.ending(m)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// retrieveFeatures yields the recordings. VPP knows no owner of them.
func (h *handler) retrieveFeatures(ctx context.Context, wanted []scheduler.Desired[*ipfix.FlowProbeFeature]) iter.Seq2[found, error] {
	return reading.Of(func(learns bool, yield func(found, error) bool) {
		all, err := h.readFeatures(ctx, learns)
		if errors.Is(err, scheduler.ErrUnimplemented) {
			return
		}
		if err == nil && len(all) > 0 && learns {
			err = h.noteTables(ctx)
		}
		if err != nil {
			yield(found{}, err)
			return
		}
		declared := map[string]bool{}
		for _, w := range wanted {
			declared[w.Value.GetInterface()] = true
		}
		for _, one := range all {
			if !yield(found{Value: one.value, Meta: one.meta, OwnerUnknown: !declared[one.value.GetInterface()]}, nil) {
				return
			}
		}
	})
}

// noteTables notes that VPP has tables if an interface is recorded with an active timer.
func (h *handler) noteTables(ctx context.Context) error {
	run := h.Run()
	now, err := h.params(ctx)
	if err == nil && now.active != 0 {
		h.tables.made(run)
	}
	return err
}
