package l3

import (
	"net/netip"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/internal/spelling"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
)

// normalizeRoute removes the prefix length of the gateway. An all-zero gateway means that
// the destination is on the link, so it is removed.
func normalizeRoute(_ string, v *l3.Route) (*l3.Route, []string) {
	gw, _ := spelling.WithoutLength(v.GetGwAddr())
	if a, err := netip.ParseAddr(gw); err == nil && a.IsUnspecified() {
		v = proto.CloneOf(v)
		v.GwAddr = ""
		return v, nil
	}
	if gw == v.GetGwAddr() {
		return v, nil
	}
	v = proto.CloneOf(v)
	return v, spelling.Host("gw_addr", &v.GwAddr)
}

// normalizeARP removes the prefix length of the address.
func normalizeARP(_ string, v *l3.ARPEntry) (*l3.ARPEntry, []string) {
	if !spelling.HasLength(v.GetIpAddress()) {
		return v, nil
	}
	v = proto.CloneOf(v)
	return v, spelling.Host("ip_address", &v.IpAddress)
}
