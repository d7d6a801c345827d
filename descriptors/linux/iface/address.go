package iface

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// errKey reports a derived key that cannot be parsed, such as one with an invalid address.
var errKey = errors.New("invalid key")

// validateAddress refuses a key whose parts cannot be read. The text of the address is
// checked with the interface.
func validateAddress(key string, _ *interfaces.Interface) error {
	a, ok := keys.ParseAddress(key)
	if !ok || a.Interface == keys.Invalid || a.Addr == keys.Invalid {
		return fmt.Errorf("%w: %s", errKey, key)
	}
	return nil
}

// sameAddress: the key contains the address. One that the kernel does not use is not the declared one.
func sameAddress(_ string, old, new *interfaces.Interface) bool {
	return !movedAddress("", old, new, struct{}{}) && stateOf(old) == stateOf(new)
}

// movedAddress: a change of the VRF re-creates an address, since the kernel drops addresses when a link enters or leaves
// a VRF.
func movedAddress(_ string, old, new *interfaces.Interface, _ struct{}) bool {
	return old.GetVrfMasterInterface() != new.GetVrfMasterInterface()
}

// addressDependencies: an address is added after the VRF membership, for the same reason.
func addressDependencies(key string, v *interfaces.Interface) (deps []scheduler.Dependency) {
	a, _ := keys.ParseAddress(key)
	if vrf := v.GetVrfMasterInterface(); vrf != "" {
		deps = append(deps, scheduler.Dependency{Label: "interface-assigned-to-vrf", Key: keys.VRF(a.Interface, vrf)})
	}
	if a.Source == keys.Existing {
		addr := a.Addr
		if p, err := netip.ParsePrefix(addr); err == nil {
			addr = p.String() // as package hostnames announces it, whatever its spelling
		}
		deps = append(deps, scheduler.Dependency{Label: "address-assigned-to-interface", Key: keys.HostAddress(hostName(v), addr)})
	}
	if ref, ok := alloc.Parse(a.Addr); ok {
		deps = append(deps, scheduler.Dependency{Label: a.Addr, Key: ref.Key(a.Interface)})
	}
	return deps
}

// createAddress adds an address. An address of an EXISTING interface is only verified,
// which its dependency has done.
func (h *handler) createAddress(_ context.Context, key string, _ *interfaces.Interface) (struct{}, error) {
	none := struct{}{}
	a, _ := keys.ParseAddress(key)
	if a.Source == keys.Existing {
		return none, nil
	}
	p, ok := h.prefix(a)
	if !ok {
		return none, fmt.Errorf("%s: no address is allocated", a.Addr)
	}
	meta, space, err := h.openInterface(a.Interface)
	if err != nil {
		return none, err
	}
	defer space.Close()
	addr, began := kernel.Addr{Link: meta.Index, Prefix: p}, h.Watch.Clock()
	// The kernel may have IPv6 disabled on new links (sysctl
	// net.ipv6.conf.default.disable_ipv6), and would refuse the address.
	if p.Addr().Is6() {
		if err := h.enableIPv6(space, meta); err != nil {
			return none, err
		}
	}
	if p.Addr().Is4() {
		defer h.orders.Hold(linkID{meta.NS, meta.Index})()
	}
	made, err := h.addAddress(space, meta, addr)
	if meta.shared() && (err == nil || made) {
		h.marks.putAddr(linkID{meta.NS, meta.Index}, p, map[bool]string{true: a.Interface}[made])
	}
	if err != nil {
		return none, err
	}
	h.Watch.Created(space, drift.Address(space.ID, addr), drift.Entry{Key: key, Link: meta.Index}, began)
	if p.Addr().Is4() {
		return none, h.inOrder(space, meta, h.declaring(a))
	}
	return none, nil
}

// updateAddress has the kernel test an address again that it does not use. Nothing else of an address changes in place.
func (h *handler) updateAddress(ctx context.Context, key string, _, v *interfaces.Interface, _ struct{}) (struct{}, error) {
	return h.createAddress(ctx, key, v)
}

// addAddress adds an address, and reports whether an agent has made it.
func (h *handler) addAddress(space *netns.Space, meta Meta, addr kernel.Addr) (made bool, err error) {
	err = space.AddAddr(addr)
	switch {
	case err == nil:
		return true, h.doubtful(space, meta, addr)
	case !errors.Is(err, unix.EEXIST):
		return false, kernel.Refused(err)
	}
	// An earlier attempt, or another program, has added it.
	have, err := h.checkExisting(space, addr)
	if err != nil {
		return false, err
	}
	made = have.Protocol == kernel.Protocol
	if have.Duplicate {
		return made, h.testAgain(space, meta, have)
	}
	if have.Tentative {
		if err := h.doubtful(space, meta, addr); err != nil {
			return made, err
		}
	}
	// Somebody may have removed the route to its network, and left the address.
	return made, space.Connect(addr)
}

// prefix returns the address, resolved if it is a reference to an allocated one.
func (h *handler) prefix(a keys.Address) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(alloc.Address(h.Allocations, a.Addr, a.Interface))
	return p, err == nil
}

