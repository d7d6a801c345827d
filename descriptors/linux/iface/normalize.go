package iface

import (
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/limits"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// normalize adds a missing prefix length to each address. It removes the host name and the MAC
// address of a loopback with warnings: the kernel does not rename it, and has no way back to its
// address, which is zero.
func normalize(_ string, v *interfaces.Interface) (out *interfaces.Interface, warnings []string) {
	addrs, more := spelling.Interface(v.GetIpAddresses())
	lo := v.GetType() == interfaces.Interface_LOOPBACK
	// One that no link could have is refused: whoever checks a file before it is applied knows the limits of fields alone.
	named := lo && v.GetHostIfName() != "" && v.GetHostIfName() != loopback && limits.WrongLinkName(v.GetHostIfName()) == ""
	addressed := lo && v.GetPhysAddress() != ""
	if !more && !named && !addressed {
		return v, nil
	}
	// Messages are shared with the declared value.
	v = proto.CloneOf(v)
	v.IpAddresses = addrs
	if named {
		warnings = append(warnings, models.Ignored("host_if_name", v.GetHostIfName(), "the loopback of a namespace is always called %s", loopback))
		v.HostIfName = ""
	}
	if addressed {
		warnings = append(warnings, models.Ignored("phys_address", v.GetPhysAddress(), "the kernel could not take it away from a loopback again"))
		v.PhysAddress = ""
	}
	return v, warnings
}
