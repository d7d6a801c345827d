package iface

import (
	"bytes"
	"cmp"
	"hash/fnv"
	"net"
	"strconv"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/descriptors/linux/netns"
	"github.com/keyplane/keyplane/internal/lists"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	vpp "github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	loopback = "lo"

	// The kernel's defaults. An MTU of 0 in a value means the default of its type.
	defaultMTU  = 1500
	loopbackMTU = 65536
	vrfMTU      = 65575 // 64 KiB and the longest IPv6 header, as drivers/net/vrf.c has it
)

// hostName returns the name of the link in the kernel.
func hostName(v *interfaces.Interface) string {
	if v.GetType() == interfaces.Interface_LOOPBACK {
		return loopback
	}
	return cmp.Or(v.GetHostIfName(), v.GetName())
}

// mtu returns the configured MTU, or the default of the interface type.
func mtu(v *interfaces.Interface) int {
	switch {
	case v.GetMtu() != 0:
		return int(v.GetMtu())
	case v.GetType() == interfaces.Interface_LOOPBACK:
		return loopbackMTU
	case v.GetType() == interfaces.Interface_VRF_DEVICE:
		return vrfMTU
	}
	return defaultMTU
}

// sameMTU compares MTUs. VRF devices of kernels before 4.19 have the MTU of a loopback by
// default, so that value equals no MTU.
func sameMTU(old, new *interfaces.Interface) bool {
	legacy := func(a, b *interfaces.Interface) bool {
		return a.GetType() == interfaces.Interface_VRF_DEVICE && mtu(a) == loopbackMTU && b.GetMtu() == 0
	}
	return mtu(old) == mtu(new) || legacy(old, new) || legacy(new, old)
}

// offloads reports whether a setting enables offloading; the default is enabled.
func offloads(setting interfaces.VethLink_ChecksumOffloading) bool {
	return setting != interfaces.VethLink_CHKSM_OFFLOAD_DISABLED
}

// equivalent ignores addresses and the VRF, since derived values cover them. For an
// EXISTING interface only the identity counts: other programs set its attributes.
func equivalent(_ string, old, new *interfaces.Interface) bool {
	if recreate("", old, new, Meta{}) {
		return false
	}
	if new.GetType() == interfaces.Interface_EXISTING {
		return true
	}
	return hostName(old) == hostName(new) && old.GetEnabled() == new.GetEnabled() && sameMTU(old, new) &&
		sameMAC(old, new) && sameOffload(old.GetVeth(), new.GetVeth())
}

// sameMAC accepts any address if the desired value has none: the kernel chooses one then. An
// address has several spellings.
func sameMAC(old, new *interfaces.Interface) bool {
	want, set := macOf(new)
	have, err := net.ParseMAC(old.GetPhysAddress())
	return !set || err == nil && bytes.Equal(have, want)
}

// sameOffload compares settings with the default filled in.
func sameOffload(old, new *interfaces.VethLink) bool {
	return offloads(old.GetRxChecksumOffloading()) == offloads(new.GetRxChecksumOffloading()) &&
		offloads(old.GetTxChecksumOffloading()) == offloads(new.GetTxChecksumOffloading())
}

// recreate reports changes that the kernel cannot apply to an existing link.
func recreate(_ string, old, new *interfaces.Interface, _ Meta) bool {
	return old.GetType() != new.GetType() || old.GetLinkOnly() != new.GetLinkOnly() ||
		!netns.Equal(old.GetNamespace(), new.GetNamespace()) ||
		old.GetVeth().GetPeerIfName() != new.GetVeth().GetPeerIfName() ||
		old.GetTap().GetVppTapIfName() != new.GetTap().GetVppTapIfName() ||
		old.GetVrfDev().GetRoutingTable() != new.GetVrfDev().GetRoutingTable() ||
		// An existing link is not renamed: another name is another link.
		new.GetType() == interfaces.Interface_EXISTING && hostName(old) != hostName(new)
}

// keyOf returns the key of the interface with that name.
func keyOf(name string) string { return models.For[*interfaces.Interface]().KeyOf(name) }

