package vpp_test

import (
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/scheduler"
)

// looseValues are spelled in ways, and have fields without effect, that the older agent accepts.
func looseValues() []string {
	const vtep = `"src_address":"10.1.0.1","dst_address":"10.1.0.2"`
	return []string{
		interfacesPrefix + "loop1", `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true,"mtu":65536,"ip_addresses":["10.1.0.1/24","fd01::1/64","10.2.0.1","fd02::1"]}`,
		interfacesPrefix + "loop2", `{"name":"loop2","type":"SOFTWARE_LOOPBACK","enabled":true}`,
		interfacesPrefix + "vxlan1", `{"name":"vxlan1","type":"VXLAN_TUNNEL","vxlan":{` + vtep + `,"vni":7,"multicast":"loop1"}}`,
		bridgeKey, `{"name":"bd1","forward":true,"interfaces":[{"name":"loop2"}],"arp_termination_table":[{"ip_address":"10.1.0.9/24","phys_address":"02:00:00:00:00:09"}]}`,
		"config/vpp/l2/v2/fib/bd1/mac/02:00:00:00:00:0a", `{"bridge_domain":"bd1","phys_address":"02:00:00:00:00:0a","action":"DROP","outgoing_interface":"loop2"}`,
		"config/vpp/v2/vrf-table/id/5/protocol/IPV4", `{"id":5}`,
		"config/vpp/v2/route/if/loop1/vrf/0/dst/10.20.0.0/16", `{"type":"DROP","dst_network":"10.20.0.0/16","outgoing_interface":"loop1"}`,
		"config/vpp/v2/route/if/loop1/vrf/0/dst/10.21.0.0/16/gw/10.1.0.9/24", `{"dst_network":"10.21.0.0/16","outgoing_interface":"loop1","next_hop_addr":"10.1.0.9/24","via_vrf_id":5}`,
		"config/vpp/v2/route/if/loop1/vrf/0/dst/10.22.0.0/16", `{"type":"INTER_VRF","dst_network":"10.22.0.0/16","outgoing_interface":"loop1","via_vrf_id":5}`,
		"config/vpp/v2/route/if/loop1/vrf/0/dst/10.23.0.0/16/gw/FD01:0::9", `{"dst_network":"10.23.0.0/16","outgoing_interface":"loop1","next_hop_addr":"FD01:0::9"}`,
		"config/vpp/v2/route/vrf/0/dst/10.24.0.0/16/gw/fd01::9", `{"dst_network":"10.24.0.0/16","next_hop_addr":"fd01::9"}`,
		"config/vpp/v2/arp/loop1/10.1.0.9/24", `{"interface":"loop1","ip_address":"10.1.0.9/24","phys_address":"02:00:00:00:00:09","static":true}`,
		"config/vpp/v2/arp/loop1/FD01:0::9", `{"interface":"loop1","ip_address":"FD01:0::9","phys_address":"02:00:00:00:00:09","static":true}`,
		"config/vpp/v2/l3xconnect/loop2/protocol/IPV4", `{"interface":"loop2","protocol":"IPV4","paths":[{"outgoing_interface":"loop1","next_hop_addr":"10.1.0.9/24"}]}`,
	}
}

// TestLooseValues applies them, and starts two more agents: the first has nothing to do, the second
// has none of them declared and removes all, though VPP shows most of them under other keys.
func TestLooseValues(t *testing.T) { onEachVPP(t, looseValuesStory) }

func looseValuesStory(t *testing.T, vpp *simulated.VPP) {
	all, applied := looseValues(), notebook{}
	a := startAgentWith(t, vpp.Socket, nil, applied)
	awaitReady(t, a)
	a.want(true, all...)
	for i := 0; i < len(all); i += 2 {
		a.expectState(all[i], scheduler.Configured)
	}
	a.stop()

	vpp.Counts()
	again := startAgentWith(t, vpp.Socket, nil, applied)
	awaitReady(t, again)
	if r := again.want(true, all...); r.Executed.Len() > 0 {
		t.Errorf("after a restart %d operations, the first %+v", r.Executed.Len(), r.Executed.At(0))
	}
	expectOnlyReads(t, vpp)
	again.stop()

	last := startAgentWith(t, vpp.Socket, nil, applied)
	awaitReady(t, last)
	last.want(true)
	for _, st := range last.sched.Statuses("config/vpp/") {
		if st.State != scheduler.Obtained && !strings.HasPrefix(st.Key, "config/vpp/v2/vrf-table/id/0/") {
			t.Errorf("%s is left behind: %v", st.Key, st.Actual)
		}
	}
	last.stop()
	if len(applied) > 0 {
		t.Errorf("still remembered: %v", applied)
	}
}
