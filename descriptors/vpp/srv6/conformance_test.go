package srv6

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/sr"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/existing"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/srv6"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// alone is Modes for interfaces that have nothing else in layer 2.
type alone struct{ conn.API }

func (alone) Enter(context.Context, interface_types.InterfaceIndex) error { return nil }

func (a alone) Leave(ctx context.Context, _ interface_types.InterfaceIndex, request, reply api.Message) error {
	return a.Call(ctx, request, reply)
}

func (a alone) Keep(ctx context.Context, index interface_types.InterfaceIndex, request, reply api.Message) error {
	return a.Leave(ctx, index, request, reply)
}

// onVPP returns a handler for a VPP with the loopbacks if1, if2 and if3, and table 7 of both IP
// versions.
func onVPP(t testing.TB, release string) (*handler, *simulated.VPP) {
	t.Helper()
	vpp := simulated.Start(t, release)
	c := vpp.Dial()
	for _, ipv6 := range []bool{false, true} {
		vpp.Ask(c, &ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: 7, IsIP6: ipv6}}, &ip.IPTableAddDelReply{})
	}
	return &handler{Options: Options{API: c, Modes: alone{c}, Interfaces: existing.Loopbacks(vpp, c, "if1", "if2", "if3")}}, vpp
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
				for f, err := range conformance.Taken(d.Retrieve(t.Context(), wanted)) {
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

func TestPolicyConforms(t *testing.T) {
	p := func(text string) *srv6.Policy { return testkit.Parse[*srv6.Policy](t, text) }
	v := func(text string) scheduler.Desired[*srv6.Policy] {
		return scheduler.Desired[*srv6.Policy]{Value: p(text)}
	}
	change := func(name, from, to string, how conformance.How) conformance.Change[*srv6.Policy] {
		return conformance.Change[*srv6.Policy]{Name: name, From: p(`bsid: "fd01::1" ` + from), To: p(`bsid: "fd01::1" ` + to), How: how}
	}
	const encap = ` srh_encapsulation: true `
	way := func(weight int, segments ...string) string {
		return fmt.Sprintf(` segment_lists: { weight: %d segments: "%s" } `, weight, strings.Join(segments, `" segments: "`))
	}
	a, b, c := way(1, "fd02::1", "fd02::2"), way(2, "fd02::3"), way(3, "fd02::4", "fd02::1")
	many := strings.Split(strings.TrimSpace(strings.Repeat("fd02::9 ", maxSegments)), " ")
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*srv6.Policy, struct{}] {
		h, vpp := onVPP(t, release)
		vpp.Ask(vpp.Dial(), &sr.SrSetEncapSource{EncapsSource: unicast("fd00::1").As16()}, &sr.SrSetEncapSourceReply{})
		return h.policyDescriptor()
	}, conformance.Suite[*srv6.Policy, struct{}]{
		Values: []scheduler.Desired[*srv6.Policy]{
			v(`bsid: "fd01::1"` + encap + a + b + c), v(`bsid: "FD01:0::2" installation_vrf_id: 7 spray_behaviour: true` + a + b),
			v(`bsid: "fd01::3" installation_vrf_id: 7` + way(4294967294, many...)), v(`bsid: "fd01::4"` + encap + ` spray_behaviour: true` + way(0, "FD02:0::1")),
			v(`bsid: "fd01::5"` + encap + way(1, "fd02::1") + way(2, "fd02::1")),
		},
		Changes: []conformance.Change[*srv6.Policy]{
			change("another list", encap+a, encap+a+b, conformance.Updated),
			change("a list less", encap+a+b+c, encap+b, conformance.Updated),
			change("all lists", a+b, c, conformance.Updated),
			change("weight", a+b, a+way(7, "fd02::3"), conformance.Updated),
			change("one weight of two", way(1, "fd02::1")+way(2, "fd02::1"), way(2, "fd02::1")+way(3, "fd02::1"), conformance.Updated),
			change("order", a+b, b+a, conformance.Unchanged),
			change("order of segments", way(1, "fd02::1", "fd02::2"), way(1, "fd02::2", "fd02::1"), conformance.Updated),
			change("spelling", way(1, "fd02::1"), way(0, "FD02:0::1"), conformance.Unchanged),
			change("encapsulation", a, encap+a, conformance.Recreated),
			change("spray", a, `spray_behaviour: true`+a, conformance.Recreated),
			change("table", a, `installation_vrf_id: 7`+a, conformance.Recreated),
		},
		Invalid: []conformance.Invalid[*srv6.Policy]{
			{Name: "nothing", Value: &srv6.Policy{}, Fields: []string{"bsid", "segment_lists"}},
			{Name: "segments", Value: p(`bsid: "10.0.0.1" segment_lists: {}` + way(4294967295, "x", "fd02::1", "::")),
				Fields: []string{"bsid", "segment_lists[0].segments", "segment_lists[1].weight", "segment_lists[1].segments[0]", "segment_lists[1].segments[2]"}},
			{Name: "too many", Value: p(`bsid: "fd01::1"` + way(1, append(many, "fd02::1")...)), Fields: []string{"segment_lists[0].segments"}},
			{Name: "twice", Value: p(`bsid: "fd01::1"` + a + b + way(0, "FD02::1", "fd02::2")), Fields: []string{"segment_lists[2]"}},
			{Name: "too many lists", Value: p(`bsid: "fd01::1"` + manyLists(maxLists+1)), Fields: []string{"segment_lists"}},
		},
	})
}

