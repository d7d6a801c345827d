package iface

import (
	"errors"
	"strings"
	"testing"

	"go.fd.io/govpp/api"

	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// TestOneInterfaceIsOnALink has VPP offer the AF_PACKET interface of one value to another.
func TestOneInterfaceIsOnALink(t *testing.T) {
	for _, release := range []string{"22.02", "25.10"} {
		h, _ := onVPP(t, release)
		on := func(name string) *interfaces.Interface {
			return &interfaces.Interface{Name: name, Type: interfaces.Interface_AF_PACKET, Link: &interfaces.Interface_Afpacket{
				Afpacket: &interfaces.AfpacketLink{HostIfName: "lo"},
			}}
		}
		meta, err := h.create(t.Context(), "", on("a"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.create(t.Context(), "", on("b")); !errors.Is(err, api.IF_ALREADY_EXISTS) || !strings.Contains(err.Error(), "interface a is on that link") {
			t.Errorf("%s: another one is made: %v", release, err)
		}
		if _, stands := h.existing(t.Context(), "a"); !stands {
			t.Errorf("%s: the first has another name", release)
		}
		if err := h.env.SetTag(t.Context(), meta, ""); err != nil {
			t.Fatal(err)
		}
		if now, err := h.create(t.Context(), "", on("b")); err != nil || now.Index != meta.Index {
			t.Errorf("%s: one without a name is not taken up: %+v, %v", release, now, err)
		}
	}
}
