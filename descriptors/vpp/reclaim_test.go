package vpp_test

import (
	"strings"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/scheduler"
)

// TestLeftoversOfDeadIndexes has somebody delete two interfaces while no agent runs. Each has a neighbour
// and a TEIB entry of the same addresses. The next agent declares one of them, which gets the index of
// the other: VPP dies of an address that comes to an index while it is still on one that nobody has.
func TestLeftoversOfDeadIndexes(t *testing.T) { onEachVPP(t, leftoversOfDeadIndexes) }

func leftoversOfDeadIndexes(t *testing.T, vpp *simulated.VPP) {
	values := func(names ...string) (all []string) {
		for _, name := range names {
			all = append(all,
				interfacesPrefix+name, `{"name":"`+name+`","type":"SOFTWARE_LOOPBACK","enabled":true}`,
				"config/vpp/v2/arp/"+name+"/10.1.0.9", `{"interface":"`+name+`","ip_address":"10.1.0.9","phys_address":"02:00:00:00:00:09","static":true}`,
				"config/vpp/v2/teib/"+name+"/peer/10.1.0.7", `{"interface":"`+name+`","peer_addr":"10.1.0.7","next_hop_addr":"10.9.0.7"}`)
		}
		return all
	}
	memory := notebook{}
	a := startAgentWith(t, vpp.Socket, nil, memory)
	awaitReady(t, a)
	a.want(true, values("lo1", "lo2", "lo3")...)
	a.stop()

	hand := vpp.Dial()
	details, err := conn.Dump[vppif.SwInterfaceDetails](t.Context(), hand, &vppif.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)})
	if err != nil {
		t.Fatal(err)
	}
	deleted := 0
	for _, d := range details {
		if strings.Contains(d.Tag, "lo1") || strings.Contains(d.Tag, "lo2") {
			deleted++
			vpp.Ask(hand, &vppif.DeleteLoopback{SwIfIndex: d.SwIfIndex}, &vppif.DeleteLoopbackReply{})
		}
	}

	if deleted != 2 {
		t.Fatalf("%d interfaces deleted, want 2 of %+v", deleted, details)
	}

	again := startAgentWith(t, vpp.Socket, nil, memory)
	awaitReady(t, again)
	all := values("lo1", "lo3")
	if _, err := again.declare(true, all...); vpp.Revive() || err != nil {
		t.Fatalf("VPP has died, or it fails: %v", err)
	}
	for i := 0; i < len(all); i += 2 {
		again.expectState(all[i], scheduler.Configured)
	}
	for _, page := range []string{"show ip neighbors", "show teib"} {
		if n := strings.Count(vpp.Show(page), "10.1.0."); n != 2 {
			t.Errorf("%d entries are left, want 2:\n%s", n, vpp.Show(page))
		}
	}
}
