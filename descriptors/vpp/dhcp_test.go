package vpp_test

import (
	"net/netip"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// TestDHCP has an interface get its address by DHCP, in a VRF, and another borrow it: they
// come and go as the lease does, VPP is started anew, and the agent is.
func TestDHCP(t *testing.T) {
	onEachRelease(t, func(t *testing.T, sim *vppsim.Sim, socket string) {
		if sim.Release() == "22.02" {
			dhcpIsNotThere(t, sim, socket)
			return
		}
		addressesByDHCP(t, sim, socket)
	})
}

// A DHCP client that gets no lease is no difference, however often VPP is read back.
func TestDHCPWithoutLease(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		_, _ = a.declare(true, withDHCP()...) // VPP 22.02 has other messages for DHCP
		for range 2 {
			record, _ := a.sched.Commit(t.Context(), scheduler.Txn{Refresh: true})
			if done := done(record); len(done) > 0 {
				t.Errorf("a resync does %s", done)
			}
		}
		a.expectState("vpp/interface/loop1/has-IP-address", scheduler.Pending)
	})
}

const (
	clientKey   = "vpp/interface/dhcp-client/loop1"
	leaseKey    = "vpp/interface/dhcp-lease/loop1"
	borrowerKey = "vpp/interface/unnumbered/loop2"
)

func withDHCP() []string {
	return []string{
		loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true,"vrf":5,"set_dhcp_client":true,"phys_address":"02:00:00:00:00:01"}`,
		"config/vpp/v2/interfaces/loop2", `{"name":"loop2","type":"SOFTWARE_LOOPBACK","enabled":true,"unnumbered":{"interface_with_ip":"loop1"}}`,
		"config/vpp/v2/vrf-table/id/5/protocol/IPV4", `{"id":5}`,
	}
}

func dhcpIsNotThere(t *testing.T, sim *vppsim.Sim, socket string) {
	a := startAgent(t, socket)
	awaitReady(t, a)
	if _, err := a.declare(false, withDHCP()...); err == nil {
		t.Error("nothing is wrong")
	}
	a.expectState(loopKey, scheduler.Configured)
	a.expectState(clientKey, scheduler.Unimplemented)
	// Its VRF is not held up by what cannot be there.
	declared := withDHCP()
	a.want(true, append(declared[:2:2], declared[4:]...)...) // its VRF stands, so the client is not tried again
	a.expectState(clientKey, scheduler.Unimplemented)
	a.want(true, declared[:2]...)
	if tables := sim.Show("show ip table"); strings.Contains(tables, "ipv4-VRF:5") {
		t.Errorf("the VRF is left:\n%s", tables)
	}
}

func addressesByDHCP(t *testing.T, sim *vppsim.Sim, socket string) {
	const (
		configured = scheduler.Configured
		obtained   = scheduler.Obtained
	)
	give := func(address string) {
		t.Helper()
		if err := sim.Lease("loop1", netip.MustParsePrefix(address), netip.MustParseAddr("10.1.0.1")); err != nil {
			t.Fatal(err)
		}
	}
	a := startAgent(t, socket)
	awaitReady(t, a)
	a.want(true, withDHCP()...)
	a.expectState(clientKey, configured)
	a.expectState(borrowerKey, scheduler.Pending)

	give("10.1.0.9/24")
	a.awaitState(borrowerKey, configured)
	a.expectState("vpp/interface/loop1/address/from_dhcp/10.1.0.9/24", obtained)
	a.expectLease(`interface_name: "loop1" host_name: "loop1" host_phys_address: "02:00:00:00:00:01" host_ip_address: "10.1.0.9/24" router_ip_address: "10.1.0.1/24"`)
	awaits(t, sim, "show interface", "loop1 up 5 10.1.0.9/24", "loop2 up 5")

	give("10.1.0.10/24")
	a.awaitState("vpp/interface/loop1/address/from_dhcp/10.1.0.10/24", obtained)
	a.expectState(borrowerKey, configured)

	a.stop()
	sim.Counts()
	a = startAgent(t, socket)
	awaitReady(t, a)
	a.want(true, withDHCP()...)
	expectOnlyReads(t, sim)
	a.expectState(leaseKey, obtained)
	a.expectState(borrowerKey, configured)

	if err := sim.Restart(); err != nil {
		t.Fatal(err)
	}
	awaits(t, sim, "show dhcp client", "no address")
	a.awaitState(borrowerKey, scheduler.Pending)
	give("10.1.0.9/24")
	a.awaitState(borrowerKey, configured)

	watch := a.sched.Watch(leaseKey)
	defer watch.Close()
	watch.Take() // the present lease
	a.want(false, loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true}`)
	if gone, err := watch.Next(t.Context()); err != nil || gone[0].State != scheduler.Removed {
		t.Errorf("the lease is %v, %v, want it withdrawn", gone, err)
	}
	if left := sim.Show("show dhcp client"); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

func (a *agent) expectLease(text string) {
	a.Helper()
	var want interfaces.DHCPLease
	if err := prototext.Unmarshal([]byte(text), &want); err != nil {
		a.Fatal(err)
	}
	if s, ok := a.sched.Status(leaseKey); !ok || !proto.Equal(s.Actual, &want) {
		a.Errorf("the lease is %+v, want %v", s, &want)
	}
}

// TestAutoconf has an interface take IPv6 addresses, then default routes too, then nothing.
func TestAutoconf(t *testing.T) {
	onEachRelease(t, func(t *testing.T, sim *vppsim.Sim, socket string) {
		const plain, addresses, both = `{"name":"loop1","type":"SOFTWARE_LOOPBACK"}`,
			`{"name":"loop1","type":"SOFTWARE_LOOPBACK","ip6_nd":{"address_autoconfig":true}}`,
			`{"name":"loop1","type":"SOFTWARE_LOOPBACK","ip6_nd":{"address_autoconfig":true,"install_default_routes":true}}`
		a := startAgent(t, socket)
		awaitReady(t, a)
		for _, step := range []struct{ value, shows string }{
			{addresses, "loop0 autoconfig routes false\n"}, {both, "loop0 autoconfig routes true\n"}, {plain, ""}, {both, "loop0 autoconfig routes true\n"},
		} {
			a.want(false, loopKey, step.value)
			if got := sim.Show("show ip6 nd"); got != step.shows {
				t.Errorf("with %s VPP shows %q, want %q", step.value, got, step.shows)
			}
		}
		sim.Counts()
		a.want(true, loopKey, both)
		expectOnlyReads(t, sim)
		if err := sim.Restart(); err != nil {
			t.Fatal(err)
		}
		awaits(t, sim, "show ip6 nd", "loop0 autoconfig routes true")
		a.want(true)
		if left := sim.Show("show ip6 nd"); left != "" {
			t.Errorf("left behind: %s", left)
		}
	})
}
