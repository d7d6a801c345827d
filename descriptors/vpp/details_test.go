package vpp_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/keyplane/keyplane/descriptors/vpp/acl"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/ipsec"
	"github.com/keyplane/keyplane/descriptors/vpp/l2"
	"github.com/keyplane/keyplane/descriptors/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/inspect"
)

// TestDetails has each kind tell what VPP knows of an item besides its value, and shows what VPP makes by
// itself.
func TestDetails(t *testing.T) { onEachVPP(t, tellsDetails) }

func tellsDetails(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true,
		"config/vpp/v2/vrf-table/id/7/protocol/IPV4", `{"id": 7, "label": "seven"}`,
		loopKey, `{"name": "loop1", "type": "SOFTWARE_LOOPBACK", "enabled": true, "vrf": 7, "ip_addresses": ["10.1.0.1/24"], "mtu": 1400}`,
		"config/vpp/v2/interfaces/loop2", `{"name": "loop2", "type": "SOFTWARE_LOOPBACK", "enabled": true, "ip_addresses": ["10.2.0.1/24"], "set_dhcp_client": false}`,
		"config/vpp/v2/interfaces/loop3", `{"name": "loop3", "type": "SOFTWARE_LOOPBACK", "enabled": true}`,
		"config/vpp/l2/v2/xconnect/loop3", `{"receive_interface": "loop3", "transmit_interface": "loop2"}`,
		"config/vpp/v2/route/if/loop1/vrf/7/dst/10.9.0.0/16/gw/10.1.0.2", `{"vrf_id": 7, "dst_network": "10.9.0.0/16", "next_hop_addr": "10.1.0.2", "outgoing_interface": "loop1"}`,
		"config/vpp/v2/arp/loop2/10.2.0.9", `{"interface": "loop2", "ip_address": "10.2.0.9", "phys_address": "02:00:00:00:00:09", "static": true}`,
		"config/vpp/v2/proxyarp-global", `{"interfaces": [{"name": "loop2"}]}`,
		"config/vpp/acls/v2/acl/acl1", `{"name": "acl1", "rules": [{"action": "PERMIT", "ip_rule": {"ip": {"destination_network": "10.0.0.0/8"}}}]}`,
		"config/vpp/ipsec/v2/sa/10", `{"index": 10, "spi": 1000, "protocol": "ESP", "crypto_alg": "AES_CBC_128", "crypto_key": "4a506a794f574265564551694d653768",
			"integ_alg": "SHA1_96", "integ_key": "4339314b55523947594d6d3547666b45764e6a58"}`,
	)
	loop1, loop2 := a.indexOf("loop1"), a.indexOf("loop2")
	for _, tt := range []struct {
		descriptor, key string
		has             map[string]any
	}{
		{iface.Name, loopKey, map[string]any{
			"is_admin_state_up": true, "is_link_state_up": true, "tag": "loop1", "vrf_ipv4": 7.0, "vrf_ipv6": 0.0, "sub_sw_if_index": loop1, "dhcp": nil,
			"mtu": []any{1400.0, 0.0, 0.0, 0.0},
		}},
		{l2.XConnectName, "config/vpp/l2/v2/xconnect/loop3", map[string]any{"transmit_interface_sw_if_idx": loop2}},
		{l3.RouteName, "config/vpp/v2/route/if/loop1/vrf/7/dst/10.9.0.0/16/gw/10.1.0.2", map[string]any{
			"TableName": "seven", "OutgoingIfIdx": loop1, "IsIPv6": false, "IsLocal": false, "LabelStack": []any{},
		}},
		{l3.ARPName, "config/vpp/v2/arp/loop2/10.2.0.9", map[string]any{"SwIfIndex": loop2}},
		{l3.ProxyARPName, "config/vpp/v2/proxyarp-global", map[string]any{"Interfaces": map[string]any{"loop2": loop2}}},
		{acl.Name, "config/vpp/acls/v2/acl/acl1", map[string]any{"acl_tag": "acl1"}},
		{ipsec.SAName, "config/vpp/ipsec/v2/sa/10", map[string]any{"SaID": 10.0, "CryptoKeyLen": 16.0, "IntegKeyLen": 20.0}},
	} {
		has := a.details(tt.descriptor)[tt.key]
		for name, want := range tt.has {
			if got, ok := has[name]; !ok || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s of %s is %v; expected %v, in %v", name, tt.key, got, want, has)
			}
		}
	}
	// What VPP makes by itself. Of routes, only those who look see it.
	routes := a.details(l3.RouteName)
	for _, want := range []string{"vrf/7/dst/10.1.0.0/24", "vrf/7/dst/240.0.0.0/4", "vrf/0/dst/::/0"} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(routes)), func(key string) bool { return strings.Contains(key, want) }) {
			t.Errorf("no route %s among %v", want, slices.Sorted(maps.Keys(routes)))
		}
	}
	for key := range routes {
		if st, kept := a.sched.Status(key); kept && st.State == scheduler.Obtained {
			t.Errorf("the scheduler keeps %s", key)
		}
	}
	a.expectState("config/vpp/v2/interfaces/"+iface.Untagged+"local0", scheduler.Obtained)
	a.unwant("config/vpp/v2/proxyarp-global")
	if _, err := a.sched.Commit(t.Context(), scheduler.Txn{Refresh: true}); err != nil {
		t.Fatal(err)
	}
	a.expectState("config/vpp/v2/proxyarp-global", scheduler.Obtained)
	a.expectState("config/vpp/ipfix/v2/ipfix", scheduler.Obtained)
	a.obtainedBecomesOurs()
}

