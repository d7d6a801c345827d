package vpp_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
)

// TestFlowHashes changes and removes settings of the flow hash of tables, while the agent runs and
// while it does not. VPP reports none of them.
func TestFlowHashes(t *testing.T) { onEachVPP(t, flowHashesOfTables) }

func flowHashesOfTables(t *testing.T, vpp *simulated.VPP) {
	const fresh = "src dst sport dport proto flowlabel "
	hash := func(field string) string { return `,"flow_hash_settings":{"` + field + `":true}` }
	tables := func(zero, eight, six string) []string {
		return []string{
			"config/vpp/v2/vrf-table/id/0/protocol/IPV4", `{"id":0` + zero + `}`,
			"config/vpp/v2/vrf-table/id/8/protocol/IPV4", `{"id":8` + eight + `}`,
			"config/vpp/v2/vrf-table/id/8/protocol/IPV6", `{"id":8,"protocol":"IPV6"` + six + `}`,
		}
	}
	hands := vpp.Dial()
	have := func(when string, want ...string) {
		t.Helper()
		for i, command := range []string{"show ip fib table 0 summary", "show ip fib table 8 summary", "show ip6 fib table 8 summary"} {
			if text := vpp.Command(hands, command); !strings.Contains(text, "flow hash:["+want[i]+"]") {
				t.Errorf("%s: expected the hash of %s:\n%s", when, want[i], text)
			}
		}
	}
	known := memories{deaths: notebook{}, applied: notebook{}, settings: notebook{}}
	a := startAgentKnowing(t, vpp.Socket, known)
	again := func(values ...string) {
		t.Helper()
		a.stop()
		a = startAgentKnowing(t, vpp.Socket, known)
		awaitReady(t, a)
		a.want(true, values...)
		a.resyncsInSync(vpp)
	}
	awaitReady(t, a)
	a.want(true, tables(hash("use_src_ip"), hash("symmetric"), hash("use_dst_ip"))...)
	have("at first", "src ", "symmetric ", "dst ")
	a.resyncsInSync(vpp)
	a.want(false, tables(hash("use_dst_ip"), hash("reverse"), "")...)
	have("changed", "dst ", "reverse ", fresh)
	again(tables(hash("use_src_port"), hash("use_dst_port"), hash("use_protocol"))...)
	have("changed while the agent was down", "sport ", "dport ", "proto ")
	again(tables("", "", "")...)
	have("removed while the agent was down", fresh, fresh, fresh)

	a.want(false, tables(hash("use_src_ip"), hash("use_src_ip"), hash("use_src_ip"))...)
	again(tables("", "", "")[2:]...)
	have("table 0 is no longer declared", fresh, fresh, fresh)
	a.want(false, tables(hash("use_src_ip"), "", "")...)
	a.unwant(tables("", "", "")[0])
	have("table 0 is removed", fresh, fresh, fresh)
	left := maps.Collect(known.settings.Load())
	delete(left, "vpp/run") // which run of VPP it was
	if len(left) > 0 {
		t.Errorf("the agent remembers %q", left)
	}
}
