package iface

import (
	"slices"
	"testing"

	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// TestLinksOfTheHostAreRaised has VPP put down the link of the host that an interface is on.
func TestLinksOfTheHostAreRaised(t *testing.T) {
	h, _ := onVPP(t, "25.10")
	var raised []string
	h.RaiseLink = func(host string) error { raised = append(raised, host); return nil }
	link := &interfaces.Interface_Afpacket{Afpacket: &interfaces.AfpacketLink{HostIfName: "lo"}}
	up := &interfaces.Interface{Name: "a", Type: interfaces.Interface_AF_PACKET, Enabled: true, Link: link}
	down := &interfaces.Interface{Name: "a", Type: interfaces.Interface_AF_PACKET, Link: link}
	expect := func(when string, want ...string) {
		t.Helper()
		if !slices.Equal(raised, want) {
			t.Errorf("%s: raised are %v, want %v", when, raised, want)
		}
		raised = nil
	}
	meta, err := h.create(t.Context(), "", up)
	if err != nil {
		t.Fatal(err)
	}
	expect("made")
	if meta, err = h.update(t.Context(), "", up, down, meta); err != nil {
		t.Fatal(err)
	}
	expect("disabled", "lo")
	if err := h.delete(t.Context(), "", down, meta); err != nil {
		t.Fatal(err)
	}
	expect("deleted", "lo")

	// The same by a Linux interface, if its link is not the agent's.
	for _, foreign := range []bool{true, false} {
		h.env.LinuxHost = func(string) (string, bool, bool) { return "lo", foreign, true }
		want := map[bool][]string{true: {"lo"}}[foreign]
		link := &interfaces.Interface_Afpacket{Afpacket: &interfaces.AfpacketLink{LinuxInterface: "l"}}
		up := &interfaces.Interface{Name: "a", Type: interfaces.Interface_AF_PACKET, Enabled: true, Link: link}
		down := &interfaces.Interface{Name: "a", Type: interfaces.Interface_AF_PACKET, Link: link}
		if meta, err = h.create(t.Context(), "", up); err != nil {
			t.Fatal(err)
		}
		expect("made")
		if meta, err = h.update(t.Context(), "", up, down, meta); err != nil {
			t.Fatal(err)
		}
		expect("disabled", want...)
		if err := h.delete(t.Context(), "", down, meta); err != nil {
			t.Fatal(err)
		}
		expect("deleted", want...)
	}
}
