package iface

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/tables"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/scheduler"
)

// errKey reports a key that names no address. Only an observed or remembered value can
// have one, since keys of derived values are made by package keys.
var errKey = errors.New("invalid key")

// addressDescriptor adds addresses to interfaces. Addresses are derived values, so one
// that cannot be added does not keep the interface or its other addresses from being
// applied. It has no Retrieve: the interface lists them.
func (h *handler) addressDescriptor() scheduler.Descriptor[*emptypb.Empty, struct{}] {
	return scheduler.Descriptor[*emptypb.Empty, struct{}]{
		Name:   AddressName,
		Prefix: keys.Parts,
		Match: func(key string) bool {
			a, ok := keys.ParseAddress(key)
			// VPP's DHCP client adds and removes its address by itself.
			return ok && a.Source != keys.FromDHCP
		},

		Validate:     validateAddress,
		Dependencies: addressDependencies,

		Create: func(ctx context.Context, key string, _ *emptypb.Empty) (struct{}, error) {
			return struct{}{}, h.changeAddress(ctx, key, true)
		},
		Delete: func(ctx context.Context, key string, _ *emptypb.Empty, _ struct{}) error {
			return h.changeAddress(ctx, key, false)
		},
	}
}

// validateAddress checks restrictions of VPP on a single address. An invalid address does
// not make the interface invalid.
func validateAddress(key string, _ *emptypb.Empty) error {
	a, ok := keys.ParseAddress(key)
	if !ok || a.Interface == keys.Invalid || a.Addr == keys.Invalid {
		return fmt.Errorf("%w: %s", errKey, key)
	}
	var f findings
	if isRefusedLength(a.Addr) {
		f.Add("ip_addresses", a.Addr, "the prefix length 128, as it is link-local")
	}
	return f.Err()
}

// isRefusedLength tells whether VPP refuses the prefix length of an address. VPP accepts
// IPv6 link-local addresses with length 128 only.
func isRefusedLength(addr string) bool {
	p, err := netip.ParsePrefix(addr)
	return err == nil && isLinkLocal(p) && !p.IsSingleIP()
}

// isLinkLocal tells whether an address is an IPv6 link-local address. An interface has
// exactly one.
func isLinkLocal(p netip.Prefix) bool { return p.Addr().Is6() && p.Addr().IsLinkLocalUnicast() }

// readLinkLocal adds the link-local address to a found interface if it is declared. VPP
// does not list it with the others.
func (h *handler) readLinkLocal(ctx context.Context, f *kinds.Found) error {
	for _, addr := range f.Desired.GetIpAddresses() {
		p, err := netip.ParsePrefix(addr)
		if err != nil || !isLinkLocal(p) || !p.IsSingleIP() {
			continue
		}
		its := &ip.SwInterfaceIP6GetLinkLocalAddressReply{}
		err = h.API.Call(ctx, &ip.SwInterfaceIP6GetLinkLocalAddress{SwIfIndex: f.Details.SwIfIndex}, its)
		if errors.Is(err, api.IP6_NOT_ENABLED) || err == nil && netip.AddrFrom16(its.IP) != p.Addr() {
			continue
		}
		if err != nil {
			return err
		}
		f.Value.IpAddresses = append(f.Value.IpAddresses, addr)
	}
	return nil
}

// addressDependencies include the VRF: VPP does not change the VRF of an interface with an
// address.
func addressDependencies(key string, _ *emptypb.Empty) []scheduler.Dependency {
	a, _ := keys.ParseAddress(key)
	in := inVRF(a.Interface, nil) // only the allocation decides about the version of a reference
	if p, err := netip.ParsePrefix(a.Addr); err == nil && p.Addr().Is6() {
		in.Match = tables.IsForIPv6
	} else if err == nil {
		in.Match = tables.IsForIPv4
	}
	deps := []scheduler.Dependency{in}
	// The key has the reference, not the address: an allocation may come later, or change.
	if ref, ok := alloc.Parse(a.Addr); ok {
		deps = append(deps, scheduler.Dependency{Label: a.Addr, Key: ref.Key(a.Interface)})
	}
	return deps
}

// changeAddress adds or deletes an address. It is no error if the address is already
// there, or already gone. It is an error if another interface has the address, or an
// overlapping one.
func (h *handler) changeAddress(ctx context.Context, key string, add bool) error {
	a, _ := keys.ParseAddress(key)
	p, err := netip.ParsePrefix(alloc.Address(h.Allocations, a.Addr, a.Interface))
	if err != nil {
		return fmt.Errorf("%s: no address is known for it", a.Addr)
	}
	meta, ok := h.index.Get(a.Interface)
	if !ok {
		return fmt.Errorf("%s: %w", a.Interface, kinds.ErrNotThere)
	}
	if !add && isLinkLocal(p) {
		return nil // VPP does not delete link-local addresses; they are deleted with the interface
	}
	if add {
		h.networks.add(p)
	}
	err = h.API.Call(ctx, &vppif.SwInterfaceAddDelAddress{SwIfIndex: meta.SwIfIndex(), IsAdd: add, Prefix: vppwire.AddressWithPrefix(p)}, &vppif.SwInterfaceAddDelAddressReply{})
	switch {
	case add && (errors.Is(err, api.ADDRESS_IN_USE) || errors.Is(err, api.DUPLICATE_IF_ADDRESS)):
		return h.takenBy(ctx, meta, p, err)
	case !add && (errors.Is(err, api.ADDRESS_NOT_FOUND_FOR_INTERFACE) || errors.Is(err, api.INVALID_SW_IF_INDEX)):
		return nil
	}
	return err
}