// obtainedBecomesOurs declares what VPP has by itself.
func (a *agent) obtainedBecomesOurs() {
	a.Helper()
	values := map[string]string{
		"config/vpp/ipfix/v2/ipfix":     `{"collector": {"address": "10.2.0.7"}, "source_address": "10.2.0.1"}`,
		"config/vpp/v2/proxyarp-global": `{"ranges": [{"first_ip_addr": "10.2.0.3", "last_ip_addr": "10.2.0.4"}]}`,
	}
	for key, value := range values {
		a.want(false, key, value)
		a.expectState(key, scheduler.Configured)
	}
	if _, err := a.sched.Commit(a.Context(), scheduler.Txn{Refresh: true}); err != nil {
		a.Fatal(err)
	}
	for key := range values {
		a.expectState(key, scheduler.Configured)
		a.unwant(key)
	}
}

// A route that VPP has made itself is declared, after it was read: VPP gets it from the agent nevertheless, which ranks
// above a default route of DHCP. When it goes, VPP's own is there again.
func TestDeclaredRouteOfVPP(t *testing.T) { onEachVPP(t, declaresRouteOfVPP) }

func declaresRouteOfVPP(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	c := vpp.Dial()
	const vppsOwn, ofAgents = false, true
	for _, network := range []string{"0.0.0.0/0", "240.0.0.0/4", "::/0"} {
		expect := func(when string, want bool) {
			t.Helper()
			prefix, err := ip_types.ParsePrefix(network)
			if err != nil {
				t.Fatal(err)
			}
			var has ip.IPRouteLookupV2Reply
			vpp.Ask(c, &ip.IPRouteLookupV2{Exact: 1, Prefix: prefix}, &has)
			if of := has.Route.Src; (of == 8) != want {
				t.Errorf("%s: the source of %s is %d; of the agent: %t", when, network, of, want)
			}
		}
		key := "config/vpp/v2/route/vrf/0/dst/" + network
		for _, value := range []string{`{"type": "DROP", "dst_network": "` + network + `"}`, `{"dst_network": "` + network + `"}`} {
			expect("before", vppsOwn)
			if done := fmt.Sprint(done(a.want(false, key, value))); done != "[CREATE "+key+"]" {
				t.Errorf("%s: the agent did %s", value, done)
			}
			expect(value, ofAgents)
			a.unwant(key)
			expect(value+" is removed", vppsOwn)
		}
	}
}

// details reads back a descriptor, and returns what it tells beside the values, by key.
func (a *agent) details(descriptor string) map[string]map[string]any {
	a.Helper()
	found, err := inspect.Dump(a.Context(), a.sched, descriptor)
	if err != nil {
		a.Fatal(err)
	}
	out := map[string]map[string]any{}
	for _, f := range found {
		text, err := json.Marshal(f.Details)
		if err != nil {
			a.Fatal(err)
		}
		has := map[string]any{}
		if err := json.Unmarshal(text, &has); err != nil {
			a.Fatal(err)
		}
		out[f.Key] = has
	}
	return out
}

// indexOf returns VPP's index of an interface.
func (a *agent) indexOf(name string) float64 {
	a.Helper()
	st, ok := a.sched.Status("config/vpp/v2/interfaces/" + name)
	if !ok {
		a.Fatalf("there is no interface %s", name)
	}
	meta, _ := st.Meta.(iface.Meta)
	return float64(meta.Index)
}
