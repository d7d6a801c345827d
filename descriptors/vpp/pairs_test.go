package vpp_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
)

// A configuration has keys and values by turns.
type configuration []string

// A changeable kind has configurations that may follow each other in any order.
type changeable struct {
	ground  configuration // the values that all of them need
	configs []configuration
	pages   []string // of the simulated VPP; together they show the whole state of the kind
}

func changeables() map[string]changeable {
	const cache = "config/vpp/dns/v1/dnscache"
	const exporter, params, feature = "config/vpp/ipfix/v2/ipfix", "config/vpp/ipfix/v2/flowprobe-params", "config/vpp/ipfix/v2/flowprobe-feature/"
	const redirect, host, exception = "config/vpp/v2/ipredirect/l3/", "config/vpp/v2/tohost/l3/", "config/vpp/v2/exception/reason/"
	const route = "config/vpp/v2/route/if/"
	const first, second, third = route + "loop1/vrf/0/dst/10.9.0.0/16/gw/10.1.0.2", route + "loop2/vrf/0/dst/10.9.0.0/16/gw/10.2.0.2", "config/vpp/v2/route/vrf/0/dst/10.9.0.0/16/gw/10.1.0.3"
	path := func(at, next, more string) string {
		return fmt.Sprintf(`{"dst_network":"10.9.0.0/16","outgoing_interface":%q,"next_hop_addr":%q%s}`, at, next, more)
	}
	loops := configuration{
		interfacesPrefix + "loop1", `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true,"ip_addresses":["10.1.0.1/24"]}`,
		interfacesPrefix + "loop2", `{"name":"loop2","type":"SOFTWARE_LOOPBACK","enabled":true,"ip_addresses":["10.2.0.1/24"]}`,
		"config/vpp/v2/vrf-table/id/5/protocol/IPV4", `{"id":5}`,
	}
	return map[string]changeable{
		"paths of a route": {
			ground: loops,
			configs: []configuration{
				{first, path("loop1", "10.1.0.2", "")},
				{first, path("loop1", "10.1.0.2", `,"weight":5`), second, path("loop2", "10.2.0.2", `,"weight":3`)},
				{first, path("loop1", "10.1.0.2", `,"weight":3`), second, path("loop2", "10.2.0.2", `,"weight":5`)},
				{second, path("loop2", "10.2.0.2", `,"preference":7`), third, path("", "10.1.0.3", "")},
				{first, path("loop1", "10.1.0.2", `,"preference":2`), second, path("loop2", "10.2.0.2", ""), third, path("", "10.1.0.3", `,"weight":9`)},
				{third, path("", "10.1.0.3", `,"type":"INTER_VRF","via_vrf_id":5,"weight":2`)},
				{third, path("", "10.1.0.3", `,"type":"INTER_VRF","via_vrf_id":5,"weight":4`)},
			},
			pages: []string{"show ip fib"},
		},
		"exporter of flows": {
			ground: loops,
			configs: []configuration{
				{exporter, `{"collector":{"address":"10.1.0.6"},"source_address":"10.1.0.1"}`},
				{exporter, `{"collector":{"address":"10.1.0.6","port":9995},"source_address":"10.1.0.1","vrf_id":5}`},
				{exporter, `{"collector":{"address":"10.1.0.7"},"source_address":"10.1.0.2","path_mtu":1450,"template_interval":60}`},
			},
			pages: []string{"show ipfix exporter"},
		},
		"redirected packets": {
			ground: loops,
			configs: []configuration{
				{redirect + "IPV4/tx/loop1", `{"l3_protocol":"IPV4","tx_interface":"loop1","next_hop":"10.1.0.9"}`},
				{redirect + "IPV4/tx/loop1", `{"l3_protocol":"IPV4","tx_interface":"loop1","next_hop":"10.1.0.8","rx_interface":"loop2"}`},
				{redirect + "IPV4/tx/loop2", `{"l3_protocol":"IPV4","tx_interface":"loop2"}`, redirect + "IPV6/tx/loop1", `{"l3_protocol":"IPV6","tx_interface":"loop1","next_hop":"fd01::9"}`},
				{redirect + "ALL/tx/loop2", `{"l3_protocol":"ALL","tx_interface":"loop2"}`},
				{redirect + "IPV4/tx/loop2", `{"l3_protocol":"IPV4","tx_interface":"loop2"}`, redirect + "IPV6/tx/loop2", `{"l3_protocol":"IPV6","tx_interface":"loop2"}`},
			},
			pages: []string{"show ip punt redirect"},
		},
		"sockets of programs": {
			configs: []configuration{
				{host + "IPV4/l4/UDP/port/9000", `{"l3_protocol":"IPV4","l4_protocol":"UDP","port":9000,"socket_path":"/tmp/a"}`},
				{host + "IPV4/l4/UDP/port/9000", `{"l3_protocol":"IPV4","l4_protocol":"UDP","port":9000,"socket_path":"/tmp/b"}`},
				{host + "ALL/l4/UDP/port/9000", `{"l3_protocol":"ALL","l4_protocol":"UDP","port":9000,"socket_path":"/tmp/a"}`},
				{
					host + "IPV4/l4/UDP/port/9000", `{"l3_protocol":"IPV4","l4_protocol":"UDP","port":9000,"socket_path":"/tmp/a"}`,
					host + "IPV6/l4/UDP/port/9000", `{"l3_protocol":"IPV6","l4_protocol":"UDP","port":9000,"socket_path":"/tmp/a"}`,
				},
				{exception + "ipsec4-no-such-tunnel", `{"reason":"ipsec4-no-such-tunnel","socket_path":"/tmp/a"}`},
				{
					exception + "ipsec4-no-such-tunnel", `{"reason":"ipsec4-no-such-tunnel","socket_path":"/tmp/b"}`,
					exception + "ipsec6-no-such-tunnel", `{"reason":"ipsec6-no-such-tunnel","socket_path":"/tmp/b"}`,
				},
			},
			pages: []string{"show punt"},
		},
		"recording of flows": {
			ground: loops,
			configs: []configuration{
				{params, `{"active_timer":10,"passive_timer":60,"record_l3":true}`, feature + "loop1", `{"interface":"loop1","ip4":true}`},
				{params, `{"active_timer":20,"record_l2":true,"record_l4":true}`, feature + "loop1", `{"interface":"loop1","ip4":true}`, feature + "loop2", `{"interface":"loop2","l2":true}`},
				{params, `{"active_timer":20,"record_l2":true,"record_l4":true}`, feature + "loop2", `{"interface":"loop2","ip6":true}`},
				{params, `{"active_timer":30,"record_l3":true}`, feature + "loop1", `{"interface":"loop1","ip6":true}`},
				{params, `{"active_timer":10,"passive_timer":60,"record_l3":true}`},
			},
			pages: []string{"show flowprobe params", "show flowprobe feature"},
		},
		"mappings of both kinds of NAT44": {
			configs: []configuration{
				{keys.NAT44Global, `{"endpoint_independent":true}`, natPoolKey, natPool, pooledKey, pooledDNAT},
				{keys.NAT44Global, `{"endpoint_independent":true}`, natPoolKey, `{"name":"a","first_ip":"10.6.0.2"}`, pooledKey, pooledDNAT},
				{keys.NAT44Global, `{"endpoint_independent":true,"address_pool":[{"address":"10.6.0.9"}]}`, pooledKey, strings.ReplaceAll(pooledDNAT, "10.6.0.2", "10.6.0.9")},
				{keys.NAT44Global, `{"endpoint_independent":true}`, natPoolKey, natPool, pooledKey, strings.ReplaceAll(pooledDNAT, "10.6.0.2", "10.6.0.3")},
				{keys.NAT44Global, `{}`, natPoolKey, natPool, pooledKey, pooledDNAT},
				{keys.NAT44Global, `{}`, pooledKey, pooledDNAT},
			},
			pages: []string{"show nat44 static mappings", "show nat44 ei static mappings"},
		},
		"DNS cache": {
			configs: []configuration{
				{cache, `{"upstream_dns_servers":["10.0.0.53"]}`},
				{cache, `{"upstream_dns_servers":["10.0.0.54","fd00::53"]}`},
				{cache, `{"upstream_dns_servers":["10.0.0.53","10.0.0.54"]}`},
			},
			pages: []string{"show dns"},
		},
	}
}

