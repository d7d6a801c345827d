package iface

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/keyplane/keyplane/descriptors/linux/internal/kernel"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/internal/lists"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/limits"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// longestAlias is a limit of the kernel (IFALIASZ in linux/if.h), in bytes. The maximum MTU depends on the driver of the
// link, so the kernel checks it.
const longestAlias = 255

// findings collects the errors of a value.
type findings struct{ models.Faults }

// validate returns one error per invalid field, so that users can fix all of them at once.
func (h *handler) validate(_ string, v *interfaces.Interface) error {
	var f findings
	if v.GetName() == "" {
		f.Add("name", v.GetName(), "a name")
	} else if a := h.aliasOf(v, ""); len(a) > h.longestAlias() {
		f.Add("name", v.GetName(), "at most %d bytes less, as the alias of the link is %q", len(a)-h.longestAlias(), a)
	}
	f.AddError(netns.Validate("namespace", v.GetNamespace()))
	f.hostName(v)
	f.addresses(v)
	f.mac(v)
	f.mtu(v)
	f.link(v)
	f.vrf(v)
	f.kind(v)
	return f.Err()
}

// hostName checks the name that the link gets in the kernel. Without host_if_name it is the name of the
// value, and the hint says so.
func (f *findings) hostName(v *interfaces.Interface) {
	name, field := v.GetHostIfName(), "host_if_name"
	if v.GetType() == interfaces.Interface_LOOPBACK && name == "" {
		return // it is called lo
	}
	hint := ""
	if name == "" {
		name, field, hint = v.GetName(), "name", "; or give host_if_name"
	}
	if want := limits.WrongLinkName(name); want != "" && name != "" {
		f.Add(field, name, "%s%s", want, hint)
	}
}

// addresses checks each address, and that no two of them are the same in another notation.
func (f *findings) addresses(v *interfaces.Interface) {
	seen := map[netip.Prefix]int{}
	for i, addr := range lists.Firsts(v.GetIpAddresses()) { // an exact repetition is harmless
		field := fmt.Sprintf("ip_addresses[%d]", i)
		if alloc.Is(addr) {
			f.reference(field, addr, v)
			continue
		}
		p, err := netip.ParsePrefix(addr)
		if err != nil {
			f.Add(field, addr, `an address with prefix length, such as "10.0.0.1/24" or "fd00::1/64"`)
			continue
		}
		if ip := p.Addr(); ip.IsUnspecified() || ip.IsMulticast() || ip.Is4In6() {
			f.Add(field, addr, "a unicast address")
		}
		as := p
		if p.Addr().Is6() { // a link has an IPv6 address once, with one length
			as = netip.PrefixFrom(p.Addr(), p.Addr().BitLen())
		}
		if first, twice := seen[as]; twice {
			f.Add(field, addr, "each address once, an IPv6 address with one prefix length; ip_addresses[%d] is the same", first)
		}
		seen[as] = i
	}
}

// reference checks a reference to an allocated address.
func (f *findings) reference(field, addr string, v *interfaces.Interface) {
	ref, ok := alloc.Parse(addr)
	switch {
	case !ok || ref.Gateway:
		f.Add(field, addr, `"alloc:NETWORK" or "alloc:NETWORK/INTERFACE"`)
	case ref.InterfaceOr(v.GetName()) != v.GetName():
		f.Add(field, addr, "a reference to an address of this interface, %s", v.GetName())
	case v.GetType() == interfaces.Interface_EXISTING && v.GetLinkOnly():
		f.Add(field, addr, "an address, not a reference, for an EXISTING interface with link_only")
	}
}

// mac checks a MAC address. The kernel refuses multicast addresses and zero for a link.
func (f *findings) mac(v *interfaces.Interface) {
	mac := v.GetPhysAddress()
	if mac == "" {
		return
	}
	switch parsed, err := net.ParseMAC(mac); {
	case v.GetType() == interfaces.Interface_VRF_DEVICE:
		f.Add("phys_address", mac, "none for a VRF_DEVICE")
	case err != nil || len(parsed) != 6:
		f.Add("phys_address", mac, `a MAC address, such as "02:fe:c0:00:00:01"`)
	case parsed[0]&1 != 0:
		f.Add("phys_address", mac, "a unicast MAC address (the first byte is even)")
	case !slices.ContainsFunc(parsed, func(b byte) bool { return b != 0 }):
		f.Add("phys_address", mac, `a MAC address that is not all zero, such as "02:fe:c0:00:00:01", or nothing`)
	}
}

