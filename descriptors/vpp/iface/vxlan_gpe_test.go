package iface

import (
	"slices"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

func TestTablesOfVXLANGPE(t *testing.T) {
	const ends4, ends6 = `src_address: "10.0.0.1" dst_address: "10.0.0.2"`, `src_address: "fd00::1" dst_address: "fd00::2"`
	for text, want := range map[string][]string{
		`vxlan: { ` + ends4 + ` gpe: { protocol: ETHERNET } }`:                   nil,
		`vrf: 5 vxlan: { ` + ends4 + ` gpe: { protocol: IP4 decap_vrf_id: 6 } }`: {keys.VRFTable(5, false), keys.VRFTable(6, false)},
		`vrf: 5 vxlan: { ` + ends6 + ` gpe: { protocol: IP6 decap_vrf_id: 6 } }`: {keys.VRFTable(5, true), keys.VRFTable(6, true), keys.VRFTable(5, false)},
	} {
		h := newHandler(Options{}, nil)
		var got []string
		for _, dep := range h.dependencies("", testkit.Parse[*interfaces.Interface](t, `name: "if1" type: VXLAN_TUNNEL `+text)) {
			got = append(got, dep.Key)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s needs %q, want %q", text, got, want)
		}
	}
}
