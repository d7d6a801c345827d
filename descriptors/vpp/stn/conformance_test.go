package stn

import (
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/existing"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/proto/ligato/vpp/stn"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

func TestRuleConforms(t *testing.T) {
	r := func(name, address string) *stn.Rule { return &stn.Rule{Interface: name, IpAddress: address} }
	existing.Conforms(t, func(t *testing.T, release string) scheduler.Descriptor[*stn.Rule, struct{}] {
		vpp := simulated.Start(t, release)
		c := vpp.Dial()
		return handler{Options{API: c, Interfaces: existing.Loopbacks(vpp, c, "if1", "if2")}}.descriptor()
	}, conformance.Suite[*stn.Rule, struct{}]{
		Values: []scheduler.Desired[*stn.Rule]{{Value: r("if1", "10.0.0.1")}, {Value: r("if1", "fd00::1")}, {Value: r("if2", "10.0.0.2")}},
		Changes: []conformance.Change[*stn.Rule]{
			{Name: "nothing", From: r("if1", "10.0.0.1"), To: r("if1", "10.0.0.1"), How: conformance.Unchanged},
			{Name: "spelling", Key: "config/vpp/stn/v2/rule/if1/ip/fd00::1", From: r("if1", "fd00::1"), To: r("if1", "FD00:0::1"), How: conformance.Unchanged},
		},
		Invalid: []conformance.Invalid[*stn.Rule]{
			{Name: "nothing", Value: &stn.Rule{}, Fields: []string{"interface", "ip_address"}},
			{Name: "zone", Value: r("if1", "fe80::1%if1"), Fields: []string{"ip_address"}},
		},
	})
}
