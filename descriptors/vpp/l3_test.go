package vpp_test

import (
	"slices"
	"strings"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/scheduler"
)

// TestServicesOfLayer3 has a virtual router, a DHCP proxy, a mirror and the age of
// neighbours come before what they need, stop and start, survive a restart of VPP, and go.
func TestServicesOfLayer3(t *testing.T) { onEachVPP(t, servicesOfLayer3) }

func servicesOfLayer3(t *testing.T, vpp *simulated.VPP) {
	const configured, pending = scheduler.Configured, scheduler.Pending
	const other = "config/vpp/v2/interfaces/loop2"
	router := func(enabled string) []string {
		return []string{"config/vpp/v2/vrrp/loop1/vrid/7", `{"interface":"loop1","vr_id":7,"priority":255,"interval":1000,"ip_addresses":["10.1.0.1"],"enabled":` + enabled + `}`}
	}
	services := append(router("true"),
		"config/vpp/v2/dhcp-proxy/IPv4/rx-vrf/0", `{"source_ip_address":"10.1.0.1","servers":[{"vrf_id":5,"ip_address":"10.8.0.1"}]}`,
		"config/vpp/v2/span/loop1/to/loop2", `{"interface_from":"loop1","interface_to":"loop2","direction":"BOTH"}`,
	)
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(false, append(services, "config/vpp/v2/ipscanneigh-global", `{"mode":"IPV4"}`)...)
	for i := 0; i < len(services); i += 2 {
		a.expectState(services[i], pending)
	}
	a.expectState("config/vpp/v2/ipscanneigh-global", configured)

	a.want(false,
		loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true,"ip_addresses":["10.1.0.1/24"]}`,
		other, `{"name":"loop2","type":"SOFTWARE_LOOPBACK"}`,
		"config/vpp/v2/vrf-table/id/5/protocol/IPV4", `{"id":5}`)
	stands := func() {
		t.Helper()
		awaits(t, vpp, "show vrrp vr", "vr 7 priority 255 started true 10.1.0.1")
		awaits(t, vpp, "show dhcp proxy", "ipv4-VRF:0 src 10.1.0.1 5/10.8.0.1")
		awaits(t, vpp, "show interface span", "RX_TX l2 false")
		awaits(t, vpp, "show ip neighbor-config", "ip4 limit 50000 age 240")
	}
	stands()
	for i := 0; i < len(services); i += 2 {
		a.expectState(services[i], configured)
	}
	a.want(false, router("false")...)
	awaits(t, vpp, "show vrrp vr", "started false")
	a.want(false, router("true")...)
	if err := vpp.Restart(); err != nil {
		t.Fatal(err)
	}
	stands()

	a.unwant(other, loopKey)
	a.expectState(services[0], pending)
	a.expectState(services[4], pending)
	a.want(true)
	for _, page := range []string{"show vrrp vr", "show dhcp proxy", "show interface span"} {
		if left := vpp.Show(page); left != "" {
			t.Errorf("%s: left behind:\n%s", page, left)
		}
	}
}

// TestDynamicNeighbourOutlivesItsLink has somebody else set an interface down, for good and
// for a moment: VPP lets a neighbour go that is not static, and it comes back.
func TestDynamicNeighbourOutlivesItsLink(t *testing.T) { onEachVPP(t, dynamicNeighbourOutlivesItsLink) }

func dynamicNeighbourOutlivesItsLink(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	values := []string{
		loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true}`,
		"config/vpp/v2/arp/loop1/10.1.0.7", `{"interface":"loop1","ip_address":"10.1.0.7","phys_address":"02:00:00:00:00:07"}`,
	}
	const neighbour = "loop0 10.1.0.7 02:00:00:00:00:07 static false"
	a.want(true, values...)
	other := vpp.Dial()
	for _, restarted := range []bool{false, true} {
		if restarted {
			a.stop()
			a = startAgent(t, vpp.Socket)
			awaitReady(t, a)
			a.want(true, values...)
		}
		awaits(t, vpp, "show ip neighbors", neighbour)
		for _, flags := range [][]interface_types.IfStatusFlags{{0}, {1}, {0, 1}} {
			for _, f := range flags {
				vpp.Ask(other, &vppif.SwInterfaceSetFlags{SwIfIndex: 1, Flags: f}, &vppif.SwInterfaceSetFlagsReply{})
			}
			awaits(t, vpp, "show ip neighbors", neighbour)
		}
	}
}

// TestAllocationChangesMeanwhile has the address of an allocation be another one when the agent is
// started again: no route to the old network is left, nor one that is not declared any more.
func TestAllocationChangesMeanwhile(t *testing.T) { onEachVPP(t, allocationChangesMeanwhile) }

func allocationChangesMeanwhile(t *testing.T, vpp *simulated.VPP) {
	notes := notebook{}
	life := func(address string, route bool) {
		t.Helper()
		declared := []string{
			"config/netalloc/v1/ip/network/net1/interface/lo1", `{"network_name":"net1","interface_name":"lo1","address":"` + address + `"}`,
			"config/vpp/v2/interfaces/lo1", `{"name":"lo1","type":"SOFTWARE_LOOPBACK","enabled":true,"ip_addresses":["10.9.0.1/24"]}`,
		}
		if route {
			declared = append(declared, "config/vpp/v2/route/if/lo1/vrf/0/dst/alloc:net1/lo1/gw/10.9.0.2",
				`{"dst_network":"alloc:net1/lo1","next_hop_addr":"10.9.0.2","outgoing_interface":"lo1"}`)
		}
		a := startAgentWith(t, vpp.Socket, nil, notes)
		defer a.stop()
		awaitReady(t, a)
		a.want(true, declared...)
	}
	has := func(want ...string) {
		t.Helper()
		page := strings.Join(strings.Fields(vpp.Show("show ip fib")), " ")
		for _, network := range []string{"10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16"} {
			if got := strings.Contains(page, network+" via 10.9.0.2"); got != slices.Contains(want, network) {
				t.Errorf("%s: %t, want just %v", network, got, want)
			}
		}
	}
	life("10.1.0.1/16", true)
	has("10.1.0.0/16")
	life("10.2.0.1/16", true)
	has("10.2.0.0/16")
	life("10.3.0.1/16", false)
	has()
}
