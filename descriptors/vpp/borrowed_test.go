package vpp_test

import (
	"slices"
	"strings"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/scheduler"
)

// TestBorrowerLeavesTheTablesOfALenderThatIsGone has somebody delete the interface from which
// another one borrows its address, while no agent runs. The next agent is told of the borrower
// only. It must leave the tables of the lender before the agent deletes them: VPP disables all
// interfaces in a table that is flushed.
func TestBorrowerLeavesTheTablesOfALenderThatIsGone(t *testing.T) {
	onEachVPP(t, borrowerLeavesTheTables)
}

func borrowerLeavesTheTables(t *testing.T, vpp *simulated.VPP) {
	const lender, tables = interfacesPrefix + "lo1", "config/vpp/v2/vrf-table/id/5/protocol/"
	borrower := []string{interfacesPrefix + "lo2", `{"name":"lo2","type":"SOFTWARE_LOOPBACK","enabled":true,"unnumbered":{"interface_with_ip":"lo1"}}`}
	memory := notebook{}
	a := startAgentWith(t, vpp.Socket, nil, memory)
	awaitReady(t, a)
	a.want(true, append(borrower,
		lender, `{"name":"lo1","type":"SOFTWARE_LOOPBACK","enabled":true,"vrf":5,"ip_addresses":["10.1.0.1/24","fd01::1/64"]}`,
		tables+"IPV4", `{"id":5}`, tables+"IPV6", `{"id":5,"protocol":"IPV6"}`)...)
	awaits(t, vpp, "show interface", "lo2 up 5")
	a.stop()

	hand := vpp.Dial()
	details, err := conn.Dump[vppif.SwInterfaceDetails](t.Context(), hand, &vppif.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range details {
		if strings.HasPrefix(d.Tag, "lo1") {
			vpp.Ask(hand, &vppif.DeleteLoopback{SwIfIndex: d.SwIfIndex}, &vppif.DeleteLoopbackReply{})
		}
	}

	again := startAgentWith(t, vpp.Socket, nil, memory)
	awaitReady(t, again)
	again.want(true, borrower...)
	awaits(t, vpp, "show interface", "lo2 up 0")
	if page := vpp.Show("show ip table"); strings.Contains(page, "VRF:5") {
		t.Errorf("the tables are still there:\n%s", page)
	}
	again.resyncsInSync(vpp)
}

// TestBorrowerGetsAnotherLender has the new lender in another VRF, and in the same one: the borrower
// is in the VRF of its lender, and has the address at once.
func TestBorrowerGetsAnotherLender(t *testing.T) { onEachVPP(t, borrowerGetsAnotherLender) }

func borrowerGetsAnotherLender(t *testing.T, vpp *simulated.VPP) {
	const tables = "config/vpp/v2/vrf-table/id/5/protocol/"
	lender := func(name, vrf, addresses string) []string {
		return []string{interfacesPrefix + name, `{"name":"` + name + `","type":"SOFTWARE_LOOPBACK","enabled":true,"vrf":` + vrf + `,"ip_addresses":[` + addresses + `]}`}
	}
	borrower := func(from string) []string {
		return []string{interfacesPrefix + "lo9", `{"name":"lo9","type":"SOFTWARE_LOOPBACK","enabled":true,"unnumbered":{"interface_with_ip":"` + from + `"}}`}
	}
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, slices.Concat(borrower("blue"), []string{tables + "IPV4", `{"id":5}`, tables + "IPV6", `{"id":5,"protocol":"IPV6"}`},
		lender("blue", "5", `"10.1.0.1/24","fd01::1/64"`), lender("red", "0", `"10.2.0.1/24"`), lender("green", "0", `"10.3.0.1/24"`))...)
	for _, next := range []struct{ lender, vrf string }{{"red", "0"}, {"green", "0"}, {"blue", "5"}} {
		a.want(false, borrower(next.lender)...)
		a.expectState("vpp/interface/unnumbered/lo9", scheduler.Configured)
		awaits(t, vpp, "show interface", "lo9 up "+next.vrf)
		a.resyncsInSync(vpp)
	}
}
