package vpp_test

import (
	"net/netip"
	"testing"

	"go.fd.io/govpp/binapi/ip_neighbor"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/vppwire"
)

// TestWhatVPPHasByItselfIsInNobodysWay has VPP know more than what is declared: the FIB
// entry of a BVI, a neighbour that it has learned. Interfaces go all the same; and the entry stays
// as long as the BVI, also for an agent that once had one of its own in that place.
func TestWhatVPPHasByItselfIsInNobodysWay(t *testing.T) {
	onEachVPP(t, whatVPPHasByItselfIsInNobodysWay)
}

func whatVPPHasByItselfIsInNobodysWay(t *testing.T, vpp *simulated.VPP) {
	const entry = "config/vpp/l2/v2/fib/bd1/mac/02:00:00:00:00:01"
	a := startAgentWith(t, vpp.Socket, nil, notebook{entry: {}})
	awaitReady(t, a)
	values := []string{
		loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true,"phys_address":"02:00:00:00:00:01"}`,
		bridgeKey, `{"name":"bd1","interfaces":[{"name":"loop1","bridged_virtual_interface":true}]}`,
	}
	a.want(true, values...)
	vpp.Ask(vpp.Dial(), &ip_neighbor.IPNeighborAddDel{IsAdd: true, Neighbor: ip_neighbor.IPNeighbor{
		SwIfIndex: 1, IPAddress: vppwire.Address(netip.MustParseAddr("10.1.0.7")),
	}}, &ip_neighbor.IPNeighborAddDelReply{})
	a.want(true, values...)
	awaits(t, vpp, "show l2fib", "bd1 02:00:00:00:00:01 loop0 static true bvi true")
	if _, known := a.sched.Status(entry); known {
		t.Error("the entry of the BVI is a value")
	}
	a.want(false, loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK"}`)
	a.want(true)
	awaits(t, vpp, "show interface", "addresses 0 local0 down 0")
	if left := vpp.Show("show bridge-domain"); left != "" {
		t.Errorf("left behind:\n%s", left)
	}
}
