package iface

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// Suffixes for links of this agent that match no value. The scheduler finds no desired
// value with such a name, and removes the link.
const (
	missingPeer = "-MISSING_PEER"
	duplicate   = "-DUPLICATE"
)

// observed is a link of this agent and the value that was rebuilt from it.
type observed struct {
	place *place
	link  kernel.Link
	value *interfaces.Interface
	// kept are addresses that a declared value has taken over from this undeclared one.
	kept map[netip.Prefix]bool
	// trust says how sure it is that the agent has marked the link.
	trust trust
}

// Trust is how sure it is that the agent has marked a link. Whoever is root in a namespace, such as a container, may copy
// a mark to other links there. Such a link must not count for the one that the agent has made elsewhere, and must not be
// moved to another namespace.
type trust int

const (
	stranger trust = iota // only its mark says that it is ours, and it is not where the value is declared
	fitting               // it is in the namespace of the declared value with its name
	certain               // the agent knows it, or it is in the agent's own namespace
)

// hasMade reports whether more than the mark of a link says that it is ours: the agent knows it, or it is in the agent's
// own namespace.
func (h *handler) hasMade(space *netns.Space, l kernel.Link) bool {
	if _, known := h.marks.of(linkID{space.ID, l.Index}, l.MAC.String()); known {
		return true
	}
	return h.isOwn(space)
}

// isOwn reports whether a namespace is the agent's own. It is not if that cannot be read.
func (h *handler) isOwn(space *netns.Space) bool {
	own, err := h.Spaces.Own()
	if err != nil {
		return false
	}
	defer own.Close()
	return own.ID == space.ID
}

// trustIn returns the trust in a link. want is the declared value with its name, or nil.
func (h *handler) trustIn(p *place, l kernel.Link, want *interfaces.Interface) trust {
	switch {
	case h.hasMade(p.Space, l):
		return certain
	case want != nil && p.Reached(want.GetNamespace()):
		return fitting
	}
	return stranger
}

// recognise rebuilds values from the dumped links of this agent.
func (h *handler) recognise(places []*place, wanted []*interfaces.Interface, learns bool) (out []observed) {
	byName, byAlias := map[string]*interfaces.Interface{}, map[string]*interfaces.Interface{}
	for _, v := range wanted {
		byName[v.GetName()] = v
		// A TAP's alias ends with a slash before the original name, which the value does
		// not have.
		byAlias[strings.TrimSuffix(h.aliasOf(v, ""), "/")] = v
	}
	aliases := map[string]bool{}
	for _, p := range places {
		for _, l := range p.links {
			aliases[l.Alias] = true
		}
	}
	paired := func(alias string) bool { return aliases[alias] }
	for _, p := range places {
		for _, l := range p.links {
			if h.ours(p.Space, l, learns) && kindOf(l) != interfaces.Interface_UNDEFINED {
				v := h.read(l, byAlias, paired)
				out = append(out, observed{place: p, link: l, value: v, trust: h.trustIn(p, l, byName[v.GetName()])})
			}
		}
		var existing []observed
		if p.Own {
			existing = h.existing(p, wanted)
		}
		out = append(out, existing...)
		out = append(out, h.leftAddresses(p, byName, existing)...)
	}
	out = resolveVETHs(resolveDuplicates(out), byName)
	masters := mastersOf(out)
	for i := range out {
		h.describe(&out[i], byName[out[i].value.GetName()], masters)
	}
	return out
}

// existing finds the links of desired values of type EXISTING. If two of them name one link, the one that has it keeps it.
func (h *handler) existing(p *place, wanted []*interfaces.Interface) (out []observed) {
	held := map[int]string{}
	for _, v := range wanted {
		if meta, ok := h.index.Get(v.GetName()); ok && meta.Existing && meta.NS == p.ID {
			held[meta.Index] = v.GetName()
		}
	}
	for _, v := range wanted {
		if v.GetType() != interfaces.Interface_EXISTING {
			continue
		}
		if l, ok := h.linkOfExisting(p, v); ok && cmp.Or(held[l.Index], v.GetName()) == v.GetName() {
			held[l.Index] = v.GetName()
			out = append(out, observed{place: p, link: l, value: &interfaces.Interface{Name: v.GetName(), Type: v.GetType(), LinkOnly: v.GetLinkOnly()}, trust: certain})
		}
	}
	return out
}

