package vpp_test

import (
	"testing"

	"go.fd.io/govpp/binapi/bond"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

// TestLinks has links that VPP does not say are up: of a bond, which is so before it is
// enabled, and of a sub-interface, which has that of its parent.
func TestLinks(t *testing.T) { onEachVPP(t, links) }

func links(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true,
		"config/vpp/v2/interfaces/bond1", `{"name":"bond1","type":"BOND_INTERFACE","enabled":true,"bond":{"mode":"LACP"}}`,
		"config/vpp/v2/interfaces/sub1", `{"name":"sub1","type":"SUB_INTERFACE","enabled":true,"sub":{"parent_name":"bond1","sub_id":7}}`,
	)
	is := func(state string) {
		t.Helper()
		for _, name := range []string{"bond1", "sub1"} {
			a.awaitState("vpp/interface/"+name+"/link-state/"+state, kvscheduler.ValueState_OBTAINED)
		}
	}
	is("UP")
	c := vpp.Dial()
	all, err := conn.Dump[bond.SwBondInterfaceDetails](t.Context(), c, &bond.SwBondInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)})
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	for _, state := range []string{"DOWN", "UP"} {
		flags := vppif.SwInterfaceSetFlags{SwIfIndex: all[0].SwIfIndex}
		if state == "UP" {
			flags.Flags = 1
		}
		vpp.Ask(c, &flags, &vppif.SwInterfaceSetFlagsReply{})
		is(state)
	}
}
