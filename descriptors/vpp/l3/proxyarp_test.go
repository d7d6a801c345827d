package l3

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// TestLifeOfProxyARP has each version follow the one before, and the last one go. Each
// verb is called twice, as after an answer that was lost.
func TestLifeOfProxyARP(t *testing.T) {
	h, _ := onVPP(t, simulated.Newest())
	d := h.proxyDescriptor()
	var old *l3.ProxyARP
	for _, text := range []string{
		`ranges: { first_ip_addr: "10.0.0.1" last_ip_addr: "10.0.0.9" }`,
		`ranges: { first_ip_addr: "10.0.0.5" last_ip_addr: "10.0.0.9" } ranges: { first_ip_addr: "10.0.0.1" last_ip_addr: "10.0.0.9" }`,
		`ranges: { first_ip_addr: "10.0.0.5" last_ip_addr: "10.0.0.9" vrf_id: 5 } ranges: { first_ip_addr: "10.0.0.6" last_ip_addr: "10.0.0.6" vrf_id: 5 }`,
	} {
		v := testkit.Parse[*l3.ProxyARP](t, text)
		for range 2 {
			var err error
			if old == nil {
				_, err = d.Create(t.Context(), "", v)
			} else {
				_, err = d.Update(t.Context(), "", old, v, struct{}{})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if found := standing(t, d, v); found == nil || !d.Equivalent("", found, v) {
			t.Errorf("%v stands, want %v", found, v)
		}
		old = v
	}
	for range 2 {
		if err := d.Delete(t.Context(), "", old, struct{}{}); err != nil {
			t.Fatal(err)
		}
	}
	if found := standing(t, d); found != nil {
		t.Errorf("%v stands, want nothing", found)
	}
}

// standing is the one value that Retrieve finds; nil: it finds none.
func standing[V proto.Message](t *testing.T, d scheduler.Descriptor[V, struct{}], wanted ...V) (out V) {
	t.Helper()
	var all []scheduler.Desired[V]
	for _, w := range wanted {
		all = append(all, scheduler.Desired[V]{Value: w})
	}
	for f, err := range conformance.Taken(d.Retrieve(t.Context(), all)) {
		if f.Foreign { // without ranges and interfaces, which is how a VPP starts
			continue
		}
		if err != nil || f.OwnerUnknown != (len(wanted) == 0) {
			t.Fatalf("%+v, %v", f, err)
		}
		out = f.Value
	}
	return out
}

func TestMeaningOfProxyARP(t *testing.T) {
	bad := testkit.Parse[*l3.ProxyARP](t, `interfaces: {} interfaces: { name: "if1" } interfaces: { name: "if1" }
		ranges: { first_ip_addr: "fd00::1" last_ip_addr: "x" } ranges: { first_ip_addr: "10.0.0.2" last_ip_addr: "10.0.0.1" vrf_id: 4294967295 }`)
	got := models.Fields(validateProxy("", bad))
	slices.Sort(got)
	want := []string{"interfaces[0].name", "ranges[0].first_ip_addr", "ranges[0].last_ip_addr", "ranges[1].last_ip_addr", "ranges[1].vrf_id"}
	if !slices.Equal(got, want) {
		t.Errorf("refused: %q, want %q", got, want)
	}

	two := testkit.Parse[*l3.ProxyARP](t, `interfaces: { name: "if1" } interfaces: { name: "if2" }
		ranges: { first_ip_addr: "10.0.0.1" last_ip_addr: "10.0.0.2" vrf_id: 5 } ranges: { first_ip_addr: "10.0.0.8" last_ip_addr: "10.0.0.9" vrf_id: 5 }`)
	if deps := proxyDependencies("", two); len(deps) != 1 || deps[0].Key != "config/vpp/v2/vrf-table/id/5/protocol/IPV4" {
		t.Errorf("depends on %+v, want the one table", deps)
	}
	turned := testkit.Parse[*l3.ProxyARP](t, `interfaces: { name: "if2" } interfaces: { name: "if1" }
		ranges: { first_ip_addr: "10.0.0.8" last_ip_addr: "10.0.0.9" vrf_id: 5 } ranges: { first_ip_addr: "10.0.0.1" last_ip_addr: "10.0.0.2" vrf_id: 5 }`)
	if !equivalentProxy("", two, turned) {
		t.Error("the order counts")
	}
}