// vppTAP returns the key of the VPP interface that a TAP_TO_VPP is the other side of.
func vppTAP(v *interfaces.Interface) string {
	return models.For[*vpp.Interface]().KeyOf(v.GetTap().GetVppTapIfName())
}

// dependencies: a VETH needs the value of its peer, so that no end is created alone; a TAP
// needs the interface in VPP; EXISTING needs the host link; each needs its namespace.
func (h *handler) dependencies(_ string, v *interfaces.Interface) (deps []scheduler.Dependency) {
	switch v.GetType() {
	case interfaces.Interface_VETH:
		deps = append(deps, scheduler.Dependency{Label: "veth-peer-exists", Key: keyOf(v.GetVeth().GetPeerIfName())})
	case interfaces.Interface_TAP_TO_VPP:
		deps = append(deps, scheduler.Dependency{Label: "vpp-tap-interface-exists", Key: vppTAP(v)})
	case interfaces.Interface_EXISTING:
		deps = append(deps, scheduler.Dependency{Label: "host-interface-exists", Key: keys.HostName(hostName(v))})
	default: // the agent creates it from nothing
	}
	return append(deps, h.Spaces.Dependencies(v.GetNamespace())...)
}

// derived returns the property with the enabled state or the VRF membership, which derives that property, the rules that
// a VRF needs, and the addresses.
func derived(_ string, v *interfaces.Interface) (out []scheduler.KeyValue) {
	if vrf := v.GetVrfMasterInterface(); vrf != "" {
		member := part(v)
		member.Enabled = v.GetEnabled()
		out = append(out, scheduler.KeyValue{Key: keys.VRF(v.GetName(), vrf), Value: member})
	} else {
		out = append(out, state(v.GetName(), v.GetEnabled()))
	}
	if v.GetType() == interfaces.Interface_VRF_DEVICE {
		out = append(out, scheduler.KeyValue{Key: keys.VRFRulesOf(v.GetName()), Value: &emptypb.Empty{}})
	}
	// link_only: other programs set the addresses.
	source := keys.Static
	if v.GetLinkOnly() {
		if v.GetType() != interfaces.Interface_EXISTING {
			return out
		}
		source = keys.Existing
	}
	for _, addr := range lists.Firsts(v.GetIpAddresses()) {
		value := part(v)
		value.IpAddresses = []string{addr}
		text, _ := cutState(addr)
		out = append(out, scheduler.KeyValue{Key: addressKey(v, source, text), Value: value})
	}
	return out
}

// state returns the property with the enabled state of an interface.
func state(name string, enabled bool) scheduler.KeyValue {
	return scheduler.KeyValue{Key: keys.State(name, enabled), Value: &emptypb.Empty{}}
}

// derivedOfVRF returns the enabled state: routes wait for it, and what they need of a port is its place in the VRF. Those by a
// gateway on the link wait for nothing else. Without the VRF they would be in the main table.
func derivedOfVRF(key string, v *interfaces.Interface) []scheduler.KeyValue {
	name, _, _ := keys.ParseVRF(key)
	return []scheduler.KeyValue{state(name, v.GetEnabled())}
}

// addressKey returns the key of an address of v.
func addressKey(v *interfaces.Interface, source keys.Source, addr string) string {
	return keys.Address{Interface: v.GetName(), Source: source, Addr: addr}.Key()
}

// part returns the attributes of the interface that its derived values need. Plans print all of
// them, so there are no more: only parts of an EXISTING interface need its identity.
func part(v *interfaces.Interface) *interfaces.Interface {
	out := &interfaces.Interface{VrfMasterInterface: v.GetVrfMasterInterface()}
	if v.GetType() == interfaces.Interface_EXISTING {
		out.Type, out.HostIfName = v.GetType(), hostName(v)
	}
	return out
}

// hash makes a short name from a logical name, which may exceed the kernel's 15 bytes.
func hash(prefix, name string) string {
	h := fnv.New32a()
	h.Write([]byte(name))
	return prefix + strconv.FormatUint(uint64(h.Sum32()), 10)
}

// defaultTAPHost is the name that a TAP gets from VPP's descriptors if its value has none.
func defaultTAPHost(vppInterface string) string { return hash("tap-", vppInterface) }
