package vpp_test

import (
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/scheduler"
)

// TestActiveTimerBecomesZero changes the active timer of recording to 0 after an interface was
// recorded with another one. VPP would die at the next packet, so it is not asked before it is
// started again.
func TestActiveTimerBecomesZero(t *testing.T) { onEachVPP(t, activeTimerBecomesZero) }

func activeTimerBecomesZero(t *testing.T, vpp *simulated.VPP) {
	const params, feature = keys.FlowprobeParams, "config/vpp/ipfix/v2/flowprobe-feature/loop1"
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	_, err := a.declare(true, loopKey, loop, params, `{"active_timer":15,"record_l3":true}`, feature, `{"interface":"loop1","ip4":true}`)
	st, known := a.sched.Status(params)
	testkit.Need(t, "a VPP with the plugin flowprobe", !known || st.State != scheduler.Unimplemented)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.declare(false, params, `{"record_l3":true}`)
	if err == nil || !strings.Contains(err.Error(), "active_timer must not be 0 until VPP is restarted") {
		t.Errorf("the transaction says %v", err)
	}
	a.expectState(params, scheduler.Retrying)
	a.expectState(feature, scheduler.Pending)
	if vpp.Revive() {
		t.Error("VPP has died")
	}
	a.want(false, params, `{"active_timer":20,"record_l3":true}`)
	a.expectState(feature, scheduler.Configured)

	// Another agent finds nothing recorded.
	a.want(true)
	a.stop()
	a = startAgent(t, vpp.Socket)
	awaitReady(t, a)
	if _, err := a.declare(true, loopKey, loop, params, `{"record_l3":true}`, feature, `{"interface":"loop1","ip4":true}`); err == nil {
		t.Error("the active timer became 0")
	}
	if vpp.Revive() {
		t.Error("VPP has died of another agent")
	}
	if err := vpp.Restart(); err != nil {
		t.Fatal(err)
	}
	a.awaitState(params, scheduler.Configured)
	a.awaitState(feature, scheduler.Configured)
}
