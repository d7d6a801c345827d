package nat

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"go.fd.io/govpp/binapi/ip"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// globalDescriptor implements NAT44 itself. The value exists if one of VPP's plugins is enabled.
func (h *handler) globalDescriptor() scheduler.Descriptor[*nat.Nat44Global, struct{}] {
	return scheduler.Descriptor[*nat.Nat44Global, struct{}]{
		Name:  GlobalName,
		Model: models.For[*nat.Nat44Global](),

		Properties: []string{keys.NATEndpointDependent},

		Normalize: normalizeGlobal,
		Validate:  validateGlobal,
		Equivalent: func(_ string, old, new *nat.Nat44Global) bool {
			return old.GetForwarding() == new.GetForwarding() && old.GetEndpointIndependent() == new.GetEndpointIndependent() &&
				settingsOf(old) == settingsOf(new)
		},
		Recreate: func(_ string, old, new *nat.Nat44Global, _ struct{}) bool {
			return old.GetEndpointIndependent() != new.GetEndpointIndependent()
		},
		Derived: derivedOfGlobal,
		Origin: func(key string) string {
			if key == keys.NATEndpointDependent {
				return keys.NAT44Global
			}
			return ""
		},

		Create: func(ctx context.Context, _ string, v *nat.Nat44Global) (struct{}, error) {
			h.independent.Store(v.GetEndpointIndependent())
			if err := h.setEnabled(ctx, h.plugin(v.GetEndpointIndependent()), true); err != nil {
				return struct{}{}, err
			}
			return h.updateGlobal(ctx, "", nil, v, struct{}{})
		},
		Update: h.updateGlobal,
		Delete: func(ctx context.Context, _ string, v *nat.Nat44Global, _ struct{}) error {
			return errors.Join(h.setSettings(ctx, defaultSettings), h.setEnabled(ctx, h.plugin(v.GetEndpointIndependent()), false))
		},
		Retrieve:      h.retrieveGlobal,
		RetrieveAfter: []string{iface.Name},
	}
}

const (
	millisPerSecond  = 1000
	shallowVirtually = ip.IP_REASS_TYPE_SHALLOW_VIRTUAL
)

// normalizeGlobal removes a setting that VPP does not have.
func normalizeGlobal(_ string, v *nat.Nat44Global) (*nat.Nat44Global, []string) {
	if !v.GetVirtualReassembly().GetDropFragments() {
		return v, nil
	}
	v = proto.CloneOf(v)
	v.VirtualReassembly.DropFragments = false
	return v, []string{models.Ignored("virtual_reassembly.drop_fragments", true, "VPP translates fragments, and cannot drop them instead")}
}

// validateGlobal checks the value of NAT44.
func validateGlobal(_ string, v *nat.Nat44Global) error {
	var f faults
	f.listedInterfaces(v)
	f.listedAddresses(v)
	return f.Err()
}

// settings are those of virtual reassembly that the model has. The zero value is none of VPP's
// states: settingsOf fills in defaults.
type settings struct{ millis, reassemblies, fragments uint32 }

// defaultSettings are VPP's (ip4_sv_reass.c).
var defaultSettings = settings{100, 1024, 3}

// settingsOf returns the settings of a value. VPP's default takes the place of 0. It accepts
// nil, which stands for a value that declares nothing.
func settingsOf(v *nat.Nat44Global) settings {
	r := v.GetVirtualReassembly()
	return settings{
		cmp.Or(r.GetTimeout()*millisPerSecond, defaultSettings.millis), cmp.Or(r.GetMaxReassemblies(), defaultSettings.reassemblies),
		cmp.Or(r.GetMaxFragments(), defaultSettings.fragments),
	}
}

// setEnabled enables or disables a plugin. VPP refuses that if it is so, with a number that
// depends on the release. So after a refusal the state decides, and not the number. The error
// is VPP's refusal, or that of reading the state.
func (h *handler) setEnabled(ctx context.Context, p plugin, on bool) error {
	err := h.API.Batch(ctx, p.enable(on))
	if _, refused := errors.AsType[*conn.Refusal](err); !refused {
		return err
	}
	if is, _, errRead := p.running(ctx); errRead != nil || is == on {
		return errRead
	}
	return err
}

