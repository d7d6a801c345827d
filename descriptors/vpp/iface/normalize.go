package iface

import (
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/iface/internal/kinds"
	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// normalize adds missing prefix lengths and the link of a TAP, and removes fields without
// effect.
func normalize(_ string, v *interfaces.Interface) (*interfaces.Interface, []string) {
	addrs, changed := spelling.Interface(v.GetIpAddresses())
	link, warnings := kinds.NormalizeLink(v)
	if !changed && link == nil {
		return v, nil
	}
	// Messages are shared with the declared value, so the original stays as it is.
	v = proto.CloneOf(v)
	v.IpAddresses = addrs
	if link != nil {
		link(v)
	}
	return v, warnings
}