// manyLists returns different lists.
func manyLists(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ` segment_lists: { segments: "fd02::%x" } `, i+1)
	}
	return b.String()
}

// TestManyLists changes all of the most lists that a policy may have.
func TestManyLists(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, _ := onVPP(t, release)
			from := testkit.Parse[*srv6.Policy](t, `bsid: "fd01::1"`+manyLists(maxLists))
			to := testkit.Parse[*srv6.Policy](t, `bsid: "fd01::1"`+strings.ReplaceAll(manyLists(maxLists), "fd02", "fd03"))
			if _, err := h.createPolicy(t.Context(), "", from); err != nil {
				t.Fatal(err)
			}
			if _, err := h.updatePolicy(t.Context(), "", from, to, struct{}{}); err != nil {
				t.Fatal(err)
			}
			all, err := h.readPolicies(t.Context(), true)
			if err != nil || len(all) != 1 || !slices.Equal(listsOf(all[0]), listsOf(to)) {
				t.Errorf("VPP has %v, %v", all, err)
			}
		})
	}
}

// TestNewSource changes the source address while policies exist. Those of this agent get it at
// once; a policy of somebody else keeps what it has.
func TestNewSource(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			h, vpp := onVPP(t, release)
			c := vpp.Dial()
			ours := testkit.Parse[*srv6.Policy](t, `bsid: "fd01::1" srh_encapsulation: true segment_lists: { weight: 2 segments: "fd02::1" } segment_lists: { segments: "fd02::2" }`)
			plain := testkit.Parse[*srv6.Policy](t, `bsid: "fd01::2" segment_lists: { segments: "fd02::1" }`)
			for _, v := range []*srv6.Policy{ours, plain} {
				if _, err := h.createPolicy(t.Context(), "", v); err != nil {
					t.Fatal(err)
				}
			}
			vpp.Ask(c, &sr.SrPolicyAdd{BsidAddr: unicast("fd01::3").As16(), IsEncap: true, Sids: list{"fd02::1", 1}.wire()}, &sr.SrPolicyAddReply{})
			before, err := h.dumpPolicies(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := h.setSource(t.Context(), unicast("fd00::7")); err != nil {
				t.Fatal(err)
			}
			after, err := h.dumpPolicies(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i, renewed := range []bool{true, false, false} {
				if same := after[i].SidLists[0].SlIndex == before[i].SidLists[0].SlIndex; same == renewed {
					t.Errorf("policy %d: %+v was %+v", i, after[i], before[i])
				}
			}
			if !slices.Equal(listsOf(after[0].value()), listsOf(ours)) {
				t.Errorf("it has %+v", after[0])
			}
			if !h.API.Has(&sr.SrPoliciesV2Dump{}) {
				return
			}
			// The agent ends before it has renewed them: Retrieve finds it.
			vpp.Ask(c, &sr.SrSetEncapSource{EncapsSource: unicast("fd00::8").As16()}, &sr.SrSetEncapSourceReply{})
			all, err := h.readPolicies(t.Context(), true)
			if err != nil || len(all[0].GetSegmentLists()) != 0 || len(all[1].GetSegmentLists()) != 1 {
				t.Errorf("VPP has %v, %v", all, err)
			}
			if _, err := h.updatePolicy(t.Context(), "", all[0], ours, struct{}{}); err != nil {
				t.Fatal(err)
			}
			all, err = h.readPolicies(t.Context(), true)
			if err != nil || !slices.Equal(listsOf(all[0]), listsOf(ours)) {
				t.Errorf("VPP has %v, %v", all, err)
			}
		})
	}
}

