package vpp_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/scheduler"
)

const (
	nic    = "GigabitEthernet0/8/0"
	nicKey = "config/vpp/v2/interfaces/" + nic
	nicUp  = `{"name":"` + nic + `","type":"DPDK","enabled":true,"ip_addresses":["10.1.0.1/24"]}`
)

// TestHardwareIsWaitedFor has VPP come with hardware only after it was declared.
func TestHardwareIsWaitedFor(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "api.sock")
	start := func(hardware ...string) *vppsim.Sim {
		sim, err := vppsim.New(vppsim.Options{Socket: socket, Hardware: hardware})
		if err == nil {
			err = sim.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sim.Kill)
		return sim
	}
	sim := start()
	a := startAgent(t, socket)
	awaitReady(t, a)
	a.want(true, nicKey, nicUp)
	a.expectState(nicKey, scheduler.Pending)
	if status, _ := a.sched.Status(nicKey); !slices.Equal(status.Details, []string{"dpdk-interface-exists"}) {
		t.Errorf("it waits for %q", status.Details)
	}
	sim.Kill()
	sim = start("other", nic)
	awaits(t, sim, "show interface", "2 "+nic+" "+nic+" up 0 10.1.0.1/24")
	a.awaitState(nicKey, scheduler.Configured)
	a.awaitState("config/vpp/v2/interfaces/other", scheduler.Obtained)
}

// TestHardwareStays: what is not declared any more is taken down, and can be declared again;
// changes of its link make no difference.
func TestHardwareStays(t *testing.T) {
	vpp := simulated.StartWith(t, vppsim.Options{Hardware: []string{nic}})
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	for range 2 {
		a.want(false, nicKey, nicUp)
		awaits(t, vpp, "show interface", nic+" "+nic+" up 0 10.1.0.1/24")
		a.unwant(nicKey)
		awaits(t, vpp, "show interface", "1 "+nic+" down 0")
	}

	// Nor does the MTU stay that was declared for it.
	c := vpp.Dial()
	mtu := func() uint32 {
		return listed[vppif.SwInterfaceDetails](t, c, &vppif.SwInterfaceDump{SwIfIndex: 1})[0].Mtu[0]
	}
	before := mtu()
	a.want(false, nicKey, strings.Replace(nicUp, "{", `{"mtu":1400,`, 1))
	a.awaitApplied()
	if got := mtu(); got != 1400 || before == 1400 {
		t.Errorf("the declared MTU is %d, and it was %d before", got, before)
	}
	a.unwant(nicKey)
	a.awaitApplied()
	if got := mtu(); got != before {
		t.Errorf("after the deletion the MTU is %d, want %d as before", got, before)
	}

	a.want(false, nicKey, nicUp)
	a.awaitState("vpp/interface/"+nic+"/link-state/UP", scheduler.Obtained)
	vpp.Counts()
	flips := 0
	for ; flips < 6; flips++ {
		flags, state := interface_types.IfStatusFlags(0), "DOWN"
		if flips%2 == 1 {
			flags, state = interface_types.IF_STATUS_API_FLAG_ADMIN_UP, "UP"
		}
		vpp.Ask(c, &vppif.SwInterfaceSetFlags{SwIfIndex: 1, Flags: flags}, &vppif.SwInterfaceSetFlagsReply{})
		a.awaitState("vpp/interface/"+nic+"/link-state/"+state, scheduler.Obtained)
	}
	if n := vpp.Counts()["sw_interface_set_flags"]; n != flips {
		t.Errorf("%d times its state was set, want the %d times that the test did", n, flips)
	}
}