// TestEveryChangeIsPlannedAndUndone goes from each configuration of a kind, and from none, to
// each other one and back. The plan names the operations that are executed; afterwards a resync
// does nothing; and each way to a configuration leaves the same state in VPP.
func TestEveryChangeIsPlannedAndUndone(t *testing.T) {
	for name, kind := range changeables() {
		t.Run(name, func(t *testing.T) {
			onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) { everyChangeIsPlannedAndUndone(t, vpp, kind) })
		})
	}
}

func everyChangeIsPlannedAndUndone(t *testing.T, vpp *simulated.VPP, kind changeable) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	all := append([]configuration{nil}, kind.configs...)
	shows := func() string {
		var b strings.Builder
		for _, page := range kind.pages {
			b.WriteString(vpp.Show(page))
		}
		return b.String()
	}
	for _, one := range kind.configs {
		if !a.canHave(t, vpp, slices.Concat(kind.ground, one)) {
			return
		}
	}
	first := make([]string, len(all)) // what VPP shows of each configuration
	to := func(what string, i int) {
		a.changesTo(what, slices.Concat(kind.ground, all[i]))
		now := shows()
		first[i] = cmp.Or(first[i], now)
		if now != first[i] {
			t.Errorf("%s: VPP has\n%s; at first it had\n%s", what, now, first[i])
		}
	}
	for i := range all {
		to(fmt.Sprint("to ", i), i)
		for j := i; j < len(all); j++ {
			to(fmt.Sprintf("%d to %d", i, j), j)
			to(fmt.Sprintf("%d to %d and back", i, j), i)
		}
	}
}

