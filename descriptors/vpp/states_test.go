package vpp_test

import (
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// TestStates has interfaces that go up, come and go, and a VPP that goes.
func TestStates(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		a := startAgent(t, vpp.Socket)
		read := func() map[string]*interfaces.InterfaceState {
			t.Helper()
			states, err := a.states.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return states
		}
		const up, down = interfaces.InterfaceState_UP, interfaces.InterfaceState_DOWN
		loop := func(enabled string) {
			a.want(false, "config/vpp/v2/interfaces/loop1",
				`{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":`+enabled+`,"phys_address":"02:00:00:00:00:0a","ip_addresses":["10.1.0.1/24"]}`)
		}
		is := func(admin interfaces.InterfaceState_Status) *interfaces.InterfaceState {
			t.Helper()
			all := read()
			s := all["loop1"]
			if len(all) != 1 || s.GetName() != "loop1" || s.GetInternalName() != "loop0" || s.GetType() != interfaces.Interface_SOFTWARE_LOOPBACK ||
				s.GetPhysAddress() != "02:00:00:00:00:0a" || s.GetIfIndex() == 0 || s.GetLastChange() == 0 || s.GetAdminStatus() != admin || s.GetOperStatus() != admin {
				t.Errorf("states are %v", all)
			}
			if s.GetStatistics() == nil {
				t.Error("it has no counters")
			}
			return s
		}
		loop("true")
		<-a.states.Turned.C()
		first := is(up)
		if again := is(up); again.GetLastChange() != first.GetLastChange() {
			t.Errorf("it changed at %d, and then at %d", first.GetLastChange(), again.GetLastChange())
		}
		loop("false")
		is(down)
		if _, err := a.declare(true); err != nil {
			t.Fatal(err)
		}
		if all := read(); len(all) != 0 {
			t.Errorf("there are %v", all)
		}
		loop("true")
		vpp.Kill()
		until(t, func() bool { return len(read()) == 0 }, func() string { return "there are still states of a VPP that is gone" })
	})
}