// updateGlobal brings forwarding and reassembly to the declared settings. Both kinds of NAT44
// share the settings of reassembly, so they do not depend on the plugin.
func (h *handler) updateGlobal(ctx context.Context, _ string, _, v *nat.Nat44Global, _ struct{}) (struct{}, error) {
	if err := h.API.Batch(ctx, h.plugin(v.GetEndpointIndependent()).forward(v.GetForwarding())); err != nil {
		return struct{}{}, err
	}
	return struct{}{}, h.setSettings(ctx, settingsOf(v))
}

// readSettings reads the settings of virtual reassembly of IPv4.
func (h *handler) readSettings(ctx context.Context) (s settings, walk uint32, err error) {
	reply := &ip.IPReassemblyGetReply{}
	err = h.API.Call(ctx, &ip.IPReassemblyGet{Type: shallowVirtually}, reply)
	return settings{reply.TimeoutMs, reply.MaxReassemblies, reply.MaxReassemblyLength}, reply.ExpireWalkIntervalMs, err
}

// setSettings changes the settings of virtual reassembly of IPv4, unless they are so. The
// message sets the interval of VPP's walks, too, which stays. It is read together with the
// settings for that.
func (h *handler) setSettings(ctx context.Context, s settings) error {
	now, walk, err := h.readSettings(ctx)
	if err != nil || now == s {
		return err
	}
	q := &ip.IPReassemblySet{
		Type: shallowVirtually, TimeoutMs: s.millis, MaxReassemblies: s.reassemblies, MaxReassemblyLength: s.fragments, ExpireWalkIntervalMs: walk,
	}
	return h.API.Call(ctx, q, &ip.IPReassemblySetReply{})
}

type foundGlobal = scheduler.Found[*nat.Nat44Global, struct{}]

// retrieveGlobal yields the value if a plugin is enabled. If both are, it is that of the
// declared value. With neither, nothing is yielded, and the scheduler creates the declared
// value.
func (h *handler) retrieveGlobal(ctx context.Context, wanted []scheduler.Desired[*nat.Nat44Global]) iter.Seq2[foundGlobal, error] {
	return reading.Of(func(learns bool, yield func(foundGlobal, error) bool) {
		var declared *nat.Nat44Global
		for _, w := range wanted {
			declared = w.Value
			if learns {
				h.independent.Store(declared.GetEndpointIndependent())
			}
		}
		enabled, err := h.enabled(ctx)
		switch {
		case err != nil:
			yield(foundGlobal{}, err)
		case len(enabled) > 0:
			v, err := h.readGlobal(ctx, enabled[0], declared, learns)
			yield(foundGlobal{Value: v, OwnerUnknown: declared == nil}, err)
		}
	})
}

// readGlobal returns the value of NAT44 as VPP has it.
func (h *handler) readGlobal(ctx context.Context, p plugin, declared *nat.Nat44Global, learns bool) (*nat.Nat44Global, error) {
	_, forwarding, err := p.running(ctx)
	if err != nil {
		return nil, err
	}
	v := &nat.Nat44Global{Forwarding: forwarding, EndpointIndependent: !p.endpointDependent()}
	now, _, err := h.readSettings(ctx)
	if err != nil {
		return nil, err
	}
	// An absent message and one with defaults mean the same, so defaults are reported as
	// absent.
	if now != settingsOf(declared) || now != defaultSettings {
		v.VirtualReassembly = reassemblyOf(now)
	}
	return v, h.readLists(ctx, v, declared, learns)
}

// reassemblyOf returns settings as the model has them; a part of a second counts as one. Only
// other settings than the defaults are set. Another client of VPP can set milliseconds, which
// the model does not have; rounding up keeps them from becoming 0, the default.
func reassemblyOf(s settings) *nat.VirtualReassembly {
	out := &nat.VirtualReassembly{}
	if s.millis != defaultSettings.millis {
		out.Timeout = max((s.millis+millisPerSecond-1)/millisPerSecond, 1)
	}
	if s.reassemblies != defaultSettings.reassemblies {
		out.MaxReassemblies = s.reassemblies
	}
	if s.fragments != defaultSettings.fragments {
		out.MaxFragments = s.fragments
	}
	return out
}