// Somebody looks at a policy that is declared, but that this agent has not read back or made: it is not the agent's by that.
func TestLookClaimsNoPolicy(t *testing.T) {
	h, vpp := onVPP(t, "")
	v := testkit.Parse[*srv6.Policy](t, `bsid: "fd01::1" segment_lists: { segments: "fd02::1" }`)
	vpp.Ask(vpp.Dial(), &sr.SrPolicyAdd{BsidAddr: unicast("fd01::1").As16(), Sids: list{"fd02::1", 1}.wire()}, &sr.SrPolicyAddReply{})
	read := h.policyDescriptor().Retrieve(t.Context(), []scheduler.Desired[*srv6.Policy]{{Value: v}})
	for _, taken := range []bool{false, true} {
		found := read
		if taken {
			found = conformance.Taken(read)
		}
		for _, err := range found {
			if err != nil {
				t.Fatal(err)
			}
		}
		if ours := h.policies.has(unicast("fd01::1")); ours != taken {
			t.Errorf("taken %t: the policy is the agent's: %t", taken, ours)
		}
	}
}

func TestSteeringConforms(t *testing.T) {
	p := func(text string) *srv6.Steering { return testkit.Parse[*srv6.Steering](t, text) }
	v := func(text string) scheduler.Desired[*srv6.Steering] {
		return scheduler.Desired[*srv6.Steering]{Value: p(text)}
	}
	change := func(name, from, to string, how conformance.How) conformance.Change[*srv6.Steering] {
		return conformance.Change[*srv6.Steering]{Name: name, From: p(`name: "a" ` + from), To: p(`name: "a" ` + to), How: how}
	}
	const one, two, insert = ` policy_bsid: "fd01::1" `, ` policy_bsid: "fd01::2" `, ` policy_bsid: "fd01::3" `
	l3 := func(table int, prefix string) string {
		return fmt.Sprintf(` l3_traffic: { installation_vrf_id: %d prefix_address: "%s" } `, table, prefix)
	}
	l2 := func(name string) string { return ` l2_traffic: { interface_name: "` + name + `" } ` }
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*srv6.Steering, struct{}] {
		h, vpp := onVPP(t, release)
		for bsid, encap := range map[string]bool{"fd01::1": true, "fd01::2": true, "fd01::3": false} {
			vpp.Ask(vpp.Dial(), &sr.SrPolicyAdd{BsidAddr: unicast(bsid).As16(), IsEncap: encap, Sids: list{"fd02::1", 1}.wire()}, &sr.SrPolicyAddReply{})
		}
		return h.steeringDescriptor()
	}, conformance.Suite[*srv6.Steering, struct{}]{
		Values: []scheduler.Desired[*srv6.Steering]{
			v(`name: "a"` + one + l3(0, "fd03::/64")), v(`name: "b"` + ` policy_bsid: "FD01:0::1" ` + l3(7, "FD03:0::1/64")), v(`name: "c"` + one + l3(7, "::/0")),
			v(`name: "d"` + one + l3(0, "10.3.0.0/16")), v(`name: "e"` + two + l3(7, "10.3.0.1/16")), v(`name: "f"` + two + l3(7, "0.0.0.0/0")),
			v(`name: "g"` + one + l2("if1")), v(`name: "h"` + two + l2("if2")), v(`name: "i"` + insert + l3(0, "fd04::1/128")), v(`name: "j"` + one + l3(0, "::5/128")),
		},
		Changes: []conformance.Change[*srv6.Steering]{
			change("policy", one+l3(0, "10.3.0.0/16"), two+l3(0, "10.3.0.0/16"), conformance.Recreated),
			change("network", one+l3(0, "10.3.0.0/16"), one+l3(0, "10.4.0.0/16"), conformance.Recreated),
			change("table", one+l3(0, "10.3.0.0/16"), one+l3(7, "10.3.0.0/16"), conformance.Recreated),
			change("interface", one+l2("if1"), one+l2("if2"), conformance.Recreated),
			change("kind of traffic", one+l2("if1"), one+l3(7, "fd03::/64"), conformance.Recreated),
			change("spelling", one+l3(7, "fd03::/64"), ` policy_bsid: "FD01:0::1" `+l3(7, "FD03:0::7/64"), conformance.Unchanged),
		},
		Invalid: []conformance.Invalid[*srv6.Steering]{
			{Name: "nothing", Value: &srv6.Steering{}, Fields: []string{"name", "policy_bsid", "traffic"}},
			{Name: "index", Value: p(`name: "a" policy_index: 3` + l2("")), Fields: []string{"policy_index", "l2_traffic.interface_name"}},
			{Name: "network", Value: p(`name: "a" policy_bsid: "x"` + l3(0, "10.0.0.1")), Fields: []string{"policy_bsid", "l3_traffic.prefix_address"}},
			{Name: "IPv4 in IPv6", Value: p(`name: "a"` + one + l3(0, "::ffff:10.0.0.0/104")), Fields: []string{"l3_traffic.prefix_address"}},
		},
	})
}
