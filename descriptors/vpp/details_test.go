package vpp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"github.com/keyplane/keyplane/descriptors/vpp/acl"
	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/iface"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/ipsec"
	"github.com/keyplane/keyplane/descriptors/vpp/l2"
	"github.com/keyplane/keyplane/descriptors/vpp/l3"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/drift"
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
	// What VPP makes by itself. Of routes, VPP tells it with each reading.
	routes := a.details(l3.RouteName)
	for _, want := range []string{"vrf/7/dst/10.1.0.0/24", "vrf/7/dst/240.0.0.0/4", "vrf/0/dst/::/0"} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(routes)), func(key string) bool { return strings.Contains(key, want) }) {
			t.Errorf("no route %s among %v", want, slices.Sorted(maps.Keys(routes)))
		}
	}
	if _, err := a.sched.Commit(t.Context(), scheduler.Txn{Refresh: true}); err != nil {
		t.Fatal(err)
	}
	for key := range routes {
		if key != "config/vpp/v2/route/if/loop1/vrf/7/dst/10.9.0.0/16/gw/10.1.0.2" {
			a.expectState(key, scheduler.Obtained)
		}
	}
	if report, err := drift.Check(t.Context(), a.sched); err != nil || len(report.Values) > 0 {
		t.Errorf("drift is %+v, %v; expected none", report.Values, err)
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

// Every table has default routes of its own, which a declared one takes precedence over, also after they were read.
// When it goes, VPP's own is there again.
func TestDeclaredDefaultRoute(t *testing.T) { onEachVPP(t, declaresDefaultRoute) }

func declaresDefaultRoute(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	c := vpp.Dial()
	const vppsOwn, ofAgents = 20, 8
	for _, network := range []string{"0.0.0.0/0", "255.255.255.255/32", "::/0"} {
		key := "config/vpp/v2/route/vrf/0/dst/" + network
		for _, value := range []string{`{"type": "DROP", "dst_network": "` + network + `"}`, `{"dst_network": "` + network + `"}`} {
			expectRoute(vpp, c, network, vppsOwn)
			if done := fmt.Sprint(done(a.want(false, key, value))); done != "[CREATE "+key+"]" {
				t.Errorf("%s: the agent did %s", value, done)
			}
			expectRoute(vpp, c, network, ofAgents)
			a.unwant(key)
			expectRoute(vpp, c, network, vppsOwn)
		}
	}
}

// expectRoute expects that VPP forwards to a network by the route of this source.
func expectRoute(vpp *simulated.VPP, c *conn.Conn, network string, source uint8) {
	vpp.Helper()
	prefix, err := ip_types.ParsePrefix(network)
	if err != nil {
		vpp.Fatal(err)
	}
	var has ip.IPRouteLookupV2Reply
	vpp.Ask(c, &ip.IPRouteLookupV2{Exact: 1, Prefix: prefix}, &has)
	if has.Route.Src != source {
		vpp.Errorf("the source of %s is %d; expected %d", network, has.Route.Src, source)
	}
}

// VPP accepts a route to a network to which it has one of its own that takes precedence. The declared one is
// CONFIGURED only if both do the same.
func TestOutrankedRoutes(t *testing.T) { onEachVPP(t, outranksRoutes) }

func outranksRoutes(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	c := vpp.Dial()
	const loop1 = "config/vpp/v2/interfaces/loop1"
	a.want(false, loop1, `{"name": "loop1", "type": "SOFTWARE_LOOPBACK", "enabled": true, "ip_addresses": ["10.1.0.1/24", "fd00::1/64"]}`)
	a.awaitState("vpp/interface/loop1/address/static/10.1.0.1/24", scheduler.Configured)
	const special, connected, ofAgents = 1, 4, 8
	for _, tt := range []struct {
		network, rest, key string
		source             uint8 // of VPP's own route
		want               scheduler.State
		says               string
	}{
		{"240.0.0.0/4", `"next_hop_addr": "10.1.0.9"`, "vrf/0/dst/240.0.0.0/4/gw/10.1.0.9", special, scheduler.Invalid, `dst_network is "240.0.0.0/4"; expected another network, as each table of VPP has a route to this one (it drops) that takes precedence`},
		{"224.0.0.0/4", `"outgoing_interface": "loop1"`, "if/loop1/vrf/0/dst/224.0.0.0/4", special, scheduler.Invalid, "(it drops)"},
		{"fe80::/10", `"next_hop_addr": "fd00::9"`, "vrf/0/dst/fe80::/10/gw/fd00::9", special, scheduler.Invalid, "(it is for link-local addresses)"},
		{"240.0.0.0/4", `"type": "DROP"`, "vrf/0/dst/240.0.0.0/4", special, scheduler.Configured, ""},
		{"10.1.0.0/24", `"next_hop_addr": "10.1.0.9"`, "vrf/0/dst/10.1.0.0/24/gw/10.1.0.9", connected, scheduler.Retrying, "takes precedence: loop1 has an address in it"},
		{"10.1.0.1/32", `"next_hop_addr": "10.1.0.9"`, "vrf/0/dst/10.1.0.1/32/gw/10.1.0.9", connected, scheduler.Retrying, "takes precedence: VPP itself has the address, on loop1"},
		{"10.1.0.255/32", `"next_hop_addr": "10.1.0.9"`, "vrf/0/dst/10.1.0.255/32/gw/10.1.0.9", connected, scheduler.Retrying, "takes precedence: it drops"},
		{"fd00::/64", `"next_hop_addr": "fd00::9"`, "vrf/0/dst/fd00::/64/gw/fd00::9", connected, scheduler.Retrying, "takes precedence: loop1 has an address in it"},
		{"10.1.0.0/24", `"outgoing_interface": "loop1"`, "if/loop1/vrf/0/dst/10.1.0.0/24", connected, scheduler.Configured, ""},
		{"10.1.0.0/25", `"next_hop_addr": "10.1.0.9"`, "vrf/0/dst/10.1.0.0/25/gw/10.1.0.9", ofAgents, scheduler.Configured, ""},
	} {
		t.Run(strings.ReplaceAll(tt.network, "/", "_")+" "+tt.rest, func(t *testing.T) {
			key := "config/vpp/v2/route/" + tt.key
			is := func(when string) {
				t.Helper()
				st, _ := a.sched.Status(key)
				if got := fmt.Sprint(st.Err); st.State != tt.want || !strings.Contains(got, tt.says) {
					t.Errorf("%s: it is %v: %s; expected %v: %s", when, st.State, got, tt.want, tt.says)
				}
				expectRoute(vpp, c, tt.network, tt.source)
			}
			_, _ = a.declare(false, key, `{"dst_network": "`+tt.network+`", `+tt.rest+`}`) // the state tells how it ended
			is("declared")
			record, err := a.sched.Commit(t.Context(), scheduler.Txn{Refresh: true})
			if done := done(record); tt.want == scheduler.Configured && (err != nil || len(done) > 0) {
				t.Errorf("a resync does %s: %v", done, err)
			}
			is("after a resync")
			a.unwant(key)
		})
	}

	// The address comes after the route, and the route is free again when the address goes.
	const key, network = "config/vpp/v2/route/vrf/0/dst/10.2.0.0/24/gw/10.1.0.9", "10.2.0.0/24"
	a.want(false, key, `{"dst_network": "10.2.0.0/24", "next_hop_addr": "10.1.0.9"}`)
	expectRoute(vpp, c, network, ofAgents)
	const address = "vpp/interface/loop1/address/static/10.2.0.1/24"
	a.want(false, loop1, `{"name": "loop1", "type": "SOFTWARE_LOOPBACK", "enabled": true, "ip_addresses": ["10.1.0.1/24", "10.2.0.1/24"]}`)
	a.awaitState(address, scheduler.Configured)
	if _, err := a.sched.Commit(t.Context(), scheduler.Txn{Refresh: true}); !errors.Is(err, l3.ErrOutranked) {
		t.Errorf("a resync ends with %v; expected %v", err, l3.ErrOutranked)
	}
	a.expectState(key, scheduler.Retrying)
	a.want(false, loop1, `{"name": "loop1", "type": "SOFTWARE_LOOPBACK", "enabled": true, "ip_addresses": ["10.1.0.1/24"]}`)
	a.awaitState(key, scheduler.Configured)
	expectRoute(vpp, c, network, ofAgents)
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
