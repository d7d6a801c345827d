package nat

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"

	"go.fd.io/govpp/api"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/reading"
)

// maxPool is the maximum number of addresses of a pool. VPP's main thread compares each with
// all others while it adds them. All of VPP's workers wait at a barrier meanwhile, so a larger
// range would stop its traffic.
const maxPool = 1 << 14

// poolKey identifies an address in VPP: a plain one and one of twice-NAT are two.
type poolKey struct {
	Addr  netip.Addr
	Twice bool
}

// poolDescriptor implements the pools of addresses.
func (h *handler) poolDescriptor() scheduler.Descriptor[*nat.Nat44AddressPool, struct{}] {
	return scheduler.Descriptor[*nat.Nat44AddressPool, struct{}]{
		Name:  PoolName,
		Model: models.For[*nat.Nat44AddressPool](),

		Normalize: normalizePool,
		Validate:  validatePool,
		Equivalent: func(_ string, old, new *nat.Nat44AddressPool) bool {
			a, okA := addressesOf(old)
			b, okB := addressesOf(new)
			return a == b && okA == okB
		},
		// VPP has no message that gives an address another VRF.
		Recreate: func(_ string, old, new *nat.Nat44AddressPool, _ struct{}) bool {
			return old.GetVrfId() != new.GetVrfId() || old.GetTwiceNat() != new.GetTwiceNat()
		},
		Dependencies: func(_ string, v *nat.Nat44AddressPool) []scheduler.Dependency {
			return append(vrfExists("vrf-table-exists", v.GetVrfId()), enabledFor(v.GetTwiceNat()))
		},
		Properties: []string{keys.NATPools, keys.TwiceNATPools},

		Derived: func(_ string, v *nat.Nat44AddressPool) []scheduler.KeyValue {
			r, ok := addressesOf(v)
			if !ok {
				return nil
			}
			key := keys.NATPool{Twice: r.Twice, VRF: r.VRF, First: r.First}
			if v.GetLastIp() != "" {
				key.Last = r.Last
			}
			return []scheduler.KeyValue{{Key: key.Key(), Value: &emptypb.Empty{}}}
		},
		Claims: func(_ string, v *nat.Nat44AddressPool) (out []scheduler.Claim) {
			r, ok := addressesOf(v)
			for a := range r.all(ok) {
				out = append(out, addressClaim("first_ip", poolKey{a, r.Twice}))
			}
			return out
		},
		// VPP does not know names, so another name is no other pool.
		Identity: func(_ string, v *nat.Nat44AddressPool) scheduler.Claim {
			r, ok := addressesOf(v)
			if !ok {
				return scheduler.Claim{}
			}
			return scheduler.Claim{Resource: models.For[*nat.Nat44AddressPool]().Prefix() + r.String(), Field: "first_ip", Value: v.GetFirstIp(), Want: "addresses that no other pool has"}
		},
		Resolve: func(_ string, v *nat.Nat44AddressPool) *nat.Nat44AddressPool {
			if r, ok := addressesOf(v); ok {
				return poolOf(r)
			}
			return v
		},

		Create: func(ctx context.Context, _ string, v *nat.Nat44AddressPool) (struct{}, error) {
			r, _ := addressesOf(v)
			return struct{}{}, h.addPool(ctx, r)
		},
		Update: func(ctx context.Context, _ string, old, v *nat.Nat44AddressPool, _ struct{}) (struct{}, error) {
			was, _ := addressesOf(old)
			is, _ := addressesOf(v)
			return struct{}{}, h.updatePool(ctx, was, is)
		},
		Delete: func(ctx context.Context, _ string, v *nat.Nat44AddressPool, _ struct{}) error {
			r, ok := addressesOf(v)
			h.single.note(r, ok, false)
			return h.removeAddresses(ctx, r)
		},
		Retrieve:      h.retrievePools,
		RetrieveAfter: []string{GlobalName},
	}
}

