package describe_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/describe"
)

// TestEveryFieldIsDescribed looks for the comment of every field, and for an example of those that
// have no message.
func TestEveryFieldIsDescribed(t *testing.T) {
	for _, m := range models.BuiltIn().All() {
		fields, err := describe.Fields(m)
		if err != nil {
			t.Fatal(err)
		}
		if describe.Message(m) == "" {
			t.Errorf("%s has no comment", m.Name())
		}
		for _, f := range fields {
			if f.Comment == "" {
				t.Errorf("%s: %s has no comment", m.Name(), f.Name)
			}
		}
	}
}

func TestField(t *testing.T) {
	m, _ := models.BuiltIn().ByName("vpp.vrrp")
	all, err := describe.Fields(m)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]describe.Field{}
	for _, f := range all {
		got[f.Name] = f
	}
	want := describe.Field{
		Name: "interval", Type: "uint32", Allowed: "10..65535", Unit: "milliseconds", Example: "1000", Required: true,
		Comment: "Milliseconds between two advertisements, 10 to 65535. VPP counts hundredths of a second.",
	}
	if diff := cmp.Diff(want, got["interval"]); diff != "" {
		t.Error(diff)
	}
	if f := got["vr_id"]; !f.Key || f.Example != "7" {
		t.Errorf("vr_id: %+v", f)
	}
	if f := got["ip_addresses"]; f.Type != "[]string" || f.Allowed != "IP address" || f.Example != "10.1.0.254" {
		t.Errorf("ip_addresses: %+v", f)
	}
}
