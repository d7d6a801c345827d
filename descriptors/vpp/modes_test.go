package vpp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	vppl2 "go.fd.io/govpp/binapi/l2"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
)

// TestReceiverIsDeletedByHand has somebody delete the receiving interface of a cross-connect. VPP then sets the transmitting
// one to layer 3, too, wherever it was: it comes back into its bridge domain, with its access lists.
func TestReceiverIsDeletedByHand(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		c := vpp.Dial()
		a.want(true, webKey, webList, hostsKey, hosts, loopKey, loop, secondKey, loop2, bridgeKey, `{"name":"bd1","interfaces":[{"name":"loop1"}]}`,
			"config/vpp/l2/v2/xconnect/loop2", `{"receive_interface":"loop2","transmit_interface":"loop1"}`)
		a.awaitApplied()
		want := vpp.Show("show bridge-domain")
		vpp.Ask(c, &vppif.DeleteLoopback{SwIfIndex: interface_types.InterfaceIndex(a.indexOf("loop2"))}, &vppif.DeleteLoopbackReply{})
		until(t, func() bool { return vpp.Show("show bridge-domain") == want }, func() string {
			return "VPP has\n" + vpp.Show("show bridge-domain") + "\nwant\n" + want
		})
		for _, feature := range []string{"l2-input-feat-arc", "l2-output-feat-arc", "l2-input-acl"} {
			if text := a.features(vpp, c); !strings.Contains(text, feature) {
				t.Errorf("%s is missing:\n%s", feature, text)
			}
		}
		a.resyncsInSync(vpp)
	})
}

// TestSteeringLeftOnAnIndex has somebody delete an interface whose frames are steered, and put another one, which gets the
// index, into a bridge domain. VPP lists the steering on the other one. Its end must not take that out of the bridge domain.
func TestSteeringLeftOnAnIndex(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		way := testkit.StartUnixProxy(t, vpp.Socket)
		a := startAgent(t, way.Addr)
		awaitReady(t, a)
		a.want(true, append(framesOf("loop1"), loopKey, loop)...)
		a.awaitApplied()
		index := interface_types.InterfaceIndex(a.indexOf("loop1"))
		way.Set(testkit.Drop) // the agent comes too late
		c := vpp.Dial()
		vpp.Ask(c, &vppif.DeleteLoopback{SwIfIndex: index}, &vppif.DeleteLoopbackReply{})
		other := vpp.Loopback(c, "")
		vpp.Ask(c, &vppl2.SwInterfaceSetL2Bridge{RxSwIfIndex: other, BdID: 7, Enable: true, Shg: 3}, &vppl2.SwInterfaceSetL2BridgeReply{})
		way.Set(testkit.Pass)
		steered := func() (names []string) {
			for what := range segmentsIn(t, vpp) {
				if name, is := strings.CutPrefix(what, "steering "); is {
					names = append(names, name)
				}
			}
			return names
		}
		until(t, func() bool { return slices.Equal(steered(), []string{"loop1"}) }, func() string {
			return fmt.Sprintf("VPP steers the frames of %q; the index %d has another interface: %t", steered(), index, other == index)
		})
		all, err := conn.Dump[vppl2.BridgeDomainDetails](t.Context(), c, &vppl2.BridgeDomainDump{BdID: 7, SwIfIndex: ^interface_types.InterfaceIndex(0)})
		if err != nil || len(all) != 1 || !slices.Equal(all[0].SwIfDetails, []vppl2.BridgeDomainSwIf{{SwIfIndex: other, Shg: 3}}) {
			t.Errorf("the bridge domain of the other interface is %+v, %v", all, err)
		}
		a.resyncsInSync(vpp)
	})
}
