package vpp_test

import (
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

// TestSaidTwiceIsSaid has lists name something twice, and a bond that may have any ID: what VPP has
// is what is declared, for the next agent too.
func TestSaidTwiceIsSaid(t *testing.T) { onEachVPP(t, saidTwiceIsSaid) }

func saidTwiceIsSaid(t *testing.T, vpp *simulated.VPP) {
	all := []string{
		interfacesPrefix + "loop", `{"name":"loop","type":"SOFTWARE_LOOPBACK","phys_address":"03:00:00:00:00:01","ip_addresses":["10.0.0.1/24","fd00::1/64","10.0.0.1/24"]}`,
		interfacesPrefix + "bridged", `{"name":"bridged","type":"SOFTWARE_LOOPBACK"}`,
		interfacesPrefix + "bond", `{"name":"bond","type":"BOND_INTERFACE","bond":{"mode":"XOR","id":4294967295}}`,
		bridgeKey, `{"name":"bd1","interfaces":[{"name":"bridged","bridged_virtual_interface":true},{"name":"bridged","bridged_virtual_interface":true}]}`,
		"config/vpp/v2/proxyarp-global", `{"interfaces":[{"name":"loop"},{"name":"loop"}]}`,
	}
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, all...)
	for _, key := range []string{
		interfacesPrefix + "loop", "vpp/interface/loop/address/static/10.0.0.1/24", interfacesPrefix + "bond", bridgeKey, "vpp/bd/bd1/interface/bridged", "vpp/proxyarp/interface/loop",
	} {
		a.expectState(key, kvscheduler.ValueState_CONFIGURED)
	}
	a.stop()
	vpp.Counts()
	again := startAgent(t, vpp.Socket)
	awaitReady(t, again)
	again.want(true, all...)
	expectOnlyReads(t, vpp)
}