// leftAddresses finds links of others with addresses that were made for a value that nobody wants any more. An address that another
// value of the link declares now, such as one with a new name, is not left.
func (h *handler) leftAddresses(p *place, wanted map[string]*interfaces.Interface, existing []observed) (out []observed) {
	for _, l := range p.links {
		if l.Name == loopback {
			continue // its mark is known
		}
		kept := h.declaredOn(l, wanted, existing)
		names := map[string]bool{}
		for _, a := range p.addrs[l.Index] {
			name := h.marks.madeFor(linkID{p.ID, l.Index}, a.Prefix)
			if name != "" && wanted[name] == nil && !names[name] && !kept[a.Prefix] {
				names[name] = true
				out = append(out, observed{p, l, &interfaces.Interface{Name: name, Type: interfaces.Interface_EXISTING}, kept, certain})
			}
		}
	}
	return out
}

// declaredOn returns the addresses that EXISTING values declare on a link.
func (h *handler) declaredOn(l kernel.Link, wanted map[string]*interfaces.Interface, existing []observed) map[netip.Prefix]bool {
	out := map[netip.Prefix]bool{}
	for _, s := range existing {
		if v := wanted[s.value.GetName()]; s.link.Index == l.Index && !v.GetLinkOnly() {
			for _, addr := range v.GetIpAddresses() {
				if p, ok := h.prefix(keys.Address{Interface: v.GetName(), Addr: addr}); ok {
					out[p] = true
				}
			}
		}
	}
	return out
}

// linkOfExisting returns the link that the value was created for, as long as it exists, or else
// the one that the value names. They differ if another program has given the name to another link:
// the value then has another host name than is desired, and is made anew. So what the agent has
// added to the former link is removed from it.
func (h *handler) linkOfExisting(p *place, v *interfaces.Interface) (named kernel.Link, found bool) {
	meta, known := h.index.Get(v.GetName())
	known = known && meta.Existing && meta.NS == p.ID
	for _, l := range p.links {
		if known && l.Index == meta.Index {
			return l, true
		}
		if l.Has(hostName(v)) {
			named, found = l, true
		}
	}
	return named, found
}

// resolveDuplicates renames all links but one of each name: they are leftovers, or somebody has copied a mark. The one
// with the most trust keeps the name, or the first of these. An EXISTING value that nobody wants may have several links.
func resolveDuplicates(all []observed) []observed {
	slices.SortStableFunc(all, func(a, b observed) int { return cmp.Compare(b.trust, a.trust) })
	seen := map[string]int{}
	for _, s := range all {
		name := s.value.GetName()
		if s.value.GetType() == interfaces.Interface_EXISTING {
			continue
		}
		if n := seen[name]; n > 0 {
			s.value.Name = fmt.Sprint(name, duplicate, n-1)
		}
		seen[name]++
	}
	return all
}

// resolveVETHs drops parked ends if their peer is configured: such a value is pending. It
// renames links that must be removed: pairs with both ends parked, and ends without a peer. An end without a peer stays
// if both are declared: the kernel removes both ends of a pair together, so the peer is in a namespace that was not
// read, such as that of a container. The scheduler knows whether it can be there.
func resolveVETHs(all []observed, wanted map[string]*interfaces.Interface) (out []observed) {
	byName := map[string][]*observed{}
	for i := range all {
		name := all[i].value.GetName()
		byName[name] = append(byName[name], &all[i])
	}
	// A parked end has its temporary name, in the agent's own namespace.
	waits := func(s *observed) bool { return s.place.Own && s.link.Name == tempName(s.value.GetName()) }
	for i := range all {
		s := &all[i]
		if s.value.GetType() != interfaces.Interface_VETH {
			out = append(out, *s)
			continue
		}
		name, others := s.value.GetName(), byName[s.value.GetVeth().GetPeerIfName()]
		configured := slices.ContainsFunc(others, func(o *observed) bool { return !waits(o) })
		switch {
		case leftover(s.value):
		case waits(s) && configured:
			continue
		case len(others) == 0 && !waits(s) && wanted[name] != nil && wanted[s.value.GetVeth().GetPeerIfName()] != nil:
		case len(others) == 0 || waits(s):
			s.value.Name = name + missingPeer
		}
		out = append(out, *s)
	}
	return out
}

