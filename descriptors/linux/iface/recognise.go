package iface

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/internal/lists"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// Links that are ours, but that no value can stand for as they are, get names of
// their own, so that they are removed.
const (
	missingPeer = "-MISSING_PEER"
	duplicate   = "-DUPLICATE"
)

// seen is a link that is recognised, and the value that it stands for.
type seen struct {
	place *place
	link  kernel.Link
	value *interfaces.Interface
}

// recognise makes values of the links that are ours.
func (h *handler) recognise(places []*place, wanted []*interfaces.Interface) (out []seen) {
	byName, byAlias := map[string]*interfaces.Interface{}, map[string]*interfaces.Interface{}
	for _, v := range wanted {
		byName[v.GetName()] = v
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
			if h.ours(p.space, l) && kindOf(l) != interfaces.Interface_UNDEFINED {
				h.takeOver(p.space, l)
				v := h.read(l, byAlias, paired)
				out = append(out, seen{p, l, v})
			}
		}
		if p.own {
			out = append(out, existing(p, wanted)...)
		}
	}
	out = settleVETHs(out)
	masters := mastersOf(out)
	for i := range out {
		h.describe(&out[i], byName[out[i].value.GetName()], masters)
	}
	return out
}

// existing finds the links that EXISTING values name.
func existing(p *place, wanted []*interfaces.Interface) (out []seen) {
	for _, v := range wanted {
		if v.GetType() != interfaces.Interface_EXISTING {
			continue
		}
		for _, l := range p.links {
			if l.Name == hostName(v) {
				out = append(out, seen{p, l, &interfaces.Interface{Name: v.GetName(), Type: v.GetType(), LinkOnly: v.GetLinkOnly()}})
			}
		}
	}
	return out
}

// settleVETHs leaves out ends that wait for their value, and renames what has to
// go: pairs of which both ends wait, ends without the other one, second links of
// one name.
func settleVETHs(all []seen) (out []seen) {
	byName := map[string][]*seen{}
	for i := range all {
		name := all[i].value.GetName()
		byName[name] = append(byName[name], &all[i])
	}
	waits := func(s *seen) bool { return s.place.own && s.link.Name == tempName(s.value.GetName()) }
	for i := range all {
		s := &all[i]
		if s.value.GetType() != interfaces.Interface_VETH {
			out = append(out, *s)
			continue
		}
		name, others := s.value.GetName(), byName[s.value.GetVeth().GetPeerIfName()]
		configured := slices.ContainsFunc(others, func(o *seen) bool { return !waits(o) })
		switch n := slices.Index(byName[name], s); {
		case n > 0:
			s.value.Name = fmt.Sprint(name, duplicate, n-1)
		case waits(s) && configured:
			continue
		case len(others) == 0 || waits(s):
			s.value.Name = name + missingPeer
		}
		out = append(out, *s)
	}
	return out
}

// describe fills in what the link looks like.
func (h *handler) describe(s *seen, want *interfaces.Interface, masters map[at]string) {
	v := s.value
	v.Namespace = s.place.ref(want)
	v.HostIfName, v.Enabled = s.link.Name, s.link.Up
	if want != nil && !want.GetEnabled() && !setsDown(want) {
		v.Enabled = false // up is not ours to undo
	}
	if s.link.MTU != mtu(v) {
		v.Mtu = uint32(s.link.MTU)
	}
	if v.Type != interfaces.Interface_VRF_DEVICE && v.Type != interfaces.Interface_LOOPBACK {
		v.PhysAddress = s.link.MAC.String()
	}
	if veth := v.GetVeth(); veth != nil {
		describeOffload(s.place.space, s.link, veth)
	}
	v.VrfMasterInterface = masterOf(s, want, masters)
	if want != nil {
		v.LinkOnly = want.GetLinkOnly()
	}
	if v.Type == interfaces.Interface_EXISTING {
		v.Enabled = want.GetEnabled() // is not ours to set
	}
	v.IpAddresses = s.addresses(want, h.Allocations)
}

func describeOffload(space *netns.Space, l kernel.Link, veth *interfaces.VethLink) {
	setting := func(on bool) interfaces.VethLink_ChecksumOffloading {
		if on {
			return interfaces.VethLink_CHKSM_OFFLOAD_ENABLED
		}
		return interfaces.VethLink_CHKSM_OFFLOAD_DISABLED
	}
	have, err := space.Offload(l.Name)
	if err != nil {
		return // the link has just gone or got another name, which its events tell
	}
	veth.RxChecksumOffloading, veth.TxChecksumOffloading = setting(have.RX), setting(have.TX)
}

// at is where a link is found.
type at struct {
	place *place
	index int
}

// mastersOf are the logical names of what others may be under.
func mastersOf(all []seen) map[at]string {
	out := map[at]string{}
	for _, s := range all {
		where := at{s.place, s.link.Index}
		if _, twice := out[where]; !twice && s.value.GetType() != interfaces.Interface_VETH {
			out[where] = s.value.GetName()
		}
	}
	return out
}

// masterOf is the logical name of the VRF that the link is in. Of an EXISTING
// interface that VRF counts that its value names.
func masterOf(s *seen, want *interfaces.Interface, masters map[at]string) string {
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

// addresses are those of the link, spelled as wanted ones where they are the same.
// Of links that others use too only wanted ones count; what the kernel makes by
// itself never does, unless it is wanted.
func (s *seen) addresses(want *interfaces.Interface, book alloc.Book) (out []string) {
	have := lists.Set(s.place.addrs[s.link.Index])
	for _, addr := range want.GetIpAddresses() {
		if p, err := netip.ParsePrefix(alloc.Address(book, addr, want.GetName())); err == nil && have[p] {
			out = append(out, addr)
			delete(have, p)
		}
	}
	if s.value.GetType() == interfaces.Interface_EXISTING || s.value.GetLinkOnly() {
		return out
	}
	for _, p := range s.place.addrs[s.link.Index] {
		if have[p] && !p.Addr().IsLinkLocalUnicast() && !p.Addr().IsLoopback() {
			out = append(out, p.String())
		}
	}
	return out
}
