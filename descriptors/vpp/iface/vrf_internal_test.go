package iface

import (
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/keys"
)

// An address depends on the membership of its IP version: the interface may be in another VRF for the other version.
func TestAddressNeedsTheVRFOfItsVersion(t *testing.T) {
	for _, tt := range []struct {
		address string
		in      keys.VRF
		want    bool
	}{
		{"10.1.0.1/24", keys.VRF{ID: 5, IPv4: true}, true},
		{"10.1.0.1/24", keys.VRF{ID: 5, IPv6: true}, false},
		{"fd01::1/64", keys.VRF{ID: 5, IPv4: true}, false},
		{"fd01::1/64", keys.VRF{ID: 5, IPv6: true}, true},
		{"fd01::1/64", keys.VRF{ID: 5, IPv4: true, IPv6: true}, true},
		{"10.1.0.1/24", keys.VRF{From: "lo2"}, true},
	} {
		tt.in.Interface = "lo1"
		address := keys.Address{Interface: "lo1", Source: keys.Static, Addr: tt.address}
		if got := addressDependencies(address.Key(), nil)[0].MetBy(tt.in.Key()); got != tt.want {
			t.Errorf("%s with %s: %v, want %v", tt.address, tt.in.Key(), got, tt.want)
		}
	}
}
