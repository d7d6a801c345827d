package vpp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	polling   = interface_types.RX_MODE_API_POLLING
	interrupt = interface_types.RX_MODE_API_INTERRUPT
	adaptive  = interface_types.RX_MODE_API_ADAPTIVE
)

// TestHowInterfacesReceive has queues of a TAP polled by a thread of their own, as long as its
// link is up.
func TestHowInterfacesReceive(t *testing.T) {
	simulated.NeedTAPs(t)
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			howInterfacesReceive(t, simulated.StartWith(t, vppsim.Options{Release: release, Workers: 2}))
		})
	}
}

func howInterfacesReceive(t *testing.T, vpp *simulated.VPP) {
	const key, base = "config/vpp/v2/interfaces/tap1", "vpp/interface/tap1/"
	declared := func(enabled, rest string) string {
		return `{"name":"tap1","type":"TAP","enabled":` + enabled + `,"tap":{"version":2}` + rest + `}`
	}
	rx, thread := `,"rx_modes":[{"default_mode":true,"mode":"INTERRUPT"}],"rx_placements":[{"queue":0,"worker":1}]`, uint32(2)
	if vpp.Sim == nil { // a real one has no workers here
		rx, thread = strings.Replace(rx, `"worker":1`, `"main_thread":true`, 1), 0
	}
	c := vpp.Dial()
	receives := func(thread uint32, mode interface_types.RxMode) {
		t.Helper()
		var got []vppif.SwInterfaceRxPlacementDetails
		until(t, func() bool {
			got, _ = conn.Dump[vppif.SwInterfaceRxPlacementDetails](t.Context(), c, &vppif.SwInterfaceRxPlacementDump{SwIfIndex: 1})
			return slices.Equal(got, []vppif.SwInterfaceRxPlacementDetails{{SwIfIndex: 1, WorkerID: thread, Mode: mode}})
		}, func() string { return fmt.Sprintf("its queues are %+v, want thread %d, %s", got, thread, mode) })
	}

	vpp.Watch()
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, key, declared("true", rx))
	receives(thread, interrupt)
	a.awaitState(base+"rx-modes", scheduler.Configured)
	a.want(true, key, declared("false", rx))
	receives(thread, polling)
	a.awaitState(base+"rx-modes", scheduler.Pending)
	a.awaitState(base+"rx-placement/queue/0", scheduler.Pending)
	a.want(true, key, declared("true", rx))
	receives(thread, interrupt)

	a.want(true, key, declared("true", `,"rx_modes":[{"mode":"ADAPTIVE"}],"rx_placements":[{"queue":0,"main_thread":true}]`))
	receives(0, adaptive)
	a.want(true, key, declared("true", ""))
	receives(0, polling)

	a.want(true, key, declared("true", rx))
	receives(thread, interrupt)
	a.stop()
	vpp.Counts()
	again := startAgent(t, vpp.Socket)
	awaitReady(t, again)
	again.want(true, key, declared("true", rx))
	again.awaitState(base+"rx-modes", scheduler.Configured)
	expectOnlyReads(t, vpp)

	for _, by := range []*vppif.SwInterfaceSetRxMode{{SwIfIndex: 1, Mode: polling}, {SwIfIndex: 1, Mode: adaptive, QueueIDValid: true}} {
		vpp.Ask(c, by, &vppif.SwInterfaceSetRxModeReply{})
		again.want(true, key, declared("true", rx))
		receives(thread, interrupt)
	}
	if err := vpp.Restart(); err != nil {
		t.Fatal(err)
	}
	c = vpp.Dial()
	receives(thread, interrupt)
}

// TestNoWorkers: without workers the main thread stands in for the first.
func TestNoWorkers(t *testing.T) {
	simulated.NeedTAPs(t)
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			vpp := simulated.Start(t, release)
			vpp.Watch()
			a := startAgent(t, vpp.Socket)
			awaitReady(t, a)
			const key, base = "config/vpp/v2/interfaces/tap1", "vpp/interface/tap1/rx-placement/queue/0"
			const value = `{"name":"tap1","type":"TAP","enabled":true,"tap":{"version":2},"rx_placements":[{}]}`
			a.want(false, key, value)
			a.awaitState(base, scheduler.Configured)
			vpp.Counts()
			a.want(true, key, value)
			expectOnlyReads(t, vpp)
		})
	}
}

// TestQueuesThatAreNotThere: what VPP refuses of queues leaves the interface alone.
func TestQueuesThatAreNotThere(t *testing.T) {
	simulated.NeedTAPs(t)
	vpp := simulated.Start(t, "")
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	const key, base = "config/vpp/v2/interfaces/tap1", "vpp/interface/tap1/"
	_, err := a.declare(false, key, `{"name":"tap1","type":"TAP","enabled":true,"tap":{"version":2},"rx_modes":[{"queue":7,"mode":"POLLING"}],"rx_placements":[{"queue":0,"worker":3}]}`)
	a.awaitState(base+"rx-modes", scheduler.Retrying)
	a.awaitState(base+"rx-placement/queue/0", scheduler.Retrying)
	a.expectState(key, scheduler.Configured)
	awaits(t, vpp, "show interface", " tap1 up")
	_ = err // the link may come up after what was declared is done
}
