package iface

import (
	"testing"
	"time"

	"go.fd.io/govpp/api"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// VPP refuses the tag of an interface that a killed agent has created without one. All others are read
// nevertheless, and none of them is created again. When VPP takes the tag, it is adopted.
func TestRefusedTagKeepsNothingElseFromBeingRead(t *testing.T) {
	r := newRig(t)
	if r.vpp.Sim == nil {
		t.Skip("SKIPPED: only a simulated VPP refuses a tag when a test wants it")
	}
	loop1 := testkit.Parse[*interfaces.Interface](t, `name: "loop1" type: SOFTWARE_LOOPBACK`)
	loop2 := testkit.Parse[*interfaces.Interface](t, `name: "loop2" type: SOFTWARE_LOOPBACK`)
	r.declare(loop1, loop2)
	both := r.page()
	r.declare(loop1)
	r.vpp.Sim.Fail("sw_interface_tag_add_del", vppsim.Fault{Retval: int32(api.INVALID_ARGUMENT)})
	r.vpp.Sim.Fail("delete_loopback", vppsim.Fault{Retval: int32(api.INVALID_ARGUMENT)})
	value, err := r.sched.Value("config/vpp/v2/interfaces/loop2", loop2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.sched.Commit(t.Context(), scheduler.Txn{Changes: []scheduler.Change{value.Change()}}); err == nil {
		t.Fatal("VPP has tagged loop2") // it can neither be tagged nor deleted
	}
	r.stop()
	*r = *startRig(r.T, r.vpp, time.Millisecond)
	r.ready()
	r.vpp.Sim.Fail("sw_interface_tag_add_del", vppsim.Fault{})
	r.vpp.Sim.Fail("delete_loopback", vppsim.Fault{})
	r.declare(loop1, loop2)
	r.expect(both)
}

// A second interface with a tag of the agent is removed, and the one that the agent knows stays.
func TestSecondInterfaceOfATagIsRemoved(t *testing.T) {
	r := newRig(t)
	loop1 := testkit.Parse[*interfaces.Interface](t, `name: "loop1" type: SOFTWARE_LOOPBACK ip_addresses: "10.1.1.1/24"`)
	r.declare(loop1)
	alone := r.page()
	other := r.vpp.Dial()
	r.vpp.Loopback(other, "loop1")
	r.stop()
	*r = *startRig(r.T, r.vpp, time.Millisecond) // it knows neither of them
	r.declare(loop1)
	r.expect(alone)
	r.vpp.Loopback(other, "loop1")
	if err := r.sched.Refresh(); err != nil {
		t.Fatal(err)
	}
	r.expect(alone)
}
