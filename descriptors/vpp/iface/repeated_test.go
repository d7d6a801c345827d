package iface

import (
	"slices"
	"testing"

	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// A list that names one address 100,000 times makes one value of it.
func TestAddressIsDerivedOnce(t *testing.T) {
	h := newHandler(Options{}, nil)
	v := &interfaces.Interface{Name: "loop", IpAddresses: []string{"10.0.0.1/24"}}
	want := len(h.derived("", v))
	v.IpAddresses = slices.Repeat(v.IpAddresses, 100_000)
	if got := len(h.derived("", v)); got != want {
		t.Errorf("%d values are derived, want %d", got, want)
	}
}
