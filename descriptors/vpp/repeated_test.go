package vpp_test

import (
	"slices"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
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
		a.expectState(key, scheduler.Configured)
	}
	expectRestartReads(t, vpp, a, all...)
}

// TestLinkLocalAddresses has one that VPP takes and does not list, and one that it refuses: for that
// the interface need not go.
func TestLinkLocalAddresses(t *testing.T) { onEachVPP(t, linkLocalAddresses) }

func linkLocalAddresses(t *testing.T, vpp *simulated.VPP) {
	const good, bad = "vpp/interface/good/address/static/fe80::5/128", "vpp/interface/bad/address/static/fe80::6/64"
	all := []string{
		interfacesPrefix + "good", `{"name":"good","type":"SOFTWARE_LOOPBACK","ip_addresses":["fd00:1::1/64","fe80::5/128"]}`,
		interfacesPrefix + "bad", `{"name":"bad","type":"SOFTWARE_LOOPBACK","ip_addresses":["fd00:2::1/64","fe80::6/64"]}`,
	}
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	_, err := a.declare(true, all...)
	if fields := models.Fields(err); !slices.Equal(fields, []string{"ip_addresses"}) {
		t.Errorf("it says %v", err)
	}
	a.expectState(good, scheduler.Configured)
	a.expectState(bad, scheduler.Invalid)
	a.expectState("vpp/interface/bad/address/static/fd00:2::1/64", scheduler.Configured)
	a.stop()
	vpp.Counts()
	again := startAgent(t, vpp.Socket)
	awaitReady(t, again)
	again.declare(true, all...)
	again.expectState(good, scheduler.Configured)
	expectOnlyReads(t, vpp)
}