// canHave declares values, and reports whether this release of VPP has what they need.
func (a *agent) canHave(t *testing.T, vpp *simulated.VPP, values configuration) bool {
	t.Helper()
	_, err := a.declare(true, values...)
	for i := 0; i < len(values); i += 2 {
		if st, _ := a.sched.Status(values[i]); st != nil && st.State == scheduler.Unimplemented {
			t.Logf("SKIPPED: %s: %v", st.Key, st.Err)
			return false
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

// changesTo plans and makes a change to these values, and checks that it is complete.
func (a *agent) changesTo(what string, values configuration) {
	a.Helper()
	txn := scheduler.Txn{Replace: true}
	for i := 0; i < len(values); i += 2 {
		message, err := models.BuiltIn().Decode(values[i], []byte(values[i+1]))
		if err != nil {
			a.Fatal(err)
		}
		v, err := a.sched.Value(values[i], message)
		if err != nil {
			a.Fatal(err)
		}
		txn.Changes = append(txn.Changes, v.Change())
	}
	plan, err := a.sched.Plan(a.Context(), txn)
	if err != nil {
		a.Fatalf("%s: plan: %v", what, err)
	}
	record, err := a.sched.Commit(a.Context(), txn)
	if err != nil {
		a.Fatalf("%s: %v", what, err)
	}
	if planned, executed := operations(plan.Planned), operations(record.Executed); !slices.Equal(planned, executed) {
		a.Errorf("%s: planned %q; executed %q", what, planned, executed)
	}
	for i := 0; i < len(values); i += 2 {
		a.expectState(values[i], scheduler.Configured)
	}
	resync, err := a.sched.Commit(a.Context(), scheduler.Txn{Refresh: true})
	if err != nil || resync.Executed.Len() > 0 {
		a.Errorf("%s: a resync does %q, %v", what, operations(resync.Executed), err)
	}
}

// operations returns verbs, keys and errors in a fixed order: independent ones have none. Each comes
// once, and without the waits: where a verb takes longer than 100 ms, a record also has what is PENDING meanwhile.
func operations(all scheduler.Operations) (out []string) {
	made := map[string]bool{}
	for _, op := range all.All() {
		made[op.Key] = made[op.Key] || !op.Noop
	}
	for _, op := range all.All() {
		if op.Noop && made[op.Key] {
			continue
		}
		line := fmt.Sprint(op.Verb, " ", op.Key)
		if op.NewErr != nil {
			line += ": " + op.NewErr.Error()
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