// mtu checks the MTU of a VRF, whose driver has a range, and of a link with IPv6 addresses. Below 1280 the kernel disables IPv6 on the link and drops its
// addresses (RFC 8200, section 5).
func (f *findings) mtu(v *interfaces.Interface) {
	mtu := v.GetMtu()
	if mtu == 0 {
		return
	}
	if v.GetType() == interfaces.Interface_VRF_DEVICE && (mtu < kernel.MinMTUIPv6 || mtu > vrfMTU) {
		f.Add("mtu", mtu, "%d to %d for a VRF_DEVICE, or nothing", kernel.MinMTUIPv6, vrfMTU)
		return
	}
	for _, addr := range v.GetIpAddresses() {
		if p, err := netip.ParsePrefix(addr); err == nil && p.Addr().Is6() && mtu < kernel.MinMTUIPv6 {
			f.Add("mtu", mtu, "at least %d, as the interface has the IPv6 address %s", kernel.MinMTUIPv6, addr)
			return
		}
	}
}

// link checks that type-specific fields are set for their type only.
func (f *findings) link(v *interfaces.Interface) {
	const want = "nothing for type %s"
	kind := v.GetType()
	if v.GetVeth() != nil && kind != interfaces.Interface_VETH {
		f.Add("veth", nil, want, kind)
	}
	if v.GetTap() != nil && kind != interfaces.Interface_TAP_TO_VPP {
		f.Add("tap", nil, want, kind)
	}
	if v.GetVrfDev() != nil && kind != interfaces.Interface_VRF_DEVICE {
		f.Add("vrf_dev", nil, want, kind)
	}
}

// vrf checks the VRF device. Devices of VRFs cannot be nested.
func (f *findings) vrf(v *interfaces.Interface) {
	vrf := v.GetVrfMasterInterface()
	switch {
	case vrf == "":
	case v.GetType() == interfaces.Interface_VRF_DEVICE:
		f.Add("vrf_master_interface", vrf, "none for a VRF_DEVICE")
	case v.GetType() == interfaces.Interface_LOOPBACK:
		f.Add("vrf_master_interface", vrf, "none for a LOOPBACK")
	case vrf == v.GetName():
		f.Add("vrf_master_interface", vrf, "another interface, of type VRF_DEVICE")
	}
}

// kind checks the fields that each type requires.
func (f *findings) kind(v *interfaces.Interface) {
	switch v.GetType() {
	case interfaces.Interface_VETH:
		f.veth(v)
	case interfaces.Interface_TAP_TO_VPP:
		if v.GetTap().GetVppTapIfName() == "" {
			f.Add("tap.vpp_tap_if_name", "", "the name of the TAP interface in VPP")
		}
	case interfaces.Interface_VRF_DEVICE:
		f.table(v.GetVrfDev())
	case interfaces.Interface_EXISTING:
		if v.GetNamespace().GetType() != 0 {
			f.Add("namespace", nil, "none for type EXISTING, which is for the agent's own namespace")
		}
	case interfaces.Interface_LOOPBACK, interfaces.Interface_DUMMY:
	default:
		f.Add("type", v.GetType().String(), "VETH, TAP_TO_VPP, LOOPBACK, EXISTING, VRF_DEVICE or DUMMY")
	}
}

// table checks the table of a VRF. The kernel accepts its own tables too, but the routes of the ports would be mixed with
// those of the host, or be taken for addresses of it.
func (f *findings) table(vrf *interfaces.VrfDevLink) {
	const want = "the number of a routing table: 1 to 252, or from 256; 253, 254 and 255 are default, main and local of the kernel"
	switch table := vrf.GetRoutingTable(); {
	case vrf == nil:
		f.Add("vrf_dev.routing_table", nil, want)
	case table >= unix.RT_TABLE_DEFAULT && table <= unix.RT_TABLE_LOCAL: // the model's limits refuse 0
		f.Add("vrf_dev.routing_table", table, want)
	}
}

// veth checks the peer and the offload settings of a VETH.
func (f *findings) veth(v *interfaces.Interface) {
	switch peer := v.GetVeth().GetPeerIfName(); peer {
	case "":
		f.Add("veth.peer_if_name", peer, "the name of the other end")
	case v.GetName():
		f.Add("veth.peer_if_name", peer, "another interface than this one")
	}
	settings := []struct {
		field string
		value interfaces.VethLink_ChecksumOffloading
	}{
		{"veth.rx_checksum_offloading", v.GetVeth().GetRxChecksumOffloading()},
		{"veth.tx_checksum_offloading", v.GetVeth().GetTxChecksumOffloading()},
	}
	for _, s := range settings {
		if _, known := interfaces.VethLink_ChecksumOffloading_name[int32(s.value)]; !known {
			f.Add(s.field, int32(s.value), "CHKSM_OFFLOAD_DEFAULT, CHKSM_OFFLOAD_ENABLED or CHKSM_OFFLOAD_DISABLED")
		}
	}
}

// longestAlias returns the maximum length of an alias without the installation.
func (h *handler) longestAlias() int { return longestAlias - len(kernel.JoinAlias("", h.Installation)) }
