package vpp_test

import (
	"testing"

	"github.com/keyplane/keyplane/proto/ligato/kvscheduler"
)

// TestLinkStateGoesWithTheInterface: of an interface that is deleted nothing is noticed any more.
func TestLinkStateGoesWithTheInterface(t *testing.T) {
	_, socket := startSim(t)
	a := startAgent(t, socket)
	awaitReady(t, a)
	const key, state = "config/vpp/v2/interfaces/if1", "vpp/interface/if1/link-state/"
	for _, v := range []string{
		`{"name":"if1","type":"SOFTWARE_LOOPBACK","enabled":true}`, `{"name":"if1","type":"SOFTWARE_LOOPBACK","enabled":true}`,
		`{"name":"if1","type":"GTPU_TUNNEL","enabled":true,"gtpu":{"src_addr":"10.0.0.1","dst_addr":"10.0.0.2","teid":7}}`,
	} {
		a.want(false, key, v)
		a.awaitState(state+"UP", kvscheduler.ValueState_OBTAINED)
		a.unwant(key)
		for _, how := range []string{"UP", "DOWN"} {
			until(t, func() bool { _, there := a.sched.Status(state + how); return !there }, func() string { return how + " is still noticed" })
		}
	}
}
