package l3

import (
	"net/netip"
	"testing"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/existing"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// A path is found as the declared route in its place, however that is spelled.
func TestPathAsDeclared(t *testing.T) {
	stand := existing.Interfaces{"eth0": {Index: 1}, "eth1": {Index: 2}}
	names := map[uint32]string{1: "eth0", 2: "eth1"}
	four := &l3.Route{DstNetwork: "10.0.0.0/8", OutgoingInterface: "eth0"}
	six := &l3.Route{DstNetwork: "2001:DB8:0::/48", NextHopAddr: "2001:DB8::01", OutgoingInterface: "eth1", Weight: 1, Preference: 7}
	via := &l3.Route{Type: l3.Route_INTER_VRF, VrfId: 3, DstNetwork: "10.0.0.0/8", ViaVrfId: 4}
	drop := &l3.Route{Type: l3.Route_DROP, DstNetwork: "::/0"}
	gone := &l3.Route{DstNetwork: "10.9.0.0/16", OutgoingInterface: "eth9"}
	wanted := []scheduler.Desired[*l3.Route]{{Key: "four", Value: four}, {Key: "six", Value: six}, {Key: "via", Value: via}, {Key: "drop", Value: drop}, {Key: "gone", Value: gone}}
	known := handler{Options: Options{Interfaces: stand}}.declaredRoutes(wanted)
	const dropped = fib_types.FIB_API_PATH_TYPE_DROP
	for _, tt := range []struct {
		name     string
		vrf      uint32
		dst, gw  string
		path     fib_types.FibPath
		key      string
		want     *l3.Route // nil: nothing
		declared bool      // and the very message
	}{
		{"IPv4", 0, "10.0.0.0/8", "", fib_types.FibPath{SwIfIndex: 1, Weight: 1}, "four", four, true},
		{"IPv6", 0, "2001:db8::/48", "2001:db8::1", fib_types.FibPath{SwIfIndex: 2, Weight: 1, Preference: 7}, "six", six, true},
		{"through another VRF", 3, "10.0.0.0/8", "", fib_types.FibPath{SwIfIndex: noInterface, TableID: 4, Weight: 1}, "via", via, true},
		{"dropped", 0, "::/0", "", fib_types.FibPath{Type: dropped, SwIfIndex: noInterface, Weight: 1}, "drop", drop, true},
		{"another weight", 0, "2001:db8::/48", "2001:db8::1", fib_types.FibPath{SwIfIndex: 2, Weight: 5}, "six",
			&l3.Route{DstNetwork: six.DstNetwork, NextHopAddr: six.NextHopAddr, OutgoingInterface: "eth1", Weight: 5}, false},
		{"dropped instead", 0, "10.0.0.0/8", "", fib_types.FibPath{Type: dropped, SwIfIndex: noInterface, Weight: 1}, "",
			&l3.Route{Type: l3.Route_DROP, DstNetwork: "10.0.0.0/8", Weight: 1}, false},
		{"another interface", 0, "10.0.0.0/8", "10.1.1.1", fib_types.FibPath{SwIfIndex: 2, Weight: 1}, "",
			&l3.Route{DstNetwork: "10.0.0.0/8", NextHopAddr: "10.1.1.1", OutgoingInterface: "eth1", Weight: 1}, false},
		{"the same bits of the other IP version", 0, "::ffff:10.0.0.0/104", "", fib_types.FibPath{SwIfIndex: 1, Weight: 1}, "",
			&l3.Route{DstNetwork: "::ffff:10.0.0.0/104", OutgoingInterface: "eth0", Weight: 1}, false},
		{"an interface that is gone", 0, "10.9.0.0/16", "", fib_types.FibPath{SwIfIndex: 9, Weight: 1}, "", nil, false},
		{"local", 0, "10.0.0.0/8", "", fib_types.FibPath{SwIfIndex: 1, Type: fib_types.FIB_API_PATH_TYPE_LOCAL}, "", nil, false},
	} {
		dst := netip.MustParsePrefix(tt.dst)
		if tt.gw != "" {
			tt.path.Nh.Address = vppwire.Address(netip.MustParseAddr(tt.gw)).Un
		}
		p, ok := pathOf(&ip.IPTable{TableID: tt.vrf, IsIP6: dst.Addr().Is6()}, ip.IPRoute{Prefix: vppwire.Prefix(dst)}, &tt.path)
		var got scheduler.Found[*l3.Route, struct{}]
		if ok {
			got, ok = known.retrieved(&p, names)
		}
		switch {
		case ok != (tt.want != nil):
			t.Errorf("%s: found %v", tt.name, got)
		case ok && (got.Key != tt.key || !proto.Equal(got.Value, tt.want) || (got.Value == tt.want) != tt.declared || got.OwnerUnknown != (tt.key == "")):
			t.Errorf("%s: %+v, want %s %v", tt.name, got, tt.key, tt.want)
		}
	}
}

// TestPathOfNoPrefix has prefixes that are longer than their addresses.
func TestPathOfNoPrefix(t *testing.T) {
	for _, text := range []string{"10.0.0.0/32", "2001:db8::/128"} {
		r := ip.IPRoute{Prefix: vppwire.Prefix(netip.MustParsePrefix(text))}
		r.Prefix.Len++
		if p, ok := pathOf(&ip.IPTable{}, r, &fib_types.FibPath{SwIfIndex: 1, Weight: 1}); ok {
			t.Errorf("one bit more than %s: %+v", text, p)
		}
	}
}