// poolAddressesDescriptor implements the derived value of a pool, on which mappings depend. The pool has
// added its addresses. Those that a changed pool could not give up go with the derived value of the old
// range, and so after the mappings that have held them. It has no Retrieve: retrievePools reports it.
func (h *handler) poolAddressesDescriptor() scheduler.Descriptor[*emptypb.Empty, struct{}] {
	return scheduler.Descriptor[*emptypb.Empty, struct{}]{
		Name:   PoolAddressesName,
		Prefix: keys.NATPools,
		Match:  func(key string) bool { _, ok := keys.ParseNATPool(key); return ok },

		Create: func(context.Context, string, *emptypb.Empty) (struct{}, error) { return struct{}{}, nil },
		Delete: func(ctx context.Context, key string, _ *emptypb.Empty, _ struct{}) error {
			pool, _ := keys.ParseNATPool(key)
			return h.removeHeld(ctx, pool)
		},
	}
}

// addressClaim claims an address: VPP has it once, with one VRF.
func addressClaim(field string, k poolKey) scheduler.Claim {
	resource := "vpp-nat44-address/" + k.Addr.String()
	if k.Twice {
		resource += "/twice-nat"
	}
	return scheduler.Claim{Resource: resource, Field: field, Value: k.Addr.String(), Want: "addresses that no other pool has"}
}

// normalizePool removes prefix lengths from the addresses. The second result has a warning for
// each removed length.
func normalizePool(_ string, v *nat.Nat44AddressPool) (*nat.Nat44AddressPool, []string) {
	if !spelling.HasLength(v.GetFirstIp()) && !spelling.HasLength(v.GetLastIp()) {
		return v, nil
	}
	v = proto.CloneOf(v)
	return v, append(spelling.Host("first_ip", &v.FirstIp), spelling.Host("last_ip", &v.LastIp)...)
}

// validatePool checks a pool.
func validatePool(_ string, v *nat.Nat44AddressPool) error {
	var f faults
	first := f.ipv4("first_ip", v.GetFirstIp())
	if v.GetLastIp() == "" {
		return f.Err()
	}
	last := f.ipv4("last_ip", v.GetLastIp())
	switch {
	case !first.IsValid() || !last.IsValid():
	case last.Less(first):
		f.Add("last_ip", v.GetLastIp(), "at least first_ip, %s", first)
	case count(first, last) > maxPool:
		f.Add("last_ip", v.GetLastIp(), "at most %d addresses (they are %d): VPP stops while it adds them", maxPool, count(first, last))
	}
	return f.Err()
}

// faults collects the invalid fields of a value.
type faults struct{ models.Faults }

// ipv4 reads an IPv4 address. An invalid one is a fault, and gives the zero Addr.
func (f *faults) ipv4(field, text string) netip.Addr {
	a, err := netip.ParseAddr(text)
	if err != nil || !a.Is4() {
		f.Add(field, text, `an IPv4 address, such as "10.0.0.1"`)
		return netip.Addr{}
	}
	return a
}

// count returns the number of addresses from first to last.
func count(first, last netip.Addr) int { return int(number(last)) - int(number(first)) + 1 }

// number returns an IPv4 address as a number.
func number(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// addressesOf returns the addresses of a valid pool.
func addressesOf(v *nat.Nat44AddressPool) (r addresses, ok bool) {
	if validatePool("", v) != nil {
		return r, false
	}
	r = addresses{First: netip.MustParseAddr(v.GetFirstIp()), VRF: v.GetVrfId(), Twice: v.GetTwiceNat()}
	if r.Last = r.First; v.GetLastIp() != "" {
		r.Last = netip.MustParseAddr(v.GetLastIp())
	}
	return r, true
}

// poolOf returns the pool of addresses, without a name.
func poolOf(r addresses) *nat.Nat44AddressPool {
	v := &nat.Nat44AddressPool{FirstIp: r.First.String(), VrfId: r.VRF, TwiceNat: r.Twice}
	if r.Last != r.First {
		v.LastIp = r.Last.String()
	}
	return v
}

// String implements fmt.Stringer.
func (r addresses) String() string {
	return fmt.Sprintf("%s-%s of VRF %d, twice-NAT %t", r.First, r.Last, r.VRF, r.Twice)
}

// all yields the addresses, or none of an invalid pool.
func (r addresses) all(valid bool) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for a := r.First; valid && yield(a) && a != r.Last; a = a.Next() {
		}
	}
}

