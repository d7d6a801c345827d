package l3

import (
	"net/netip"
	"testing"

	"github.com/keyplane/keyplane/descriptors/linux/keys"
	"github.com/keyplane/keyplane/internal/alloc"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
)

// book has one allocation whose gateway is not in the network of its address.
type book struct{}

func (book) Get(name string) (alloc.Allocation, bool) {
	return alloc.Allocation{Address: netip.MustParsePrefix("192.168.11.2/32"), Gateway: netip.MustParsePrefix("192.168.11.1/32")}, name == "network/net1/interface/nv1"
}

// A gateway is reachable by a route on the link to it, however the two refer to it.
func TestReferencesToOneGateway(t *testing.T) {
	h := handler{Options: Options{Allocations: book{}}}
	for _, gw := range []string{"alloc:net1/GW", "alloc:net1/nv1/GW", "192.168.11.1"} {
		deps := h.routeDependencies("", &l3.Route{OutgoingInterface: "nv1", DstNetwork: "10.5.0.0/16", GwAddr: gw})
		last := deps[len(deps)-1]
		for dst, want := range map[string]bool{
			"alloc:net1/nv1/GW": true, "alloc:net1/GW": true, "192.168.11.1/32": true, "192.168.11.0/24": true,
			"alloc:net1/nv2/GW": false, "alloc:net2/nv1/GW": false, "alloc:net1/nv1": false, "192.168.12.0/24": false,
		} {
			if got := last.Match(keys.LinkLocalRoute("nv1", dst)); got != want {
				t.Errorf("%s by a route to %s: %v, want %v", gw, dst, got, want)
			}
		}
	}
}

// A change between a reference and its address is none. Without an address, the texts are compared.
func TestReferenceAndItsAddressAreEquivalent(t *testing.T) {
	h := handler{Options: Options{Allocations: book{}}}
	route := func(dst, gw string) *l3.Route {
		return &l3.Route{OutgoingInterface: "nv1", DstNetwork: dst, GwAddr: gw}
	}
	arp := func(ip string) *l3.ARPEntry {
		return &l3.ARPEntry{Interface: "nv1", IpAddress: ip, HwAddress: "02:00:00:00:00:01"}
	}
	routes, arps := h.routeDescriptor().Equivalent, h.arpDescriptor().Equivalent
	for _, tt := range []struct {
		name      string
		got, want bool
	}{
		{"gateway", routes("", route("10.5.0.0/16", "alloc:net1/GW"), route("10.5.0.0/16", "192.168.11.1")), true},
		{"gateway, the other way round", routes("", route("10.5.0.0/16", "192.168.11.1"), route("10.5.0.0/16", "alloc:net1/nv1/GW")), true},
		{"two references to one gateway", routes("", route("10.5.0.0/16", "alloc:net1/GW"), route("10.5.0.0/16", "alloc:net1/nv1/GW")), true},
		{"another gateway", routes("", route("10.5.0.0/16", "alloc:net1/GW"), route("10.5.0.0/16", "192.168.11.9")), false},
		{"destination", routes("", route("alloc:net1/nv1/GW", ""), route("192.168.11.1/32", "")), true},
		{"another destination", routes("", route("alloc:net1/nv1/GW", ""), route("192.168.11.2/32", "")), false},
		{"not allocated", routes("", route("10.5.0.0/16", "alloc:net2/GW"), route("10.5.0.0/16", "192.168.11.1")), false},
		{"not allocated, the same text", routes("", route("10.5.0.0/16", "alloc:net2/GW"), route("10.5.0.0/16", "alloc:net2/GW")), true},
		{"neighbour", arps("", arp("alloc:net1/nv1"), arp("192.168.11.2")), true},
		{"another neighbour", arps("", arp("alloc:net1/nv1"), arp("192.168.11.3")), false},
		{"neighbour, not allocated", arps("", arp("alloc:net2/nv1"), arp("192.168.11.2")), false},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: equivalent is %v; expected %v", tt.name, tt.got, tt.want)
		}
	}
}
