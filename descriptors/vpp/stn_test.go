package vpp_test

import (
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	vppstn "go.fd.io/govpp/binapi/stn"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/scheduler"
)

// TestRuleMovesFromADeletedInterface has somebody delete the interface of a rule while no agent runs,
// and the next agent declare the address on another interface. The rule stays when an interface gets
// the index of the deleted one. A rule that nobody has given another interface goes.
func TestRuleMovesFromADeletedInterface(t *testing.T) {
	onEachVPP(t, ruleMovesFromADeletedInterface)
}

func ruleMovesFromADeletedInterface(t *testing.T, vpp *simulated.VPP) {
	rule := func(name, address string) []string {
		return []string{"config/vpp/stn/v2/rule/" + name + "/ip/" + address, `{"interface":"` + name + `","ip_address":"` + address + `"}`}
	}
	kept := append(rule("loop2", "10.7.0.1"), secondKey, loop2)
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, append(append(rule("loop1", "10.7.0.1"), rule("loop1", "10.7.0.2")...), loopKey, loop)...)
	a.want(false, secondKey, loop2)
	states, err := a.states.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone, stays := states["loop1"].GetIfIndex(), states["loop2"].GetIfIndex()
	a.stop()
	c := vpp.Dial()
	vpp.Ask(c, &vppif.DeleteLoopback{SwIfIndex: interface_types.InterfaceIndex(gone)}, &vppif.DeleteLoopbackReply{})

	again := startAgent(t, vpp.Socket)
	awaitReady(t, again)
	again.want(false, kept...) // without another read, which would end the rules before
	again.want(false, interfacesPrefix+"loop3", `{"name":"loop3","type":"SOFTWARE_LOOPBACK"}`)
	states, err = again.states.Read(t.Context())
	if err != nil || states["loop3"].GetIfIndex() != gone {
		t.Fatalf("the new interface is %v, %v; expected the index %d", states["loop3"], err, gone)
	}
	again.expectState(kept[0], scheduler.Configured)
	rules := listed[vppstn.StnRulesDetails](t, c, &vppstn.StnRulesDump{})
	if len(rules) != 1 || uint32(rules[0].SwIfIndex) != stays {
		t.Errorf("the rules are %+v; expected one to the interface %d", rules, stays)
	}
	again.resyncsInSync(vpp)
}
