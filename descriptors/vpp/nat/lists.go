//nolint:staticcheck // The lists are deprecated, and still work.
package nat

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
	"github.com/keyplane/keyplane/scheduler"
)

// derivedOfGlobal returns the listed interfaces and addresses, and the property of the
// endpoint-dependent kind. Twice-NAT, VRF tables and mappings depend on that property and wait
// for it.
func derivedOfGlobal(_ string, v *nat.Nat44Global) (out []scheduler.KeyValue) {
	if !v.GetEndpointIndependent() {
		out = append(out, scheduler.KeyValue{Key: keys.NATEndpointDependent, Value: &emptypb.Empty{}})
	}
	for _, i := range v.GetNatInterfaces() {
		out = append(out, scheduler.KeyValue{Key: keys.NATInterface(i.GetName(), i.GetIsInside()), Value: i})
	}
	for _, a := range v.GetAddressPool() {
		out = append(out, scheduler.KeyValue{Key: keys.NATAddress(a.GetAddress(), a.GetTwiceNat()), Value: a})
	}
	return out
}

// listedInterfaces checks the list of interfaces.
func (f *faults) listedInterfaces(v *nat.Nat44Global) {
	seen := map[string]features{}
	for n, i := range v.GetNatInterfaces() {
		field := fmt.Sprintf("nat_interfaces[%d]", n)
		has, is := seen[i.GetName()], listedFeatures(i)
		switch {
		case i.GetName() == "":
			f.Add(field+".name", "", "the name of an interface")
		case has.output || is.output && has != features{}:
			f.Add(field+".output_feature", i.GetOutputFeature(), "an interface once if it has output_feature: VPP then translates on output, and the interface has no sides")
		case has.inside && is.inside || has.outside && is.outside:
			f.Add(field+".is_inside", i.GetIsInside(), "each side of an interface once")
		}
		seen[i.GetName()] = features{has.inside || is.inside, has.outside || is.outside, has.output || is.output}
	}
}

// listedAddresses checks the list of addresses. VPP has one pool for plain addresses and
// another one for twice-NAT.
func (f *faults) listedAddresses(v *nat.Nat44Global) {
	seen := map[poolKey]bool{}
	for n, a := range v.GetAddressPool() {
		field := fmt.Sprintf("address_pool[%d].address", n)
		k := poolKey{f.ipv4(field, a.GetAddress()), a.GetTwiceNat()}
		if k.Addr.IsValid() && seen[k] {
			f.Add(field, a.GetAddress(), "each address once, and once more with twice_nat")
		}
		seen[k] = true
	}
}

// listedFeatures returns the features of a listed interface.
func listedFeatures(i *nat.Nat44Global_Interface) features {
	switch {
	case i.GetOutputFeature():
		return features{output: true}
	case i.GetIsInside():
		return features{inside: true}
	}
	return features{outside: true}
}

// listedAddress returns a listed address as a range. It is false for text that is no IPv4
// address, which validation refuses beforehand.
func listedAddress(a *nat.Nat44Global_Address) (addresses, bool) {
	addr, err := netip.ParseAddr(a.GetAddress())
	return addresses{addr, addr, a.GetVrfId(), a.GetTwiceNat()}, err == nil && addr.Is4()
}

// listedInterfaceDescriptor implements a listed side. It has no Retrieve: readLists reports it.
func (h *handler) listedInterfaceDescriptor() scheduler.Descriptor[*nat.Nat44Global_Interface, struct{}] {
	return scheduler.Descriptor[*nat.Nat44Global_Interface, struct{}]{
		Name:   GlobalInterfaceName,
		Prefix: keys.NATInterfaces,
		Match:  func(key string) bool { _, _, ok := keys.ParseNATInterface(key); return ok },

		Dependencies: func(_ string, v *nat.Nat44Global_Interface) []scheduler.Dependency {
			return []scheduler.Dependency{{Label: "interface-exists", Key: keys.Interface(v.GetName()).Key()}}
		},
		Claims: func(_ string, v *nat.Nat44Global_Interface) []scheduler.Claim {
			return interfaceClaims(v.GetName(), listedFeatures(v), true)
		},

		Create: func(ctx context.Context, _ string, v *nat.Nat44Global_Interface) (struct{}, error) {
			return struct{}{}, h.addFeatures(ctx, v.GetName(), listedFeatures(v))
		},
		Delete: func(ctx context.Context, _ string, v *nat.Nat44Global_Interface, _ struct{}) error {
			if h.single.interfaces.has(v.GetName()) {
				return nil // see readLists
			}
			return h.removeFeatures(ctx, v.GetName(), listedFeatures(v))
		},
	}
}