// addAddresses adds a range. VPP stops at an address that it has, so the range is then
// repaired. Addresses that are there with the right VRF stay, with their translations.
func (h *handler) addAddresses(ctx context.Context, r addresses) error {
	p, err := h.inUse(ctx)
	if err != nil {
		return err
	}
	if r.Twice && !p.endpointDependent() {
		return fmt.Errorf("addresses for twice-NAT: %w; expected the endpoint-dependent NAT44", ErrDisabled)
	}
	err = h.API.Batch(ctx, p.pool(r, true))
	if !errors.Is(err, api.VALUE_EXIST) {
		return err
	}
	has, err := h.vrfsOf(ctx, p, r)
	if err != nil {
		return err
	}
	var steps []*conn.Step
	for a := range r.all(true) {
		vrf, exists := has[a]
		one := addresses{a, a, r.VRF, r.Twice}
		if exists && vrf != r.VRF {
			steps = append(steps, p.pool(one, false))
		}
		if !exists || vrf != r.VRF {
			steps = append(steps, p.pool(one, true))
		}
	}
	return h.API.Batch(ctx, steps...)
}

// removeAddresses removes a range from the plugins that have it. VPP stops at an address that
// it does not have, so the rest is then removed one by one. Dynamic translations to a removed
// address end; those of static mappings stay (nat44_ed_del_address).
func (h *handler) removeAddresses(ctx context.Context, r addresses) error {
	enabled, err := h.enabled(ctx)
	if err != nil {
		return err
	}
	for _, p := range enabled {
		if r.Twice && !p.endpointDependent() {
			continue
		}
		err := h.API.Batch(ctx, p.pool(r, false))
		if err == nil {
			continue
		}
		if !isGone(err) {
			return err
		}
		has, err := h.vrfsOf(ctx, p, r)
		if err != nil {
			return err
		}
		var steps []*conn.Step
		for a := range has {
			steps = append(steps, p.pool(addresses{a, a, r.VRF, r.Twice}, false))
		}
		if err := h.API.Batch(ctx, steps...); err != nil && !isGone(err) {
			return err
		}
	}
	return nil
}

// addPool adds the addresses of a valid pool.
func (h *handler) addPool(ctx context.Context, r addresses) error {
	h.single.note(r, true, true)
	for a := range r.all(true) {
		h.held.note(a, false)
	}
	return h.addAddresses(ctx, r)
}

// updatePool adds the new addresses of a pool, and then removes those that it no longer has. The others
// stay, with their translations. The endpoint-independent plugin refuses to remove an address that a
// mapping has, which may move in the same transaction; see poolAddressesDescriptor. An address that
// stays in VPP stays noted, so that the next Retrieve reports it as this agent's.
func (h *handler) updatePool(ctx context.Context, was, is addresses) error {
	for _, r := range is.without(was) {
		if err := h.addPool(ctx, r); err != nil {
			return err
		}
	}
	for _, r := range was.without(is) {
		err := h.removeAddresses(ctx, r)
		switch {
		case err == nil:
			h.single.note(r, true, false)
		case r.Twice || !errors.Is(err, api.UNSPECIFIED):
			return err
		default:
			for a := range r.all(true) {
				h.held.note(a, true)
			}
		}
	}
	return nil
}

// removeHeld removes the addresses that a pool could not give up when it changed.
func (h *handler) removeHeld(ctx context.Context, pool keys.NATPool) error {
	r := addresses{First: pool.First, Last: pool.First, VRF: pool.VRF, Twice: pool.Twice}
	if pool.Last.IsValid() {
		r.Last = pool.Last
	}
	for a := range r.all(true) {
		if !h.held.has(a) {
			continue
		}
		if err := h.removeAddresses(ctx, addresses{a, a, r.VRF, r.Twice}); err != nil {
			return err
		}
		h.held.note(a, false)
		h.single.addresses.note(poolKey{a, r.Twice}, false)
	}
	return nil
}

// without returns the ranges of addresses that are not in another range.
func (r addresses) without(other addresses) (out []addresses) {
	if r.Last.Less(other.First) || other.Last.Less(r.First) {
		return []addresses{r}
	}
	if r.First.Less(other.First) {
		out = append(out, addresses{r.First, other.First.Prev(), r.VRF, r.Twice})
	}
	if other.Last.Less(r.Last) {
		out = append(out, addresses{other.Last.Next(), r.Last, r.VRF, r.Twice})
	}
	return out
}

