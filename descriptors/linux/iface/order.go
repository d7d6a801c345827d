package iface

import (
	"errors"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/drift"
	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// The kernel keeps the IPv4 addresses of a link in the order in which they were added, but those of a subnet after
// its first one (the primary) at the end. What the host sends has the first address that fits as its source. The
// addresses of an interface are values of their own: they are added at the same time, and one that was lost is added
// last. So each verb that adds one, or removes one beside others of its subnet, restores the declared order. An edit
// that changes the order, or puts an address before others, updates the interface first.

// sameOrder reports whether the IPv4 addresses need nothing besides the verbs of each: those in both values have one
// order, and new ones come last. Retrieve reports addresses out of order, see handler.declared.
func (h *handler) sameOrder(old, new *interfaces.Interface) bool {
	if new.GetLinkOnly() || slices.Equal(old.GetIpAddresses(), new.GetIpAddresses()) {
		return true
	}
	before := map[string]int{}
	for i, addr := range old.GetIpAddresses() {
		text, _ := cutState(addr)
		before[text] = i
	}
	last, added := -1, false
	for _, addr := range new.GetIpAddresses() {
		if p, ok := h.prefix(keys.Address{Interface: new.GetName(), Addr: addr}); !ok || !p.Addr().Is4() {
			continue
		}
		i, known := before[addr]
		if known && (added || i < last) {
			return false
		}
		added = added || !known
		if known {
			last = i
		}
	}
	return true
}

// edits remembers interfaces as updates have declared them last. Their new addresses are added before everybody can see
// the edit; see Options.Declared. The zero value is empty.
type edits struct {
	mu     sync.Mutex // guards byName
	byName map[string]*interfaces.Interface
}

func (e *edits) put(v *interfaces.Interface) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byName == nil {
		e.byName = map[string]*interfaces.Interface{}
	}
	e.byName[v.GetName()] = v
}

// get returns the interface of an edit that has the address, or nil.
func (e *edits) get(a keys.Address) *interfaces.Interface {
	e.mu.Lock()
	defer e.mu.Unlock()
	if v := e.byName[a.Interface]; slices.Contains(v.GetIpAddresses(), a.Addr) {
		return v
	}
	return nil
}

func (e *edits) drop(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.byName, name)
}

// declaring returns the interface of an address as it is declared now, or nil.
func (h *handler) declaring(a keys.Address) *interfaces.Interface {
	if h.Declared == nil {
		return nil
	}
	v := h.Declared(a.Interface)
	if slices.Contains(v.GetIpAddresses(), a.Addr) {
		h.edits.drop(a.Interface)
		return v
	}
	if edited := h.edits.get(a); edited != nil {
		return edited
	}
	return v
}

// declaredIPv4 returns the IPv4 addresses that the agent adds for an interface, in the declared order, with their keys.
func (h *handler) declaredIPv4(v *interfaces.Interface) (order []netip.Prefix, keyOf map[netip.Prefix]string) {
	keyOf = map[netip.Prefix]string{}
	if v.GetLinkOnly() {
		return nil, nil
	}
	for _, addr := range v.GetIpAddresses() {
		p, ok := h.prefix(keys.Address{Interface: v.GetName(), Addr: addr})
		if ok && p.Addr().Is4() && keyOf[p] == "" {
			order = append(order, p)
			keyOf[p] = addressKey(v, keys.Static, addr)
		}
	}
	return order, keyOf
}

// inOrder restores the declared order of the IPv4 addresses of a link. It removes and adds
// again only those that come too early, so the link always has an address: without one, the kernel would drop its
// routes. The caller holds the lock of the link in h.orders.
func (h *handler) inOrder(space *netns.Space, meta Meta, v *interfaces.Interface) error {
	order, keyOf := h.declaredIPv4(v)
	if len(order) < 2 {
		return nil
	}
	have, err := space.Addrs(meta.Index)
	if err != nil {
		return err
	}
	early := h.early(linkID{meta.NS, meta.Index}, meta.shared(), have, order)
	if len(early) == 0 {
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
	return h.addMissing(space, meta, v.GetName(), order, keyOf, early)
}

// early returns the addresses of a link that have to be added again, so that those which are there are in the declared
// order. The longest start of the order that is there already stays. Where others use the link too (shared), what is
// not ours is not moved, and then nothing is.
func (h *handler) early(id linkID, shared bool, have []kernel.Addr, declared []netip.Prefix) (early []netip.Prefix) {
	at := map[netip.Prefix]int{}
	for i, a := range have {
		if !a.Peer.IsValid() {
			at[a.Prefix] = i
		}
	}
	there := slices.DeleteFunc(slices.Clone(declared), func(p netip.Prefix) bool { _, is := at[p]; return !is })
	last, wrong := -1, false
	for _, p := range asKernelHas(there) {
		wrong = wrong || at[p] < last
		if wrong {
			early = append(early, p)
		}
		last = at[p]
	}
	if shared && slices.ContainsFunc(early, func(p netip.Prefix) bool { return !h.madeIn(id, have, p) }) {
		return nil
	}
	return early
}

// addMissing adds those addresses of early in the declared order that are not there. A link whose
// promote_secondaries could not be set has perhaps lost others with them; their events are seen.
func (h *handler) addMissing(space *netns.Space, meta Meta, name string, order []netip.Prefix, keyOf map[netip.Prefix]string, early []netip.Prefix) error {
	began := h.Watch.Clock()
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
		h.Watch.Created(space, drift.Address(space.ID, addr), drift.Entry{Key: keyOf[p], Link: meta.Index}, began)
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
