package iface

import (
	"strings"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/internal/lists"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// equivalent compares the settings of the interface itself. Fields that only make derived
// values are left out: a pending derived value is not in VPP, and the interface is still
// in sync.
func (h *handler) equivalent(key string, old, new *interfaces.Interface) bool {
	return !h.recreate(key, old, new, Meta{}) && old.GetEnabled() == new.GetEnabled() &&
		h.sameMAC(old, new) && h.sameMTU(old, new) && h.sameLink(old, new)
}

// sameMAC accepts any address if the new value declares none.
func (h *handler) sameMAC(old, new *interfaces.Interface) bool {
	return h.kindOf(new).NoMAC || new.GetPhysAddress() == "" || vppwire.SameMAC(old.GetPhysAddress(), new.GetPhysAddress())
}

// mtu returns the desired MTU; 0 leaves VPP's default.
func (h *handler) mtu(v *interfaces.Interface) uint32 {
	if v.GetMtu() != 0 {
		return v.GetMtu()
	}
	return h.MTU
}

// sameMTU accepts any MTU if none is declared, neither in the value nor in the options. It does not
// accept one that an earlier version of the value has declared.
func (h *handler) sameMTU(old, new *interfaces.Interface) bool {
	if h.kindOf(new).NoMTU {
		return true
	}
	want := h.mtu(new)
	if want == 0 {
		_, left := h.mtus.left(new.GetName(), old.GetMtu())
		return !left
	}
	return h.mtu(old) == want
}

// sameLink compares the links as the kind does; a kind without a link has equal ones.
func (h *handler) sameLink(old, new *interfaces.Interface) bool {
	same := h.kindOf(new).SameLink
	return same == nil || same(old, new)
}

// recreate tells whether a change requires a new interface. The type of an interface
// cannot change, and for most types neither can the link.
func (h *handler) recreate(_ string, old, new *interfaces.Interface, _ Meta) bool {
	k := h.kindOf(new)
	return kinds.FormOf(old) != kinds.FormOf(new) || k.Update == nil && !h.sameLink(old, new) ||
		k.CreatedWithMAC && !h.sameMAC(old, new) || k.Recreate != nil && k.Recreate(old, new)
}

// dependencies are those of the kind. An interface of most kinds has none.
func (h *handler) dependencies(_ string, v *interfaces.Interface) []scheduler.Dependency {
	if of := h.kindOf(v).Dependencies; of != nil {
		return of(v)
	}
	return nil
}

// derived returns the parts of an interface that have descriptors of their own.
func (h *handler) derived(_ string, v *interfaces.Interface) []scheduler.KeyValue {
	var out []scheduler.KeyValue
	add := func(key string) { out = append(out, scheduler.KeyValue{Key: key, Value: &emptypb.Empty{}}) }
	name := v.GetName()
	if key := h.vrfKeyOf(v); key != "" {
		add(key)
	}
	if u := v.GetUnnumbered(); u != nil {
		out = append(out, scheduler.KeyValue{Key: keys.Interface(name).Unnumbered(), Value: u})
	}
	for _, m := range v.GetBond().GetBondedInterfaces() {
		out = append(out, scheduler.KeyValue{Key: keys.BondMember(name, m.GetName()), Value: m})
	}
	for _, addr := range lists.Firsts(v.GetIpAddresses()) {
		add(keys.Address{Interface: name, Source: keys.Static, Addr: addr}.Key())
	}
	if nd := v.GetIp6Nd(); nd != nil {
		out = append(out, scheduler.KeyValue{Key: keys.Interface(name).IP6ND(), Value: nd})
	}
	if v.GetSetDhcpClient() {
		add(keys.Interface(name).DHCPClient())
	}
	if len(v.GetIpAddresses()) > 0 || v.GetSetDhcpClient() {
		// Interfaces that borrow an address wait for this one. It is a key of its own,
		// since any address will do, and DHCP may not have given one yet.
		add(keys.Interface(name).HasAddress())
	}
	return append(out, rxParts(v)...)
}

// vrfKeyOf returns the key of the VRF membership of an interface; empty: it needs none.
func (h *handler) vrfKeyOf(v *interfaces.Interface) string {
	if u := v.GetUnnumbered(); u != nil {
		return keys.VRF{Interface: v.GetName(), From: u.GetInterfaceWithIp()}.Key()
	}
	ipv4, ipv6 := h.versionsOf(v)
	if !ipv4 && !ipv6 {
		return ""
	}
	return keys.VRF{Interface: v.GetName(), ID: v.GetVrf(), IPv4: ipv4, IPv6: ipv6}.Key()
}

// versionsOf returns the IP versions for which an interface is in its VRF. Of a tunnel
// they are the versions of its ends, of others those of its addresses. DHCP assigns IPv4
// addresses.
func (h *handler) versionsOf(v *interfaces.Interface) (ipv4, ipv6 bool) {
	if of := h.kindOf(v).Versions; of != nil {
		return of(v)
	}
	ipv4 = v.GetSetDhcpClient()
	for _, addr := range v.GetIpAddresses() {
		// A reference counts for both versions: only the allocation decides, and it may come later. Its text has a colon too.
		reference := alloc.Is(addr)
		ipv4 = ipv4 || reference || !strings.Contains(addr, ":")
		ipv6 = ipv6 || strings.Contains(addr, ":")
	}
	return ipv4, ipv6
}
