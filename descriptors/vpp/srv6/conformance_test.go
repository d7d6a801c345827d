package srv6

import (
	"fmt"
	"slices"
	"testing"

	"go.fd.io/govpp/binapi/ip"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/existing"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/srv6"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// onVPP returns a handler for a VPP with the loopbacks if1, if2 and if3, and table 7 of both IP
// versions.
func onVPP(t testing.TB, release string) (*handler, *simulated.VPP) {
	t.Helper()
	vpp := simulated.Start(t, release)
	c := vpp.Dial()
	for _, ipv6 := range []bool{false, true} {
		vpp.Ask(c, &ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: 7, IsIP6: ipv6}}, &ip.IPTableAddDelReply{})
	}
	return &handler{Options{API: c, Interfaces: existing.Loopbacks(vpp, c, "if1", "if2", "if3")}}, vpp
}

// TestGlobal sets the source address, changes it, and finds it again. There is one value of
// this kind, and the suite needs two.
func TestGlobal(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, _ := onVPP(t, release)
			d := h.globalDescriptor()
			g := func(source string) *srv6.SRv6Global { return &srv6.SRv6Global{EncapSourceAddress: source} }
			finds := func(want string, wanted ...scheduler.Desired[*srv6.SRv6Global]) {
				t.Helper()
				got := ""
				for f, err := range d.Retrieve(t.Context(), wanted) {
					if err != nil {
						t.Fatal(err)
					}
					got += fmt.Sprint(f.Value.GetEncapSourceAddress(), " ", f.OwnerUnknown, " ")
				}
				if got != want {
					t.Errorf("Retrieve finds %q; expected %q", got, want)
				}
			}
			finds("")
			finds(":: false ", scheduler.Desired[*srv6.SRv6Global]{Value: g("")})
			if _, err := d.Create(t.Context(), "", g("fd00::1")); err != nil {
				t.Error(err)
			}
			finds("fd00::1 true ")
			if _, err := d.Update(t.Context(), "", g("fd00::1"), g("FD00:0::2"), struct{}{}); err != nil {
				t.Error(err)
			}
			finds("fd00::2 false ", scheduler.Desired[*srv6.SRv6Global]{Value: g("FD00:0::2")})
			if err := d.Delete(t.Context(), "", g("fd00::2"), struct{}{}); err != nil {
				t.Error(err)
			}
			finds("")
		})
	}
}

