package vpp_test

import (
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/scheduler"
)

// TestMirrorOfBridgedPackets has an interface leave its bridge domain and come back. VPP forgets
// to mirror then, although it lists the mirror, so the mirror is ended and made again.
func TestMirrorOfBridgedPackets(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		const (
			mirror = "config/vpp/v2/span/loop1/to/loop2"
			set    = "sw_interface_span_enable_disable"
			in     = `{"name":"bd1","interfaces":[{"name":"loop1"}]}`
		)
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		a.want(true, loopKey, loop, secondKey, loop2, mirror, `{"interface_from":"loop1","interface_to":"loop2","direction":"BOTH","is_l2":true}`)
		a.expectState(mirror, scheduler.Pending)
		vpp.Counts()
		a.want(false, bridgeKey, in)
		a.expectState(mirror, scheduler.Configured)
		a.want(false, bridgeKey, `{"name":"bd1"}`)
		a.expectState(mirror, scheduler.Pending)
		a.want(false, bridgeKey, in)
		a.expectState(mirror, scheduler.Configured)
		if n := vpp.Counts(); n[set] != 3 {
			t.Errorf("VPP was asked %v; expected to make the mirror, end it and make it", n)
		}
		a.resyncsInSync(vpp)
		a.want(false, bridgeKey, `{"name":"bd1"}`, "config/vpp/l2/v2/xconnect/loop1", `{"receive_interface":"loop1","transmit_interface":"loop2"}`)
		a.awaitState(mirror, scheduler.Configured)
		a.want(false, mirror, `{"interface_from":"loop1","interface_to":"loop2","direction":"TX","is_l2":true}`)
		a.unwant("config/vpp/l2/v2/xconnect/loop1")
		a.expectState(mirror, scheduler.Configured) // packets that it sends need no membership
	})
}

// TestMirrorOfSentPackets has an interface with two mirrors of sent packets leave its bridge domain
// and a cross-connect. VPP forgets to mirror then, although it lists the mirrors, so they are made
// anew.
func TestMirrorOfSentPackets(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		const in, connected = `{"name":"bd1","interfaces":[{"name":"loop1"}]}`, "config/vpp/l2/v2/xconnect/loop1"
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		c := vpp.Dial()
		mirrors := func(when string, want bool) {
			t.Helper()
			states, err := a.states.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			text := vpp.Command(c, "show interface features "+states["loop1"].GetInternalName())
			if strings.Contains(text, "span-l2-output") != want {
				t.Errorf("%s: expected to mirror %t:\n%s", when, want, text)
			}
		}
		a.want(true, loopKey, loop, secondKey, loop2, interfacesPrefix+"loop3", `{"name":"loop3","type":"SOFTWARE_LOOPBACK"}`, bridgeKey, in)
		mirrors("without a mirror", false)
		for _, to := range []string{"loop2", "loop3"} {
			a.want(false, "config/vpp/v2/span/loop1/to/"+to, `{"interface_from":"loop1","interface_to":"`+to+`","direction":"TX","is_l2":true}`)
		}
		mirrors("in a bridge domain", true)
		a.want(false, bridgeKey, `{"name":"bd1"}`)
		mirrors("it has left the bridge domain", true)
		a.want(false, bridgeKey, in)
		mirrors("it has come back", true)
		a.want(false, bridgeKey, `{"name":"bd1"}`, connected, `{"receive_interface":"loop1","transmit_interface":"loop2"}`)
		a.unwant(connected)
		mirrors("it has left the cross-connect", true)
		a.resyncsInSync(vpp)
		a.unwant("config/vpp/v2/span/loop1/to/loop2", "config/vpp/v2/span/loop1/to/loop3")
		mirrors("its mirrors are gone", false)
	})
}
