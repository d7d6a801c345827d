package vpp_test

import (
	"fmt"
	"slices"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

const (
	polling   = interface_types.RX_MODE_API_POLLING
	interrupt = interface_types.RX_MODE_API_INTERRUPT
	adaptive  = interface_types.RX_MODE_API_ADAPTIVE
)

// TestHowInterfacesReceive has queues of a TAP polled by a thread of their own, as long as its
// link is up.
func TestHowInterfacesReceive(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			vpp := simulated.StartWith(t, vppsim.Options{Release: release, Workers: 2})
			if vpp.Sim == nil {
				t.Skip("it needs a VPP with two workers: try it on the simulated one")
			}
			howInterfacesReceive(t, vpp)
		})
	}
}

func howInterfacesReceive(t *testing.T, vpp *simulated.VPP) {
	const key, base = "config/vpp/v2/interfaces/tap1", "vpp/interface/tap1/"
	declared := func(enabled, rest string) string {
		return `{"name":"tap1","type":"TAP","enabled":` + enabled + `,"tap":{"version":2}` + rest + `}`
	}
	const rx = `,"rx_modes":[{"default_mode":true,"mode":"POLLING"}],"rx_placements":[{"queue":0,"worker":1}]`
	c := vpp.Dial()
	receives := func(thread uint32, mode interface_types.RxMode) {
		t.Helper()
		var got []vppif.SwInterfaceRxPlacementDetails
		until(t, func() bool {
			got, _ = conn.Dump[vppif.SwInterfaceRxPlacementDetails](t.Context(), c, &vppif.SwInterfaceRxPlacementDump{SwIfIndex: 1})
			return slices.Equal(got, []vppif.SwInterfaceRxPlacementDetails{{SwIfIndex: 1, WorkerID: thread, Mode: mode}})
		}, func() string { return fmt.Sprintf("its queues are %+v", got) })
	}

	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, key, declared("false", rx))
	a.expectState(base+"rx-modes", kvscheduler.ValueState_PENDING)
	a.expectState(base+"rx-placement/queue/0", kvscheduler.ValueState_PENDING)
	receives(0, interrupt)
	a.want(true, key, declared("true", rx))
	receives(2, polling)
	a.awaitState(base+"rx-modes", kvscheduler.ValueState_CONFIGURED)

	a.want(true, key, declared("true", `,"rx_modes":[{"mode":"ADAPTIVE"}],"rx_placements":[{"queue":0,"main_thread":true}]`))
	receives(0, adaptive)
	a.want(true, key, declared("true", ""))
	receives(0, interrupt)

	a.want(true, key, declared("true", rx))
	receives(2, polling)
	a.stop()
	vpp.Sim.Counts()
	again := startAgent(t, vpp.Socket)
	awaitReady(t, again)
	again.want(true, key, declared("true", rx))
	again.awaitState(base+"rx-modes", kvscheduler.ValueState_CONFIGURED)
	expectOnlyReads(t, vpp)

	for _, by := range []*vppif.SwInterfaceSetRxMode{{SwIfIndex: 1, Mode: interrupt}, {SwIfIndex: 1, Mode: adaptive, QueueIDValid: true}} {
		vpp.Ask(c, by, &vppif.SwInterfaceSetRxModeReply{})
		again.want(true, key, declared("true", rx))
		receives(2, polling)
	}
	if err := vpp.Sim.Restart(); err != nil {
		t.Fatal(err)
	}
	c = vpp.Dial()
	receives(2, polling)
}

// TestQueuesThatAreNotThere: what VPP refuses of queues leaves the interface alone.
func TestQueuesThatAreNotThere(t *testing.T) {
	vpp := simulated.Start(t, "")
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	const key, base = "config/vpp/v2/interfaces/tap1", "vpp/interface/tap1/"
	_, err := a.declare(false, key, `{"name":"tap1","type":"TAP","enabled":true,"tap":{"version":2},"rx_modes":[{"queue":7,"mode":"POLLING"}],"rx_placements":[{"queue":0,"worker":3}]}`)
	a.awaitState(base+"rx-modes", kvscheduler.ValueState_RETRYING)
	a.awaitState(base+"rx-placement/queue/0", kvscheduler.ValueState_RETRYING)
	a.expectState(key, kvscheduler.ValueState_CONFIGURED)
	awaits(t, vpp, "show interface", " tap1 up")
	_ = err // the link may come up after what was declared is done
}
