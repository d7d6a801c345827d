package vpp_test

import (
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/scheduler"
)

// TestSubInterfaceComesUpWithItsParent has the parent disabled at first: VPP does not enable
// the sub-interface then. That is no error, also for an agent that is started anew.
func TestSubInterfaceComesUpWithItsParent(t *testing.T) {
	onEachVPP(t, subInterfaceComesUpWithItsParent)
}

func subInterfaceComesUpWithItsParent(t *testing.T, vpp *simulated.VPP) {
	const (
		configured = scheduler.Configured
		subKey     = "config/vpp/v2/interfaces/sub1"
		off        = `{"name":"loop1","type":"SOFTWARE_LOOPBACK"}`
		on         = `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true}`
		sub        = `{"name":"sub1","type":"SUB_INTERFACE","enabled":true,"sub":{"parent_name":"loop1","sub_id":7}}`
	)
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true, loopKey, off, subKey, sub)
	a.expectState(subKey, configured)
	awaits(t, vpp, "show interface", "loop0.7 sub1 down")
	a.want(false, loopKey, on)
	awaits(t, vpp, "show interface", "loop0.7 sub1 up")

	a.want(true)
	a.want(true, loopKey, off, subKey, sub)
	a.stop()
	vpp.Counts()
	again := startAgent(t, vpp.Socket)
	awaitReady(t, again)
	again.want(true, loopKey, off, subKey, sub)
	again.expectState(subKey, configured)
	expectOnlyReads(t, vpp)
	again.want(false, loopKey, on)
	awaits(t, vpp, "show interface", "loop0.7 sub1 up")
}
