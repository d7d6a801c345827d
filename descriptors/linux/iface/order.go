package iface

import (
	"errors"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
)

// The kernel keeps the IPv4 addresses of a link in the order in which they were added, but those of a subnet after
// its first one (the primary) at the end. What the host sends has the first address that fits as its source. The
// addresses of an interface are values of their own: they are added at the same time, and one that was lost is added
// last. So each verb that adds one restores the declared order.

// declaredIPv4 returns the IPv4 addresses that the agent adds for an interface, in the declared order, with their keys.
func (h *handler) declaredIPv4(name string) (order []netip.Prefix, keyOf map[netip.Prefix]string) {
	keyOf = map[netip.Prefix]string{}
	if h.Declared == nil {
		return nil, nil
	}
	v := h.Declared(name)
	if v == nil || v.GetLinkOnly() {
		return nil, nil
	}
	for _, addr := range v.GetIpAddresses() {
		p, ok := h.prefix(keys.Address{Interface: name, Addr: addr})
		if ok && p.Addr().Is4() && keyOf[p] == "" {
			order = append(order, p)
			keyOf[p] = addressKey(v, keys.Static, addr)
		}
	}
	return order, keyOf
}

// inOrder restores the declared order of the IPv4 addresses of a link, after one was added. It removes and adds
// again only those that come too early, so the link always has an address: without one, the kernel would drop its
// routes.
func (h *handler) inOrder(space *netns.Space, meta Meta, name string) error {
	order, keyOf := h.declaredIPv4(name)
	if len(order) < 2 {
		return nil
	}
	have, err := space.Addrs(meta.Index)
	if err != nil {
		return err
	}
	early := tooEarly(have, asKernelHas(order))
	theirs := func(p netip.Prefix) bool {
		return meta.shared() && !h.made(space, kernel.Addr{Link: meta.Index, Prefix: p})
	}
	if len(early) == 0 || slices.ContainsFunc(early, theirs) { // what is not ours is not moved
		return nil
	}
	keepSecondaries(space, meta.Index)
	for _, p := range early {
		addr := kernel.Addr{Link: meta.Index, Prefix: p}
		h.Watch.Forget(drift.Address(space.ID, addr))
		if err := space.DelAddr(addr); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return err
		}
	}
	return h.addMissing(space, meta, name, order, keyOf, early)
}

// addMissing adds those addresses of early in the declared order that are not there. A link whose
// promote_secondaries could not be set has perhaps lost others with them; their events are seen.
func (h *handler) addMissing(space *netns.Space, meta Meta, name string, order []netip.Prefix, keyOf map[netip.Prefix]string, early []netip.Prefix) error {
	for _, p := range order {
		if !slices.Contains(early, p) {
			continue
		}
		addr := kernel.Addr{Link: meta.Index, Prefix: p}
		if err := space.AddAddr(addr); err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
		if meta.shared() {
			h.marks.putAddr(linkID{meta.NS, meta.Index}, p, name)
		}
		h.Watch.Created(space, drift.Address(space.ID, addr), drift.Entry{Key: keyOf[p], Link: meta.Index})
	}
	return nil
}

// asKernelHas returns declared addresses in the order of the kernel: first the primaries, each the first of its subnet.
func asKernelHas(declared []netip.Prefix) []netip.Prefix {
	var primaries, secondaries []netip.Prefix
	seen := map[netip.Prefix]bool{}
	for _, p := range declared {
		if seen[p.Masked()] {
			secondaries = append(secondaries, p)
		} else {
			primaries = append(primaries, p)
		}
		seen[p.Masked()] = true
	}
	return append(primaries, secondaries...)
}

// tooEarly returns the wanted addresses that have to be added again, so that those which are there are in the wanted
// order. The longest start of the order that is there already stays.
func tooEarly(have []kernel.Addr, want []netip.Prefix) (early []netip.Prefix) {
	at := map[netip.Prefix]int{}
	for i, a := range have {
		if !a.Peer.IsValid() {
			at[a.Prefix] = i
		}
	}
	last, wrong := -1, false
	for _, p := range want {
		i, there := at[p]
		if !there {
			continue // it waits, or is added later
		}
		wrong = wrong || i < last
		if wrong {
			early = append(early, p)
		}
		last = i
	}
	return early
}
