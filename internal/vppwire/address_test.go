package vppwire_test

import (
	"testing"

	"github.com/keyplane/keyplane/internal/vppwire"
)

func TestMACs(t *testing.T) {
	const mac = "02:00:00:00:00:0a"
	for _, spelled := range []string{mac, "02:00:00:00:00:0A", "02-00-00-00-00-0a", "0200.0000.000a"} {
		if got, err := vppwire.MAC(spelled); err != nil || got.String() != mac || !vppwire.SameMAC(spelled, mac) {
			t.Errorf("%s is %s, %v", spelled, got, err)
		}
	}
	for _, other := range []string{"", "x", "02:00:00:00:00", "02:00:00:00:00:0a:00:00", "02:00:00:00:00:0a:00:00:00:00:00:00:00:00:00:00:00:00:00:00"} {
		if got, err := vppwire.MAC(other); err == nil || vppwire.SameMAC(other, mac) {
			t.Errorf("%q is taken for %s", other, got)
		}
	}
}
