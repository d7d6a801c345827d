package vpp_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/scheduler"
)

// TestValueThatVPPDoesNotSurvive has VPP die of each MTU, and be started again each time:
// all else is restored, and the one value rests in the end.
func TestValueThatVPPDoesNotSurvive(t *testing.T) {
	const configured, failed = scheduler.Configured, scheduler.Failed
	sim, socket := startSim(t)
	sim.Fail("sw_interface_set_mtu", vppsim.Fault{Die: true, Respawn: true})
	a := startAgent(t, socket)
	awaitReady(t, a)
	others := []string{
		"config/vpp/v2/interfaces/loop2", `{"name":"loop2","type":"SOFTWARE_LOOPBACK","enabled":true,"ip_addresses":["10.1.0.1/24"]}`,
		"config/vpp/v2/route/if/loop2/vrf/0/dst/10.2.0.0/16/gw/10.1.0.2", `{"dst_network":"10.2.0.0/16","next_hop_addr":"10.1.0.2","outgoing_interface":"loop2"}`,
	}
	_, err := a.declare(false, append(others, loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true,"mtu":1400}`)...)
	if !errors.Is(err, conn.ErrCut) {
		t.Errorf("VPP died, and the transaction says %v", err)
	}

	a.awaitState(loopKey, failed)
	if s, _ := a.sched.Status(loopKey); !errors.Is(s.Err, vpp.ErrQuarantined) {
		t.Errorf("it is %s: %v", s.State, s.Err)
	}
	if deaths := sim.Deaths(); deaths != 3 {
		t.Errorf("VPP died %d times", deaths)
	}
	a.awaitState(others[0], configured)
	a.awaitState(others[2], configured)

	if err := sim.Restart(); err != nil {
		t.Fatal(err)
	}
	awaits(t, sim, "show ip fib", "10.2.0.0/16 via 10.1.0.2 loop0 weight 1")
	a.awaitState(loopKey, failed)
	a.want(false, loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true}`)
	a.awaitState(loopKey, configured)
	if deaths := sim.Deaths(); deaths != 3 {
		t.Errorf("VPP died %d times in the end", deaths)
	}
}

