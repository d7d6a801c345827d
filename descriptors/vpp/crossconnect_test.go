package vpp_test

import (
	"net/netip"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/interface_types"
	vppl3xc "go.fd.io/govpp/binapi/l3xc"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/vppwire"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
)

// TestCrossConnectForwards changes the path of a cross-connect, and declares one where somebody else
// has made another: VPP forwards by the declared path, and not only lists it.
func TestCrossConnectForwards(t *testing.T) { onEachVPP(t, crossConnectForwards) }

func crossConnectForwards(t *testing.T, vpp *simulated.VPP) {
	for protocol, hops := range map[l3.L3XConnect_Protocol][]string{
		l3.L3XConnect_IPV4: {"10.1.0.3", "10.1.0.4", "10.1.0.5"},
		l3.L3XConnect_IPV6: {"fd01::3", "fd01::4", "fd01::5"},
	} {
		t.Run(protocol.String(), func(t *testing.T) {
			key := "config/vpp/v2/l3xconnect/loop1/protocol/" + protocol.String()
			value := func(next string) string {
				return `{"interface":"loop1","protocol":"` + protocol.String() + `","paths":[{"outgoing_interface":"loop2","next_hop_addr":"` + next + `"}]}`
			}
			a := startAgent(t, vpp.Socket)
			awaitReady(t, a)
			c := vpp.Dial()
			a.want(true, loopKey, loop, secondKey, loop2)
			states, err := a.states.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			in, out := states["loop1"].GetIfIndex(), states["loop2"].GetIfIndex()
			forwards := func(when, next string) {
				t.Helper()
				text := vpp.Command(c, "show l3xc")
				if by := forwarding(text); !strings.Contains(by, next) || strings.Count(by, "via ") != 1 {
					t.Errorf("%s: VPP forwards by %q; expected %s:\n%s", when, by, next, text)
				}
			}

			x := vppl3xc.L3xc{SwIfIndex: interface_types.InterfaceIndex(in), IsIP6: protocol == l3.L3XConnect_IPV6, Paths: []fib_types.FibPath{{SwIfIndex: out, Weight: 1}}}
			x.Paths[0].Nh.Address = vppwire.Address(netip.MustParseAddr(hops[0])).Un
			if x.IsIP6 {
				x.Paths[0].Proto = fib_types.FIB_API_PATH_NH_PROTO_IP6
			}
			vpp.Ask(c, &vppl3xc.L3xcUpdate{L3xc: x}, &vppl3xc.L3xcUpdateReply{})
			forwards("made by somebody else", hops[0])
			a.want(false, key, value(hops[1]))
			a.expectState(key, scheduler.Configured)
			forwards("declared", hops[1])
			a.want(false, key, value(hops[2]))
			forwards("changed", hops[2])
			a.resyncsInSync(vpp)
			a.unwant(key)
			if left := vpp.Command(c, "show l3xc"); strings.Contains(left, "loop0") {
				t.Errorf("left behind:\n%s", left)
			}
		})
	}
}

// forwarding returns the part of VPP's page of cross-connects that says how packets are forwarded,
// below the paths that VPP lists.
func forwarding(page string) string {
	_, below, _ := strings.Cut(page, "\n  [@")
	return below
}
