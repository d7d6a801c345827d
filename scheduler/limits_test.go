package scheduler_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/limits"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// TestLimits has a descriptor and the limits of its model refuse fields: each field once, with the
// error of the descriptor if both refuse it.
func TestLimits(t *testing.T) {
	s := scheduler.New(scheduler.Options{FieldChecks: limits.Validation})
	var wrong error
	_, err := scheduler.Register(s, scheduler.Descriptor[*l3.Route, struct{}]{
		Name: "route", Model: models.For[*l3.Route](),
		Validate: func(string, *l3.Route) error { return wrong },
	})
	if err != nil {
		t.Fatal(err)
	}
	valid := &l3.Route{OutgoingInterface: "a", DstNetwork: "10.0.0.0/8"}
	gateway := &models.FieldError{Field: "gw_addr", Value: "x", Expected: "another gateway"}
	for name, tt := range map[string]struct {
		change func(*l3.Route)
		wrong  error
		fields []string
		text   string
	}{
		"neither refuses it": {change: func(*l3.Route) {}},
		"the descriptor":     {func(*l3.Route) {}, gateway, []string{"gw_addr"}, "gw_addr is \"x\"; expected another gateway"},
		"the limits":         {func(v *l3.Route) { v.GwAddr = "y" }, nil, []string{"gw_addr"}, `gw_addr is "y"; expected an IP address or alloc:NETWORK/INTERFACE, such as "10.0.0.1"`},
		"both one field":     {func(v *l3.Route) { v.GwAddr = "x" }, gateway, []string{"gw_addr"}, "gw_addr is \"x\"; expected another gateway"},
		"each another one":   {func(v *l3.Route) { v.Scope = 9 }, gateway, []string{"gw_addr", "scope"}, `gw_addr is "x"; expected another gateway; scope is 9; expected one of UNDEFINED, GLOBAL, SITE, LINK, HOST`},
	} {
		v := proto.CloneOf(valid)
		tt.change(v)
		wrong = tt.wrong
		key, err := models.For[*l3.Route]().Key(valid)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Value(key, v)
		if got := models.Fields(err); !slices.Equal(got, tt.fields) || err != nil && err.Error() != "invalid value: "+tt.text {
			t.Errorf("%s: fields %q, %v\nwant %q, %s", name, got, err, tt.fields, tt.text)
		}
	}
}