// TestReadThatVPPDoesNotSurvive has VPP die whenever it lists the policies of ABF, and be started again each time. After
// the third death all else is read back and applied, and what cannot be read says why.
func TestReadThatVPPDoesNotSurvive(t *testing.T) {
	sim, socket := startSim(t)
	sim.Fail("abf_policy_dump", vppsim.Fault{Die: true, Respawn: true})
	a := startAgent(t, socket)
	const listKey, policyKey = "config/vpp/acls/v2/acl/all", "config/vpp/abfs/v2/abf/1"
	_, _ = a.declare(false,
		loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true,"ip_addresses":["10.1.0.1/24"]}`,
		"config/vpp/v2/route/if/loop1/vrf/0/dst/10.2.0.0/16/gw/10.1.0.2", `{"dst_network":"10.2.0.0/16","next_hop_addr":"10.1.0.2","outgoing_interface":"loop1"}`,
		listKey, `{"name":"all","rules":[{"action":"PERMIT","ip_rule":{"ip":{"destination_network":"10.9.0.0/16"}}}]}`,
		policyKey, `{"index":1,"acl_name":"all","attached_interfaces":[{"input_interface":"loop1"}],"forwarding_paths":[{"next_hop_ip":"10.1.0.2","interface_name":"loop1"}]}`,
	)
	a.awaitState(loopKey, scheduler.Configured)
	a.awaitState(listKey, scheduler.Configured)
	awaits(t, sim, "show ip fib", "10.2.0.0/16 via 10.1.0.2 loop0 weight 1")
	until(t, func() bool { return len(a.sched.Unknown()) == 1 }, func() string { return fmt.Sprint("unknown are ", slices.Sorted(maps.Keys(a.sched.Unknown()))) })
	const want = "VPP died 3 times while it answered abf_policy_dump: it is not asked for that again until the agent starts again"
	until(t, func() bool { return strings.Contains(a.sched.Unknown()["vpp-abf"].Why, want) }, func() string { return fmt.Sprint(a.sched.Unknown()["vpp-abf"]) })
	record, err := a.sched.Commit(t.Context(), scheduler.Txn{Refresh: true})
	if err != nil || len(record.RefreshErrors) != 1 || !errors.Is(record.RefreshErrors[0], vpp.ErrDeadlyRead) {
		t.Errorf("a resync could not read %v: %v; expected %v", record.RefreshErrors, err, vpp.ErrDeadlyRead)
	}
	if deaths := sim.Deaths(); deaths != 3 {
		t.Errorf("VPP died %d times", deaths)
	}
	a.stop()
	sim.Fail("abf_policy_dump", vppsim.Fault{})
	again := startAgent(t, socket)
	awaitReady(t, again)
	if unknown := again.sched.Unknown(); len(unknown) > 0 {
		t.Errorf("with a better VPP and another agent, these are unknown: %v", unknown)
	}
}

// TestDeathsAreRemembered has the agent started again after each of VPP's three deaths; then somebody has the value tried, with a VPP that is better.
func TestDeathsAreRemembered(t *testing.T) {
	const configured, failed = scheduler.Configured, scheduler.Failed
	const bad = `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true,"mtu":1400}`
	sim := simulated.Start(t, "")
	notes := notebook{}
	sim.Sim.Fail("sw_interface_set_mtu", vppsim.Fault{Die: true})
	started := func() *agent {
		t.Helper()
		a := startAgentWith(t, sim.Socket, notes, nil)
		awaitReady(t, a)
		if _, err := a.declare(true, loopKey, bad); err == nil {
			t.Error("nothing failed")
		}
		return a
	}
	// dies waits until the agent has saved the death: one that is stopped before does not know of it.
	dies := func(deaths int) {
		t.Helper()
		saved := fmt.Sprintf(`{"deaths":%d,`, deaths)
		until(t, func() bool { return strings.HasPrefix(notes.read(loopKey), saved) }, func() string { return fmt.Sprint(sim.Sim.Deaths(), " deaths") })
	}
	restart := func() {
		t.Helper()
		if err := sim.Sim.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	a := started()
	dies(1)
	a.stop() // before it can kill VPP once more
	restart()
	a = started()
	dies(2)
	a.stop()
	restart()
	a = started()
	dies(3)
	restart()
	a.awaitState(loopKey, failed)
	a.stop()
	a = started()
	a.awaitState(loopKey, failed)
	if s, _ := a.sched.Status(loopKey); !errors.Is(s.Err, vpp.ErrQuarantined) || sim.Sim.Deaths() != 3 {
		t.Errorf("after %d deaths it is %s: %v", sim.Sim.Deaths(), s.State, s.Err)
	}

	sim.Sim.Fail("sw_interface_set_mtu", vppsim.Fault{})
	if _, err := a.sched.Retry(t.Context(), loopKey); err != nil {
		t.Error(err)
	}
	a.awaitState(loopKey, configured)
	if len(notes) > 0 {
		t.Errorf("still remembered: %q", notes)
	}
}

// A notebook is a memory.
type notebook map[string][]byte

// writing guards all notebooks: several descriptors share one.
var writing sync.Mutex

func (n notebook) Load() iter.Seq2[string, []byte] {
	writing.Lock()
	defer writing.Unlock()
	return maps.All(maps.Clone(n))
}

// read returns what is saved under a key.
func (n notebook) read(key string) string {
	writing.Lock()
	defer writing.Unlock()
	return string(n[key])
}

func (n notebook) Save(changes iter.Seq2[string, []byte]) error {
	writing.Lock()
	defer writing.Unlock()
	for key, data := range changes {
		if n[key] = data; data == nil {
			delete(n, key)
		}
	}
	return nil
}

// awaitState waits until the value under key has that state.
func (a *agent) awaitState(key string, want scheduler.State) {
	a.Helper()
	watch := a.sched.Watch(key)
	defer watch.Close()
	ctx, cancel := context.WithTimeout(a.Context(), testkit.Patience)
	defer cancel()
	for {
		if s, ok := a.sched.Status(key); ok && s.State == want {
			return
		}
		if _, err := watch.Next(ctx); err != nil {
			s, _ := a.sched.Status(key)
			a.Fatalf("%s is %+v, want %s: %v", key, s, want, err)
		}
	}
}
