package nat

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/readback"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
	"github.com/keyplane/keyplane/scheduler"
)

// interfaceDescriptor implements the sides of an interface.
func (h *handler) interfaceDescriptor() scheduler.Descriptor[*nat.Nat44Interface, struct{}] {
	return scheduler.Descriptor[*nat.Nat44Interface, struct{}]{
		Name:  InterfaceName,
		Model: models.For[*nat.Nat44Interface](),

		Validate:   validateInterface,
		Equivalent: func(_ string, old, new *nat.Nat44Interface) bool { return featuresOf(old) == featuresOf(new) },
		// VPP refuses sides beside the output feature.
		Recreate: func(_ string, old, new *nat.Nat44Interface, _ struct{}) bool {
			return featuresOf(old).output != featuresOf(new).output
		},
		Dependencies: func(_ string, v *nat.Nat44Interface) []scheduler.Dependency {
			return []scheduler.Dependency{enabledFor(false), {Label: "interface-exists", Key: keys.Interface(v.GetName()).Key()}}
		},
		Claims: func(_ string, v *nat.Nat44Interface) []scheduler.Claim {
			return interfaceClaims(v.GetName(), featuresOf(v), false)
		},

		Create: func(ctx context.Context, _ string, v *nat.Nat44Interface) (struct{}, error) {
			return struct{}{}, h.addFeatures(ctx, v.GetName(), featuresOf(v))
		},
		Update: func(ctx context.Context, _ string, old, v *nat.Nat44Interface, _ struct{}) (struct{}, error) {
			was, is := featuresOf(old), featuresOf(v)
			// The new side comes first: an interface without any has its packets untranslated.
			if err := h.addFeatures(ctx, v.GetName(), is.without(was)); err != nil {
				return struct{}{}, err
			}
			return struct{}{}, h.removeFeatures(ctx, v.GetName(), was.without(is))
		},
		Delete: func(ctx context.Context, _ string, v *nat.Nat44Interface, _ struct{}) error {
			return h.removeFeatures(ctx, v.GetName(), featuresOf(v))
		},
		Retrieve:      h.retrieveInterfaces,
		RetrieveAfter: []string{iface.Name, GlobalName},
	}
}

// validateInterface checks the sides of an interface. An interface may have both, unless it has
// the output feature.
func validateInterface(_ string, v *nat.Nat44Interface) error {
	var f models.Faults
	if v.GetName() == "" {
		f.Add("name", "", "the name of an interface")
	}
	switch {
	case v.GetNatInside() && v.GetNatOutside() && v.GetOutputFeature():
		f.Add("output_feature", true, "at most one side with it: VPP then translates on output, and an interface has no sides")
	case !v.GetNatInside() && !v.GetNatOutside() && !v.GetOutputFeature():
		f.Add("nat_inside", false, "at least one of nat_inside, nat_outside and output_feature")
	}
	return f.Err()
}

// featuresOf returns the features of an interface. VPP has one output feature for both sides.
func featuresOf(v *nat.Nat44Interface) features {
	if v.GetOutputFeature() {
		return features{output: true}
	}
	return features{inside: v.GetNatInside(), outside: v.GetNatOutside()}
}

// interfaceClaims claims the features of an interface. It is either declared by one value of its
// own, which wins, or listed by the value of NAT44, each side by itself. VPP refuses sides beside the
// output feature.
func interfaceClaims(name string, f features, listed bool) (out []scheduler.Claim) {
	add := func(resource string, yields bool) {
		out = append(out, scheduler.Claim{
			Resource: "vpp-nat44-interface/" + name + resource, Field: "name", Value: name, Yields: yields,
			Want: "an interface that is declared once, by a value of its own or in nat_interfaces",
		})
	}
	add("", listed && !f.output)
	if f.inside {
		add("/in", false)
	}
	if f.outside {
		add("/out", false)
	}
	return out
}

// addFeatures gives an interface its features. VPP accepts a side that it has. It returns
// ErrDisabled or iface.ErrNotFound if the plugin or the interface is missing; the scheduler retries
// then.
func (h *handler) addFeatures(ctx context.Context, name string, f features) error {
	p, err := h.inUse(ctx)
	if err != nil {
		return err
	}
	at, err := h.interfaceNamed(name)
	if err != nil {
		return err
	}
	if f.output {
		return sidesTaken(name, true, h.addOutput(ctx, p, at))
	}
	for _, inside := range f.sides() {
		if err := h.API.Batch(ctx, p.side(at, inside, true)); err != nil {
			return sidesTaken(name, false, err)
		}
	}
	return nil
}

// sides returns the sides: true is inside.
func (f features) sides() (out []bool) {
	if f.inside {
		out = append(out, true)
	}
	if f.outside {
		out = append(out, false)
	}
	return out
}

// without returns the features that are not among others.
func (f features) without(others features) features {
	return features{f.inside && !others.inside, f.outside && !others.outside, f.output && !others.output}
}

