package l3

import (
	"net/netip"
	"testing"

	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
)

// A change between a reference and its address is none. Without an address, the texts are compared.
func TestReferenceAndItsAddressAreEquivalent(t *testing.T) {
	allocated := book{"network/net1/interface/loop1": {Address: netip.MustParsePrefix("10.7.0.1/24"), Gateway: netip.MustParsePrefix("10.7.0.254/24")}}
	equivalent := handler{Options: Options{Allocations: allocated}}.routeDescriptor().Equivalent
	route := func(dst, next string) *l3.Route {
		return &l3.Route{OutgoingInterface: "loop1", DstNetwork: dst, NextHopAddr: next}
	}
	for _, tt := range []struct {
		name     string
		old, new *l3.Route
		want     bool
	}{
		{"next hop", route("10.8.0.0/16", "alloc:net1/GW"), route("10.8.0.0/16", "10.7.0.254"), true},
		{"next hop, the other way round", route("10.8.0.0/16", "10.7.0.254"), route("10.8.0.0/16", "alloc:net1/loop1/GW"), true},
		{"another next hop", route("10.8.0.0/16", "alloc:net1/GW"), route("10.8.0.0/16", "10.7.0.253"), false},
		{"destination", route("alloc:net1/loop1", "10.1.0.1"), route("10.7.0.0/24", "10.1.0.1"), true},
		{"another destination", route("alloc:net1/loop1", "10.1.0.1"), route("10.7.1.0/24", "10.1.0.1"), false},
		{"not allocated", route("10.8.0.0/16", "alloc:net2/GW"), route("10.8.0.0/16", "10.7.0.254"), false},
		{"not allocated, the same text", route("10.8.0.0/16", "alloc:net2/GW"), route("10.8.0.0/16", "alloc:net2/GW"), true},
	} {
		if got := equivalent("", tt.old, tt.new); got != tt.want {
			t.Errorf("%s: equivalent is %v; expected %v", tt.name, got, tt.want)
		}
	}
}