// describe adds the state of the link to the value. Attributes that the agent does not set
// are reported as desired, so that they cause no update.
func (h *handler) describe(s *observed, want *interfaces.Interface, masters map[at]string) {
	v := s.value
	v.Namespace = s.place.Ref(want.GetNamespace())
	v.HostIfName, v.Enabled = s.link.Name, s.link.Up
	if want != nil && !want.GetEnabled() && !setsDown(want) {
		v.Enabled = false // a loopback that another program set up stays up
	}
	// The default stays unset, as people declare it.
	if s.link.MTU != mtu(v) {
		v.Mtu = uint32(s.link.MTU)
	}
	if v.Type != interfaces.Interface_VRF_DEVICE && v.Type != interfaces.Interface_LOOPBACK {
		v.PhysAddress = s.link.MAC.String()
	}
	if veth := v.GetVeth(); veth != nil {
		describeOffload(s.place.Space, s.link, veth)
	}
	v.VrfMasterInterface = masterOf(s, want, masters)
	if want != nil {
		v.LinkOnly = want.GetLinkOnly()
	}
	if v.Type == interfaces.Interface_EXISTING {
		v.Enabled = want.GetEnabled() // the agent does not set it
		if want != nil && s.link.Has(hostName(want)) {
			v.HostIfName = hostName(want)
		}
	}
	v.IpAddresses = h.addresses(s, want)
}

// describeOffload fills in the offload settings of a VETH, which only ethtool reports.
func describeOffload(space *netns.Space, l kernel.Link, veth *interfaces.VethLink) {
	setting := func(on bool) interfaces.VethLink_ChecksumOffloading {
		if on {
			return interfaces.VethLink_CHKSM_OFFLOAD_ENABLED
		}
		return interfaces.VethLink_CHKSM_OFFLOAD_DISABLED
	}
	have, err := space.Offload(l.Name)
	if err != nil {
		return // the link vanished or was renamed just now; its event follows
	}
	veth.RxChecksumOffloading, veth.TxChecksumOffloading = setting(have.RX), setting(have.TX)
}

// at identifies a link: its dump and its index.
type at struct {
	place *place
	index int
}

// mastersOf returns the logical names of links that may be masters.
func mastersOf(all []observed) map[at]string {
	out := map[at]string{}
	for _, s := range all {
		where := at{s.place, s.link.Index}
		if _, twice := out[where]; !twice && s.value.GetType() != interfaces.Interface_VETH {
			out[where] = s.value.GetName()
		}
	}
	return out
}

// masterOf returns the logical name of the VRF of the link. For an EXISTING interface it
// is the desired VRF, if the link has any master that the agent does not manage.
func masterOf(s *observed, want *interfaces.Interface, masters map[at]string) string {
	if s.link.Master == 0 {
		return ""
	}
	if name, ok := masters[at{s.place, s.link.Master}]; ok {
		return name
	}
	if s.value.GetType() == interfaces.Interface_EXISTING {
		return want.GetVrfMasterInterface()
	}
	return ""
}

// addresses returns the addresses of the link. An address that equals a desired one is
// reported in the desired notation. Other addresses are reported only if the agent has made them, or
// owns the link, and if neither the kernel nor a DHCP client created them. It makes none with a peer.
func (h *handler) addresses(s *observed, want *interfaces.Interface) []string {
	out, rest := h.declared(s, want)
	shared := sharedType(s.value.GetType())
	for _, a := range s.place.addrs[s.link.Index] {
		p := a.Prefix
		switch {
		case !rest[p] || s.value.GetLinkOnly() || s.kept[p]:
		case shared && h.marks.madeFor(linkID{s.place.ID, s.link.Index}, p) == s.value.GetName(),
			!shared && !a.Temporary && !p.Addr().IsLinkLocalUnicast() && !p.Addr().IsLoopback():
			out = append(out, p.String())
		}
	}
	return out
}

// declared returns the desired addresses as Retrieve reports them, and the others that the link has. Each is reported
// once. Those that the kernel has too early come first, so that their order differs from the declared one.
func (h *handler) declared(s *observed, want *interfaces.Interface) (out []string, others map[netip.Prefix]bool) {
	others = map[netip.Prefix]bool{}
	have := map[netip.Prefix]kernel.Addr{}
	there := s.place.addrs[s.link.Index]
	for _, a := range there {
		if !a.Peer.IsValid() {
			have[a.Prefix], others[a.Prefix] = a, true
		}
	}
	order, _ := h.declaredIPv4(want)
	early := h.early(linkID{s.place.ID, s.link.Index}, sharedType(s.value.GetType()), there, order)
	first := 0
	for _, addr := range want.GetIpAddresses() {
		p, _ := h.prefix(keys.Address{Interface: want.GetName(), Addr: addr})
		switch {
		case !others[p] || s.place.bare[kernel.Addr{Link: s.link.Index, Prefix: p}]:
		case slices.Contains(early, p):
			out = slices.Insert(out, first, h.withState(addr, s.place.ID, have[p]))
			first++
		default:
			out = append(out, h.withState(addr, s.place.ID, have[p]))
		}
		delete(others, p)
	}
	return out, others
}