func TestGlobalIsCompared(t *testing.T) {
	d := (&handler{}).globalDescriptor()
	for _, c := range []struct {
		a, b string
		same bool
	}{{"fd00::1", "FD00:0::1", true}, {"", "::", true}, {"", "0::0", true}, {"fd00::1", "fd00::2", false}, {"fd00::1", "", false}} {
		if d.Equivalent("", &srv6.SRv6Global{EncapSourceAddress: c.a}, &srv6.SRv6Global{EncapSourceAddress: c.b}) != c.same {
			t.Errorf("%q and %q: same is not %t", c.a, c.b, c.same)
		}
	}
	for address, valid := range map[string]bool{"": true, "::": true, "fd00::1": true, "10.0.0.1": false, "ff02::1": false, "fe80::1%if1": false, "x": false} {
		err := d.Validate("", &srv6.SRv6Global{EncapSourceAddress: address})
		if fields := models.Fields(err); (err == nil) != valid || !valid && !slices.Equal(fields, []string{"encap_source_address"}) {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestLocalSIDConforms(t *testing.T) {
	s := func(text string) *srv6.LocalSID { return testkit.Parse[*srv6.LocalSID](t, text) }
	v := func(text string) scheduler.Desired[*srv6.LocalSID] {
		return scheduler.Desired[*srv6.LocalSID]{Value: s(text)}
	}
	change := func(name, from, to string, how conformance.How) conformance.Change[*srv6.LocalSID] {
		return conformance.Change[*srv6.LocalSID]{Name: name, From: s(`sid: "fd01::1" ` + from), To: s(`sid: "fd01::1" ` + to), How: how}
	}
	const end, x, ad = `base_end_function: {}`, `end_function_x: { outgoing_interface: "if1" next_hop: "fd00::1" }`,
		`end_function_ad: { outgoing_interface: "if1" incoming_interface: "if2" l3_service_address: "10.0.0.1" }`
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*srv6.LocalSID, struct{}] {
		h, _ := onVPP(t, release)
		return h.localSIDDescriptor()
	}, conformance.Suite[*srv6.LocalSID, struct{}]{
		Values: []scheduler.Desired[*srv6.LocalSID]{
			v(`sid: "fd01::1" base_end_function: { psp: true }`),
			v(`sid: "FD01:0::2" installation_vrf_id: 7 base_end_function: {}`),
			v(`sid: "fd01::3" installation_vrf_id: 7 end_function_x: { psp: true outgoing_interface: "if1" next_hop: "fd00::1" }`),
			v(`sid: "fd01::4" end_function_x: { outgoing_interface: "if1" next_hop: "::5" }`),
			v(`sid: "fd01::5" end_function_t: { psp: true vrf_id: 7 }`), v(`sid: "fd01::6" end_function_t: {}`),
			v(`sid: "fd01::7" end_function_dx2: { outgoing_interface: "if2" }`),
			v(`sid: "fd01::8" end_function_dx4: { outgoing_interface: "if2" next_hop: "10.0.0.1" }`),
			v(`sid: "fd01::9" end_function_dx6: { outgoing_interface: "if2" next_hop: "fd00::1" }`),
			v(`sid: "fd01::a" end_function_dt4: { vrf_id: 7 }`), v(`sid: "fd01::b" end_function_dt6: { vrf_id: 7 }`), v(`sid: "fd01::c" end_function_dt6: {}`),
			v(`sid: "fd01::d" installation_vrf_id: 7 end_function_ad: { outgoing_interface: "if1" incoming_interface: "if3" l3_service_address: "10.0.0.1" }`),
			v(`sid: "fd01::e" end_function_ad: { outgoing_interface: "if1" incoming_interface: "if3" l3_service_address: "fd00::1" }`),
			v(`sid: "fd01::f" end_function_ad: { outgoing_interface: "if3" incoming_interface: "if1" }`),
		},
		Changes: []conformance.Change[*srv6.LocalSID]{
			change("function", end, x, conformance.Recreated),
			change("PSP", end, `base_end_function: { psp: true }`, conformance.Recreated),
			change("table", end, `installation_vrf_id: 7 `+end, conformance.Recreated),
			change("next hop", x, `end_function_x: { outgoing_interface: "if1" next_hop: "fd00::2" }`, conformance.Recreated),
			change("spelling", x, `end_function_x: { outgoing_interface: "if1" next_hop: "FD00:0::1" }`, conformance.Unchanged),
			change("table to look up in", `end_function_dt4: {}`, `end_function_dt4: { vrf_id: 7 }`, conformance.Recreated),
			change("to a service", end, ad, conformance.Recreated),
			change("from a service", ad, `end_function_dx2: { outgoing_interface: "if1" }`, conformance.Recreated),
			change("VLAN tag", `end_function_dx2: { outgoing_interface: "if1" }`, `end_function_dx2: { outgoing_interface: "if1" vlan_tag: 5 }`, conformance.Unchanged),
		},
		Invalid: []conformance.Invalid[*srv6.LocalSID]{
			{Name: "nothing", Value: &srv6.LocalSID{}, Fields: []string{"sid", "end_function"}},
			{Name: "IPv4", Value: s(`sid: "10.0.0.1" end_function_x: { next_hop: "10.0.0.1" }`), Fields: []string{"sid", "end_function_x.outgoing_interface", "end_function_x.next_hop"}},
			{Name: "DX2", Value: s(`sid: "::" end_function_dx2: {}`), Fields: []string{"sid", "end_function_dx2.outgoing_interface"}},
			{Name: "DX4", Value: s(`sid: "ff00::1" end_function_dx4: { next_hop: "fd00::1" }`), Fields: []string{"sid", "end_function_dx4.outgoing_interface", "end_function_dx4.next_hop"}},
			{Name: "DX6", Value: s(`sid: "fd00::1/128" end_function_dx6: { next_hop: "::" }`), Fields: []string{"sid", "end_function_dx6.outgoing_interface", "end_function_dx6.next_hop"}},
			{Name: "AD", Value: s(`sid: "fd00::1" end_function_ad: { l3_service_address: "x" }`),
				Fields: []string{"end_function_ad.outgoing_interface", "end_function_ad.incoming_interface", "end_function_ad.l3_service_address"}},
		},
	})
}