// vrfsOf returns those addresses of a range that a plugin has, with their VRFs. The error is
// that of the dump.
func (h *handler) vrfsOf(ctx context.Context, p plugin, r addresses) (map[netip.Addr]uint32, error) {
	all, err := p.readPool(ctx)
	out := map[netip.Addr]uint32{}
	for _, a := range all {
		if a.Twice == r.Twice && !a.Addr.Less(r.First) && !r.Last.Less(a.Addr) {
			out[a.Addr] = a.VRF
		}
	}
	return out, err
}

// readPools returns the addresses of the enabled plugins, in VPP's order.
func (h *handler) readPools(ctx context.Context) (out []poolAddress, err error) {
	enabled, err := h.enabled(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range enabled {
		all, err := p.readPool(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, all...)
	}
	return out, nil
}

type foundPool = scheduler.Found[*nat.Nat44AddressPool, struct{}]

// retrievePools yields the declared pools that VPP has, or a part of those of which it has only
// that. Other addresses come as pools of those that follow each other, except those that the
// value of NAT44 lists.
func (h *handler) retrievePools(ctx context.Context, wanted []scheduler.Desired[*nat.Nat44AddressPool]) iter.Seq2[foundPool, error] {
	return reading.Of(func(learns bool, yield func(foundPool, error) bool) {
		all, err := h.readPools(ctx)
		if err != nil {
			yield(foundPool{}, err)
			return
		}
		has := make(map[poolKey]uint32, len(all))
		for _, a := range all {
			has[poolKey{a.Addr, a.Twice}] = a.VRF
		}
		ours := map[poolKey]bool{}
		for _, w := range wanted {
			if v := h.declaredPool(w.Value, has, ours); v != nil && !yield(foundPool{Key: w.Key, Value: v}, nil) {
				return
			}
		}
		others := h.others(all, ours)
		known := make([]bool, len(others))
		for i, r := range others {
			// An address that was in a pool of ours moved out of the declared one.
			known[i] = h.single.addresses.has(poolKey{r.First, r.Twice})
		}
		if learns {
			h.single.addresses.replace(ours)
		}
		for i, r := range others {
			if !yield(foundPool{Value: poolOf(r), OwnerUnknown: !known[i]}, nil) {
				return
			}
		}
	})
}

// declaredPool returns a declared pool as VPP has it, or nil if it has none of it. It marks all
// addresses as ours. A part is enough for the scheduler to see a difference and to complete the
// pool. Addresses that were just reported in the list of the value of NAT44 are no such part:
// a mapping may depend on them there, and VPP would refuse to remove them with the part.
func (h *handler) declaredPool(v *nat.Nat44AddressPool, has map[poolKey]uint32, ours map[poolKey]bool) *nat.Nat44AddressPool {
	r, ok := addressesOf(v)
	var part addresses // the first addresses with one VRF that follow each other
	whole := ok
	for a := range r.all(ok) {
		ours[poolKey{a, r.Twice}] = true
		vrf, exists := has[poolKey{a, r.Twice}]
		whole = whole && exists && vrf == r.VRF
		switch {
		case h.listed.addresses.has(poolKey{a, r.Twice}):
		case exists && !part.First.IsValid():
			part = addresses{a, a, vrf, r.Twice}
		case exists && part.Last.Next() == a && part.VRF == vrf:
			part.Last = a
		}
	}
	switch {
	case whole:
		return v
	case !part.First.IsValid():
		return nil
	}
	out := poolOf(part)
	out.Name = v.GetName()
	return out
}

// others returns the addresses that nobody declares, grouped to ranges.
func (h *handler) others(all []poolAddress, ours map[poolKey]bool) (out []addresses) {
	for _, a := range all {
		k := poolKey{a.Addr, a.Twice}
		if ours[k] || h.listed.addresses.has(k) {
			continue
		}
		if end := len(out) - 1; end >= 0 && out[end].Last.Next() == a.Addr && out[end].VRF == a.VRF && out[end].Twice == a.Twice {
			out[end].Last = a.Addr
			continue
		}
		out = append(out, addresses{a.Addr, a.Addr, a.VRF, a.Twice})
	}
	return out
}
