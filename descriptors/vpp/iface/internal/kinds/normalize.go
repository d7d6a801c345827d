package kinds

import (
	"net/netip"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// NormalizeLink returns the change that normalizes the link of v; nil: none is needed. The
// change works on a copy that the caller makes: messages are shared. At most one change
// applies to a value, since each belongs to another type.
func NormalizeLink(v *interfaces.Interface) (change func(v *interfaces.Interface), warnings []string) {
	af, session := v.GetAfpacket(), v.GetGre().GetSessionId()
	switch {
	case v.GetType() == interfaces.Interface_TAP && v.GetLink() == nil:
		return func(v *interfaces.Interface) {
			v.Link = &interfaces.Interface_Tap{Tap: &interfaces.TapLink{Version: 2}}
		}, nil
	case af.GetHostIfName() != "" && af.GetLinuxInterface() != "":
		change = func(v *interfaces.Interface) { v.GetAfpacket().HostIfName = "" }
		return change, []string{models.Ignored("afpacket.host_if_name", af.GetHostIfName(), "linux_interface is set, which names the link")}
	case unicastWith(v.GetVxlan().GetMulticast(), v.GetVxlan().GetDstAddress()):
		change = func(v *interfaces.Interface) { v.GetVxlan().Multicast = "" }
		return change, []string{models.Ignored("vxlan.multicast", v.GetVxlan().GetMulticast(), "dst_address is not a multicast address")}
	case unicastWith(v.GetGtpu().GetMulticast(), v.GetGtpu().GetDstAddr()):
		change = func(v *interfaces.Interface) { v.GetGtpu().Multicast = "" }
		return change, []string{models.Ignored("gtpu.multicast", v.GetGtpu().GetMulticast(), "dst_addr is not a multicast address")}
	case session != greSession(v.GetGre()):
		change = func(v *interfaces.Interface) { v.GetGre().SessionId = 0 }
		return change, []string{models.Ignored("gre.session_id", session, "only a tunnel of type ERSPAN has a session")}
	case v.GetPhysAddress() != "" && isIPLink(v):
		change = func(v *interfaces.Interface) { v.PhysAddress = "" }
		return change, []string{models.Ignored("phys_address", v.GetPhysAddress(), "an interface for IP packets has no MAC address")}
	}
	return nil, nil
}

// isIPLink tells whether v is a TAP or a memif for IP packets instead of Ethernet frames. VPP
// refuses to change the MAC address of such an interface.
func isIPLink(v *interfaces.Interface) bool {
	switch v.GetType() {
	case interfaces.Interface_TAP:
		return v.GetTap().GetEnableTunnel()
	case interfaces.Interface_MEMIF:
		return v.GetMemif().GetMode() == interfaces.MemifLink_IP
	default:
		return false
	}
}

// unicastWith tells whether a tunnel to a unicast address has a multicast interface.
func unicastWith(by, dst string) bool {
	a, err := netip.ParseAddr(dst)
	return by != "" && err == nil && !a.IsMulticast()
}
