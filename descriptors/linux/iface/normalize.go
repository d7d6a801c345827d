package iface

import (
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// normalize adds a missing prefix length to each address. It removes the host name of a
// loopback with a warning, because the kernel does not rename it.
func normalize(_ string, v *interfaces.Interface) (*interfaces.Interface, []string) {
	addrs, more := spelling.Interface(v.GetIpAddresses())
	named := v.GetType() == interfaces.Interface_LOOPBACK && v.GetHostIfName() != "" && v.GetHostIfName() != loopback
	if !more && !named {
		return v, nil
	}
	// Messages are shared with the declared value.
	v = proto.CloneOf(v)
	v.IpAddresses = addrs
	if !named {
		return v, nil
	}
	warnings := []string{models.Ignored("host_if_name", v.GetHostIfName(), "the loopback of a namespace is always called %s", loopback)}
	v.HostIfName = ""
	return v, warnings
}
