package stn

import (
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/leftovers"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/proto/ligato/vpp/stn"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/conformance"
)

// links are existing interfaces.
type links map[string]iface.Meta

func (l links) Get(name string) (iface.Meta, bool) { m, ok := l[name]; return m, ok }
func (l links) All() map[string]iface.Meta         { return l }
func (l links) Last(string) (uint32, bool)         { return 0, false }
func (l links) Names() map[uint32]string           { return iface.NamesByIndex(l) }
func (l links) Leftovers() *leftovers.Registry     { return &leftovers.Registry{} }

func TestRuleConforms(t *testing.T) {
	r := func(name, address string) *stn.Rule { return &stn.Rule{Interface: name, IpAddress: address} }
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			conformance.Run(t, conformance.Suite[*stn.Rule, struct{}]{
				New: func(t *testing.T) scheduler.Descriptor[*stn.Rule, struct{}] {
					vpp := simulated.Start(t, release)
					c, existing := vpp.Dial(), links{}
					for _, name := range []string{"if1", "if2"} {
						existing[name] = iface.Meta{Index: uint32(vpp.Loopback(c, name))}
					}
					return handler{Options{API: c, Interfaces: existing}}.descriptor()
				},
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
		})
	}
}
