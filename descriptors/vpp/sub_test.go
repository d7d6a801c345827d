package vpp_test

import (
	"strings"
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

// TestSubInterfaceOfSubInterface declares a sub-interface as the parent of another one. VPP would
// take the parent's parent, so it is not asked, until the parent is another interface.
func TestSubInterfaceOfSubInterface(t *testing.T) { onEachVPP(t, subInterfaceOfSubInterface) }

func subInterfaceOfSubInterface(t *testing.T, vpp *simulated.VPP) {
	const outer, inner = interfacesPrefix + "outer", interfacesPrefix + "inner"
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	_, err := a.declare(true, loopKey, loop,
		outer, `{"name":"outer","type":"SUB_INTERFACE","sub":{"parent_name":"loop1","sub_id":7}}`,
		inner, `{"name":"inner","type":"SUB_INTERFACE","sub":{"parent_name":"outer","sub_id":9}}`)
	if err == nil || !strings.Contains(err.Error(), `sub.parent_name is "outer", which is a sub-interface; expected an interface that is none`) {
		t.Errorf("the transaction says %v", err)
	}
	a.expectState(inner, scheduler.Failed)
	if n := requests(vpp, "create_vlan_subif"); n != 1 {
		t.Errorf("VPP is asked for %d sub-interfaces; expected 1", n)
	}
	a.resyncsInSync(vpp)
	a.want(false, outer, `{"name":"outer","type":"SOFTWARE_LOOPBACK"}`)
	a.expectState(inner, scheduler.Configured)
	a.resyncsInSync(vpp)
}
