package iface

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/ownership"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/internal/lists"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// longestName is the longest tag that VPP stores (VPP interface.api, string tag[64]).
const longestName = 63

// noVRF is the ID that VPP uses for no VRF.
const noVRF = ^uint32(0)

// findings collects the faults of a value.
type findings struct{ kinds.Findings }

// validate collects all faults of a value, each with its field. Faults of single addresses
// that VPP alone would refuse are those of the address, see validateAddress.
func (h *handler) validate(_ string, v *interfaces.Interface) error {
	var f findings
	f.name(v)
	f.kind(h.kinds, v)
	f.unnumbered(v)
	f.addresses(v)
	f.rx(v)
	f.mac(v.GetPhysAddress())
	f.DHCPClient(v)
	if v.GetVrf() == noVRF {
		f.Add("vrf", v.GetVrf(), "a number below 4294967295")
	}
	return f.Err()
}

// name checks the name. It is the tag in VPP and a part of keys, so both restrict it.
func (f *findings) name(v *interfaces.Interface) {
	name := v.GetName()
	switch part := cmp.Or(keys.PartIn(name), membersIn(v)); {
	case name == "":
		f.Add("name", name, "a name")
	case len(name) > longestName:
		f.Add("name", name, "at most %d bytes (it has %d): it is the interface's tag in VPP", longestName, len(name))
	case strings.ContainsRune(name, 0):
		f.Add("name", name, "a name without zero bytes: it is the interface's tag in VPP")
	case ownership.WrongName(name) != "":
		f.Add("name", name, "%s", ownership.WrongName(name))
	case !keys.IsClean(name):
		f.Add("name", name, keys.CleanName)
	case part != "":
		f.Add("name", name, "a name without %q, which the keys of its parts are read by", part)
	}
}

// membersIn returns the part of a bond's name that would make the keys of its members
// ambiguous.
func membersIn(v *interfaces.Interface) string {
	if v.GetType() != interfaces.Interface_BOND_INTERFACE {
		return ""
	}
	return keys.MembersIn(v.GetName())
}

// mac checks a MAC address. VPP accepts all addresses, even multicast.
func (f *findings) mac(text string) {
	if _, ok := kinds.ParseMAC(text); !ok && text != "" {
		f.Add("phys_address", text, `a MAC address, such as "02:00:00:00:00:01"`)
	}
}

// kind checks that the type is set, and that the link belongs to the type.
func (f *findings) kind(all map[kinds.Form]kinds.Kind, v *interfaces.Interface) {
	link := kinds.LinkName(v)
	k, known := all[kinds.FormOf(v)]
	switch {
	case v.GetType() == interfaces.Interface_UNDEFINED_TYPE:
		f.untyped(all, v, link)
		return
	case !known:
		f.Add("type", v.GetType().String(), "a type that this release has")
		return
	case k.Link == "" && link != "":
		f.Add(link, "", "nothing: an interface of type %s has no link", v.GetType())
	case link != "" && link != k.Link:
		f.Add(link, "", "%s, as the type is %s", k.Link, v.GetType())
	case link == "" && k.Link != "":
		f.Add(k.Link, "", "this field, as the type is %s", v.GetType())
	}
	if k.Validate != nil && link == k.Link {
		k.Validate(&f.Findings, v)
	}
}

// untyped reports a missing type, and suggests the type that the link belongs to.
func (f *findings) untyped(all map[kinds.Form]kinds.Kind, v *interfaces.Interface, link string) {
	for of, k := range all {
		if k.Validate != nil && k.Link != "" && k.Link == link && of.GPE == (v.GetVxlan().GetGpe() != nil) {
			f.Add("type", v.GetType().String(), "%s, as there is %s", of.Type, link)
			k.Validate(&f.Findings, v)
			return
		}
	}
	f.Add("type", v.GetType().String(), "the type of the interface, such as SOFTWARE_LOOPBACK")
}

// unnumbered checks that a borrower has no addresses of its own, which VPP would forget.
func (f *findings) unnumbered(v *interfaces.Interface) {
	if v.GetUnnumbered() == nil {
		return
	}
	if len(v.GetIpAddresses()) > 0 {
		f.Add("ip_addresses", strings.Join(v.GetIpAddresses(), " "), "no addresses of its own, as unnumbered is set")
	}
	if v.GetSetDhcpClient() {
		f.Add("set_dhcp_client", true, "false, as unnumbered is set")
	}
	if from := v.GetUnnumbered().GetInterfaceWithIp(); from == "" || from == v.GetName() {
		f.Add("unnumbered.interface_with_ip", from, "the name of another interface")
	}
}

// addresses checks each address by itself and all of them together. Repetitions are
// harmless and count once.
func (f *findings) addresses(v *interfaces.Interface) {
	addrs := v.GetIpAddresses()
	prefixes := make([]netip.Prefix, len(addrs)) // zero for invalid text and for repeated addresses
	for i, addr := range lists.Firsts(addrs) {
		prefixes[i], _ = netip.ParsePrefix(addr)
	}
	overlaps := conflictsOf(prefixes)
	linkLocal := slices.IndexFunc(prefixes, isLinkLocal)
	for i, addr := range lists.Firsts(addrs) {
		field, p := fmt.Sprintf("ip_addresses[%d]", i), prefixes[i]
		switch other, has := overlaps[i]; {
		case alloc.Is(addr):
			if ref, ok := alloc.Parse(addr); !ok || ref.Gateway || ref.InterfaceOr(v.GetName()) != v.GetName() {
				f.Add(field, addr, `"alloc:NETWORK", a reference to an address of this interface`)
			}
		case !p.IsValid():
			f.Add(field, addr, `an address with prefix length, such as "10.0.0.1/24" or "fd00::1/64"`)
		case has && prefixes[other] == p:
			f.Add(field, p.String(), "each address once")
		case isLinkLocal(p) && i != linkLocal:
			f.Add(field, p.String(), "one IPv6 link-local address at most; %s is declared, too", prefixes[linkLocal])
		case has:
			f.Add(field, p.String(), "an address whose network is that of %s, or apart from it", prefixes[other])
		}
	}
}