// addOutput has packets translated on output. VPP refuses that if it is so, or if the interface
// has sides. Only the first of these is a success, so the state is read to tell them apart.
func (h *handler) addOutput(ctx context.Context, p plugin, at interface_types.InterfaceIndex) error {
	err := h.API.Batch(ctx, p.output(at, true))
	if !errors.Is(err, api.VALUE_EXIST) {
		return err
	}
	all, errRead := p.readSides(ctx)
	if errRead != nil {
		return errRead
	}
	if all[at].output {
		return nil
	}
	return err
}

// removeFeatures takes features from an interface, whichever plugin it has them from. VPP
// removes the other side, too, if it is asked for one that an interface lacks. So VPP's state
// is read first. A plugin that was disabled has no features any more, and that is no error.
func (h *handler) removeFeatures(ctx context.Context, name string, f features) error {
	index, known := h.Interfaces.Last(name)
	if link, ok := h.Interfaces.Get(name); ok {
		index, known = link.Index, true
	}
	// The agent has never seen the interface, so it has given it no features.
	if !known {
		return nil
	}
	at := interface_types.InterfaceIndex(index)
	err := h.end(f)(ctx, at)
	if errors.Is(err, api.INVALID_SW_IF_INDEX) {
		// Until 22.10, VPP keeps the sides of a deleted interface for the next one with its index.
		h.Interfaces.Leftovers().Note(index, "", leftover, h.end(f))
		return nil
	}
	return err
}

// leftover names the sides that a deleted interface has left.
const leftover = "NAT44 sides"

// end returns the function that takes features from the interface with an index. It asks VPP
// again at the time of the call, since a left-over index is served much later.
func (h *handler) end(f features) func(context.Context, interface_types.InterfaceIndex) error {
	return func(ctx context.Context, at interface_types.InterfaceIndex) error {
		enabled, err := h.enabled(ctx)
		if err != nil {
			return err
		}
		for _, p := range enabled {
			if err := h.endIn(ctx, p, at, f); err != nil {
				return err
			}
		}
		return nil
	}
}

// endIn takes those of the features from an interface that it has from one plugin. An interface
// with neither of them causes no request.
func (h *handler) endIn(ctx context.Context, p plugin, at interface_types.InterfaceIndex, f features) error {
	all, err := p.readSides(ctx)
	if err != nil {
		return err
	}
	has := all[at]
	var steps []*conn.Step
	if f.output && has.output {
		steps = append(steps, p.output(at, false))
	}
	if f.inside && has.inside {
		steps = append(steps, p.side(at, true, false))
	}
	if f.outside && has.outside {
		steps = append(steps, p.side(at, false, false))
	}
	if err := h.API.Batch(ctx, steps...); err != nil && !isGone(err) {
		return err
	}
	return nil
}

// retrieveInterfaces yields the interfaces with sides, except those that the value of NAT44 lists.
func (h *handler) retrieveInterfaces(ctx context.Context, wanted []scheduler.Desired[*nat.Nat44Interface]) iter.Seq2[scheduler.Found[*nat.Nat44Interface, struct{}], error] {
	single := make(map[string]bool, len(wanted))
	for _, w := range wanted {
		single[w.Value.GetName()] = true
	}
	return readback.Retriever[*nat.Nat44Interface]{
		Read: func(ctx context.Context, learns bool) ([]*nat.Nat44Interface, error) {
			if learns {
				h.single.interfaces.replace(single)
			}
			return h.readInterfaces(ctx, single, learns)
		},
		ID: (*nat.Nat44Interface).GetName,
		// VPP has one output feature for both sides, so the declared sides are kept if it
		// is set.
		AsDeclared: func(v, declared *nat.Nat44Interface) {
			if featuresOf(v) == featuresOf(declared) {
				v.NatInside, v.NatOutside = declared.GetNatInside(), declared.GetNatOutside()
			}
		},
	}.Retrieve(ctx, wanted)
}

// readInterfaces returns the interfaces with sides; single are those with values of their own. They are sorted
// by name, and those without a name in VPP's table are left out.
func (h *handler) readInterfaces(ctx context.Context, single map[string]bool, learns bool) (out []*nat.Nat44Interface, err error) {
	all, err := h.namedFeatures(ctx, learns)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		if h.listed.interfaces.has(name) && !single[name] {
			continue
		}
		out = append(out, &nat.Nat44Interface{Name: name, NatInside: f.inside, NatOutside: f.outside, OutputFeature: f.output})
	}
	return out, err
}

// namedFeatures returns the features of all interfaces by name. If both plugins are enabled,
// those of the declared one come first. Features of an interface that is gone are noted if the read
// learns: the next interface with its index would have them.
func (h *handler) namedFeatures(ctx context.Context, learns bool) (map[string]features, error) {
	enabled, err := h.enabled(ctx)
	if err != nil {
		return nil, err
	}
	names, out := h.Interfaces.Names(), map[string]features{}
	for _, p := range enabled {
		all, err := p.readSides(ctx)
		if err != nil {
			return nil, err
		}
		for at, f := range all {
			name := names[uint32(at)]
			if _, has := out[name]; name != "" && !has {
				out[name] = f
			}
			if name != "" || !learns {
				continue
			}
			if err := h.Interfaces.Leftovers().NoteOrphaned(ctx, h.API, uint32(at), leftover, h.end(f)); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