// listedAddressDescriptor implements a listed address. It has no Retrieve: readLists reports it.
func (h *handler) listedAddressDescriptor() scheduler.Descriptor[*nat.Nat44Global_Address, struct{}] {
	return scheduler.Descriptor[*nat.Nat44Global_Address, struct{}]{
		Name:   GlobalAddressName,
		Prefix: keys.NATAddresses,
		Match:  func(key string) bool { _, _, ok := keys.ParseNATAddress(key); return ok },

		Dependencies: func(_ string, v *nat.Nat44Global_Address) []scheduler.Dependency {
			return append(vrfExists("vrf-table-exists", v.GetVrfId()), enabledFor(v.GetTwiceNat()))
		},
		Claims: func(_ string, v *nat.Nat44Global_Address) []scheduler.Claim {
			r, ok := listedAddress(v)
			if !ok {
				return nil
			}
			return []scheduler.Claim{addressClaim("address", poolKey{r.First, r.Twice})}
		},

		Create: func(ctx context.Context, _ string, v *nat.Nat44Global_Address) (struct{}, error) {
			r, ok := listedAddress(v)
			h.listed.note(r, ok, true)
			return struct{}{}, h.addAddresses(ctx, r)
		},
		Delete: func(ctx context.Context, _ string, v *nat.Nat44Global_Address, _ struct{}) error {
			r, ok := listedAddress(v)
			h.listed.note(r, ok, false)
			if h.single.addresses.has(poolKey{r.First, r.Twice}) {
				return nil // see readLists
			}
			return h.removeAddresses(ctx, r)
		},
	}
}

// readLists adds the lists to the value of NAT44. If the declared value uses them, that is all that VPP
// has and that no value of its own declares. So an interface or address is found that was
// dropped from a list while no agent ran. Otherwise, it is the listed items that were not removed yet.
// If they were reported as values of their own instead, these would be removed beside the mappings
// that depend on the listed ones, which VPP refuses.
//
// After a start, the values of their own are read back after this one. They may then be in the
// lists, too. So a verb that removes such an item does nothing. An error leaves the lists
// incomplete; the caller reports it in place of the value.
func (h *handler) readLists(ctx context.Context, v, declared *nat.Nat44Global, learns bool) error {
	interfaces, pool := map[string]bool{}, map[poolKey]bool{}
	if learns {
		defer func() { h.listed.interfaces.replace(interfaces); h.listed.addresses.replace(pool) }()
	}
	allInterfaces, allAddresses := len(declared.GetNatInterfaces()) > 0, len(declared.GetAddressPool()) > 0
	if allInterfaces || !h.listed.interfaces.empty() {
		all, err := h.namedFeatures(ctx, learns)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !h.single.interfaces.has(name) && (allInterfaces || h.listed.interfaces.has(name)) {
				v.NatInterfaces = append(v.NatInterfaces, listedAs(name, all[name], declared)...)
				interfaces[name] = true
			}
		}
	}
	if !allAddresses && h.listed.addresses.empty() {
		return nil
	}
	all, err := h.readPools(ctx)
	for _, a := range all {
		k := poolKey{a.Addr, a.Twice}
		if h.single.addresses.has(k) || !allAddresses && !h.listed.addresses.has(k) {
			continue
		}
		v.AddressPool = append(v.AddressPool, &nat.Nat44Global_Address{Address: a.Addr.String(), VrfId: a.VRF, TwiceNat: a.Twice})
		pool[k] = true
	}
	return err
}

// note notes that a verb adds a range of addresses in one of the two ways, or removes it.
func (d *declared) note(r addresses, valid, add bool) {
	for a := range r.all(valid) {
		d.addresses.note(poolKey{a, r.Twice}, add)
	}
}

// listedAs returns the features of an interface as a list has them. VPP has no sides of the
// output feature, so that of the declared value is taken.
func listedAs(name string, f features, declared *nat.Nat44Global) (out []*nat.Nat44Global_Interface) {
	if f.output {
		one := &nat.Nat44Global_Interface{Name: name, OutputFeature: true}
		for _, i := range declared.GetNatInterfaces() {
			if i.GetName() == name && i.GetOutputFeature() {
				one.IsInside = i.GetIsInside()
			}
		}
		return append(out, one)
	}
	for _, inside := range f.sides() {
		out = append(out, &nat.Nat44Global_Interface{Name: name, IsInside: inside})
	}
	return out
}