// openInterface opens the namespace of an existing interface.
func (h *handler) openInterface(name string) (Meta, *netns.Space, error) {
	meta, ok := h.index.Get(name)
	if !ok {
		return Meta{}, nil, fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	space, ok := h.Spaces.ByID(meta.NS)
	if !ok {
		return Meta{}, nil, fmt.Errorf("%s: %w", netns.Text(meta.Namespace), netns.ErrNotFound)
	}
	return meta, space, nil
}

// checkExisting returns the address that the kernel reports as existing, or an error if it is not the desired one. IPv6
// allows an address only once on a link, with any prefix length.
func (h *handler) checkExisting(space *netns.Space, want kernel.Addr) (kernel.Addr, error) {
	addrs, err := space.Addrs(want.Link)
	if err != nil {
		return kernel.Addr{}, err
	}
	for _, have := range addrs {
		if have.Prefix == want.Prefix && !have.Peer.IsValid() {
			return have, nil
		}
		if have.Prefix.Addr() == want.Prefix.Addr() {
			h.Watch.Await(drift.Address(space.ID, have))
			return kernel.Addr{}, fmt.Errorf("address %v: %w with %v on the same link; remove one of them", want.Prefix, ErrConflict, have.Prefix)
		}
	}
	return kernel.Addr{}, fmt.Errorf("address %v: %w", want.Prefix, ErrConflict)
}

// enableIPv6 enables IPv6 on a link and on lo, through which the kernel routes local
// addresses. A link without IPv6 may get it back, so only a kernel without it is final.
func (h *handler) enableIPv6(space *netns.Space, meta Meta) error {
	for _, link := range []string{loopback, meta.HostName} {
		err := space.Sysctl("ipv6/conf/"+link+"/disable_ipv6", "0")
		switch {
		case errors.Is(err, fs.ErrNotExist) && link == loopback:
			return scheduler.Terminal(fmt.Errorf("this kernel has no IPv6: it needs CONFIG_IPV6 and no ipv6.disable=1 on its command line: %w", err))
		case errors.Is(err, fs.ErrNotExist):
			return h.noIPv6(space, meta, err)
		}
		if err != nil {
			return fmt.Errorf("enabling IPv6 on %s: %w", link, err)
		}
	}
	return nil
}

// noIPv6 says why a link has no settings of IPv6: its MTU is too small, or it is gone or renamed. The address is tried
// again when the MTU suffices.
func (h *handler) noIPv6(space *netns.Space, meta Meta, err error) error {
	h.Watch.Await(drift.Interface(space.ID, meta.Index))
	l, gone := space.LinkByName(meta.HostName)
	if gone != nil {
		return gone
	}
	if l.MTU < kernel.MinMTUIPv6 {
		return fmt.Errorf("link %s has MTU %d; IPv6 needs at least %d", l.Name, l.MTU, kernel.MinMTUIPv6)
	}
	return fmt.Errorf("enabling IPv6 on %s: %w", l.Name, err)
}

// deleteAddress removes the address, unless it belongs to an existing interface: others
// have put it there. Forget comes first, so the kernel's event is not taken for drift.
func (h *handler) deleteAddress(_ context.Context, key string, _ *interfaces.Interface, _ struct{}) error {
	a, _ := keys.ParseAddress(key)
	p, ok := h.prefix(a)
	if a.Source == keys.Existing || !ok {
		return nil
	}
	meta, space, err := h.openInterface(a.Interface)
	if err != nil {
		return nil //nolint:nilerr // the address vanished with the interface or its namespace
	}
	defer space.Close()
	addr := kernel.Addr{Link: meta.Index, Prefix: p}
	h.Watch.Forget(drift.Address(space.ID, addr))
	if meta.shared() && !h.made(space, addr) {
		return nil // it was there before the value
	}
	if p.Addr().Is4() {
		defer h.orders.Hold(linkID{meta.NS, meta.Index})()
		keepSecondaries(space, meta.Index)
	}
	err = space.DelAddr(addr)
	if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.ENODEV) {
		return err
	}
	h.marks.putAddr(linkID{meta.NS, meta.Index}, p, "")
	if v := h.declaring(a); h.hasSecondaries(v, p) { // of which the kernel has made one the primary, behind all others
		return h.inOrder(space, meta, v)
	}
	return nil
}

// hasSecondaries reports whether an interface declares other IPv4 addresses in the subnet of one.
func (h *handler) hasSecondaries(v *interfaces.Interface, p netip.Prefix) bool {
	order, _ := h.declaredIPv4(v)
	return slices.ContainsFunc(order, func(other netip.Prefix) bool { return other != p && other.Masked() == p.Masked() })
}

// made reports whether the agent has made an address of a link that others use too. The kernel says it, since
// 5.18, or else the agent knows it.
func (h *handler) made(space *netns.Space, want kernel.Addr) bool {
	addrs, err := space.Addrs(want.Link)
	if err != nil {
		addrs = nil
	}
	return h.madeIn(linkID{space.ID, want.Link}, addrs, want.Prefix)
}

// madeIn is made for a link that has these addresses.
func (h *handler) madeIn(id linkID, have []kernel.Addr, want netip.Prefix) bool {
	return h.marks.madeFor(id, want) != "" ||
		slices.ContainsFunc(have, func(a kernel.Addr) bool { return a.Prefix == want && a.Protocol == kernel.Protocol })
}

// keepSecondaries has a link keep the IPv4 addresses in the subnet of one that is removed. By
// default the kernel removes them with the first address of the subnet, and then the routes of the
// link, whoever has made them. Where /proc/sys may not be written, its default remains.
func keepSecondaries(space *netns.Space, link int) {
	if l, err := space.LinkByIndex(link); err == nil {
		_ = space.Sysctl("ipv4/conf/"+l.Name+"/promote_secondaries", "1")
	}
}
