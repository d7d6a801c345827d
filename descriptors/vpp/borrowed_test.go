package vpp_test

import (
	"strings"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
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
