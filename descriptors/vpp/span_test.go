package vpp_test

import (
	"strconv"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/span"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	watchKey = "config/vpp/l2/v2/bridge-domain/watch"
	watch    = `{"name":"watch","interfaces":[{"name":"loop2"},{"name":"loop3"}]}`
)

// TestMirrorOfBridgedPackets has a mirrored interface, and the one that gets the copies, leave their bridge domains and come
// back. VPP forgets to mirror then, although it lists the mirror, so the mirror is ended and made again.
func TestMirrorOfBridgedPackets(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		const (
			mirror = "config/vpp/v2/span/loop1/to/loop2"
			cross  = "config/vpp/l2/v2/xconnect/loop1"
			set    = "sw_interface_span_enable_disable"
			in     = `{"name":"bd1","interfaces":[{"name":"loop1"}]}`
		)
		for _, direction := range []string{"BOTH", "RX", "TX"} {
			a := startAgent(t, vpp.Socket)
			awaitReady(t, a)
			a.want(true, loopKey, loop, secondKey, loop2, mirror, `{"interface_from":"loop1","interface_to":"loop2","direction":"`+direction+`","is_l2":true}`)
			a.expectState(mirror, scheduler.Pending)
			vpp.Counts()
			a.want(false, bridgeKey, in)
			a.expectState(mirror, scheduler.Pending) // VPP would drop the copies, at best
			a.want(false, watchKey, watch)
			a.expectState(mirror, scheduler.Configured)
			a.want(false, bridgeKey, `{"name":"bd1"}`)
			a.expectState(mirror, scheduler.Pending)
			a.want(false, bridgeKey, in)
			a.expectState(mirror, scheduler.Configured)
			a.unwant(watchKey)
			a.expectState(mirror, scheduler.Pending)
			if n := vpp.Counts(); n[set] != 4 {
				t.Errorf("%s: VPP was asked %v; expected to make the mirror and end it, twice", direction, n)
			}
			a.want(false, watchKey, watch, bridgeKey, `{"name":"bd1"}`, cross, `{"receive_interface":"loop1","transmit_interface":"loop2"}`)
			a.awaitState(mirror, scheduler.Configured)
			a.resyncsInSync(vpp)
			a.unwant(cross)
			a.expectState(mirror, scheduler.Pending)
			a.want(true)
			a.stop()
		}
	})
}

// TestMirrorsOfOneInterface has an interface with two mirrors of sent packets leave its bridge domain, and come back. VPP
// looks for mirrors of an interface while it has one.
func TestMirrorsOfOneInterface(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		const in = `{"name":"bd1","interfaces":[{"name":"loop1"}]}`
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		c := vpp.Dial()
		mirrors := func(when string, want bool) {
			t.Helper()
			if text := a.features(vpp, c); strings.Contains(text, "span-l2-output") != want {
				t.Errorf("%s: expected to mirror %t:\n%s", when, want, text)
			}
		}
		a.want(true, loopKey, loop, secondKey, loop2, interfacesPrefix+"loop3", `{"name":"loop3","type":"SOFTWARE_LOOPBACK"}`, watchKey, watch, bridgeKey, in)
		mirrors("without a mirror", false)
		for _, to := range []string{"loop2", "loop3"} {
			a.want(false, "config/vpp/v2/span/loop1/to/"+to, `{"interface_from":"loop1","interface_to":"`+to+`","direction":"TX","is_l2":true}`)
		}
		mirrors("in a bridge domain", true)
		a.want(false, bridgeKey, `{"name":"bd1"}`)
		mirrors("it has left the bridge domain", false)
		a.want(false, bridgeKey, in)
		mirrors("it has come back", true)
		a.unwant("config/vpp/v2/span/loop1/to/loop2")
		mirrors("one of two is left", true)
		a.resyncsInSync(vpp)
		a.unwant("config/vpp/v2/span/loop1/to/loop3")
		mirrors("its mirrors are gone", false)
	})
}

// TestMirrorOfTheOtherLevel: VPP mirrors two interfaces at the device and in layer 2. One of these mirrors is declared; that of
// somebody else stays.
func TestMirrorOfTheOtherLevel(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		const mirror = "config/vpp/v2/span/loop1/to/loop2"
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		c := vpp.Dial()
		a.want(true, loopKey, loop, secondKey, loop2, bridgeKey, `{"name":"bd1","interfaces":[{"name":"loop1"},{"name":"loop2"}]}`)
		a.awaitApplied()
		set := func(isL2 bool, state span.SpanState) {
			vpp.Ask(c, &span.SwInterfaceSpanEnableDisable{
				SwIfIndexFrom: interface_types.InterfaceIndex(a.indexOf("loop1")), SwIfIndexTo: interface_types.InterfaceIndex(a.indexOf("loop2")),
				State: state, IsL2: isL2,
			}, &span.SwInterfaceSpanEnableDisableReply{})
		}
		for _, ours := range []bool{true, false} {
			set(!ours, span.SPAN_STATE_API_RX)
			a.want(false, mirror, `{"interface_from":"loop1","interface_to":"loop2","direction":"TX","is_l2":`+strconv.FormatBool(ours)+`}`)
			a.awaitState(mirror, scheduler.Configured)
			a.resyncsInSync(vpp)
			for _, isL2 := range []bool{true, false} {
				all := listed[span.SwInterfaceSpanDetails](t, c, &span.SwInterfaceSpanDump{IsL2: isL2})
				want := span.SPAN_STATE_API_RX
				if isL2 == ours {
					want = span.SPAN_STATE_API_TX
				}
				if len(all) != 1 || all[0].State != want {
					t.Errorf("declared for layer 2 %t, VPP has of layer 2 %t: %v, want one with state %v", ours, isL2, all, want)
				}
			}
			a.unwant(mirror)
			set(!ours, span.SPAN_STATE_API_DISABLED)
		}
	})
}
