package vpp_test

import (
	"slices"
	"strings"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/vpp/l3"
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

// TestRouteMoves has a route replaced by one under another key. If the two are different paths, VPP
// has both for a moment; if they are the same, it has the new one in the end.
func TestRouteMoves(t *testing.T) { onEachVPP(t, routeMoves) }

func routeMoves(t *testing.T, vpp *simulated.VPP) {
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	a.want(true,
		loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true,"ip_addresses":["10.1.0.1/24","fd01::1/64"]}`,
		"config/netalloc/v1/ip/network/net1/interface/loop1", `{"network_name":"net1","interface_name":"loop1","address":"10.1.0.1/24","gw":"10.1.0.9"}`)
	// same: the new key takes over what the old one has. Both operations are noted without a verb.
	const makes, breaks, same = "CREATE DELETE", "DELETE CREATE", ""
	for _, move := range []struct{ about, from, to, order, path string }{
		{"to another next hop", `4 out hop "10.1.0.2"`, `4 out hop "10.1.0.3"`, makes, "via 10.1.0.3 loop0 weight 1"},
		{"of IPv6 to another next hop", `6 out hop "FD01::2"`, `6 out hop "fd01::3"`, breaks, "via fd01::3 loop0 weight 1"},
		{"of IPv6 to another next hop in our notation", `6 out hop "fd01::2"`, `6 out hop "fd01::3"`, makes, "via fd01::3 loop0 weight 1"},
		{"from the link to a next hop", `4 out`, `4 out hop "10.1.0.3"`, makes, "via 10.1.0.3 loop0 weight 1"},
		{"from an interface to none", `4 out hop "10.1.0.3"`, `4 hop "10.1.0.3"`, makes, "via 10.1.0.3 weight 1"},
		{"to the same path in another notation", `6 out hop "fd01::2"`, `6 out hop "FD01:0::2"`, same, "via fd01::2 loop0 weight 1"},
		{"from the same path in another notation", `6 out hop "FD01:0::2"`, `6 out hop "fd01::2"`, same, "via fd01::2 loop0 weight 1"},
		{"to the unspecified next hop", `4 out`, `4 out hop "0.0.0.0"`, same, "via 0.0.0.0 loop0 weight 1"},
		{"from the unspecified next hop", `4 out hop "0.0.0.0"`, `4 out`, same, "via 0.0.0.0 loop0 weight 1"},
		{"to a reference", `4 out hop "10.1.0.9"`, `4 out hop "alloc:net1/GW"`, same, "via 10.1.0.9 loop0 weight 1"},
		{"from a reference", `4 out hop "alloc:net1/GW"`, `4 out hop "10.1.0.9"`, same, "via 10.1.0.9 loop0 weight 1"},
		{"to a next hop with a length", `4 out hop "10.1.0.2"`, `4 out hop "10.1.0.2/24"`, same, "via 10.1.0.2 loop0 weight 1"},
		{"to the host itself as the next hop", `4host out`, `4host out hop "10.9.0.9"`, same, "via 10.9.0.9 loop0 weight 1"},
		{"from the host itself as the next hop", `6host out hop "fd09::9"`, `6host out`, same, "via fd09::9 loop0 weight 1"},
		{"of a host to another next hop", `4host out`, `4host out hop "10.1.0.3"`, makes, "via 10.1.0.3 loop0 weight 1"},
		{"to a drop", `4 out hop "10.1.0.2"`, `4 drop`, makes, "drop"},
		{"from a drop", `4 drop`, `4 out hop "10.1.0.2"`, makes, "via 10.1.0.2 loop0 weight 1"},
		{"to a drop with a next hop", `4 drop`, `4 drop hop "10.1.0.2"`, same, "drop"},
		{"from a drop with an interface", `4 drop out`, `4 drop`, same, "drop"},
	} {
		t.Run(move.about, func(t *testing.T) {
			a := *a
			a.T = t
			from, to := routeChange(&a, move.from), routeChange(&a, move.to)
			a.commit(from)
			var order []string
			for _, op := range a.commit(scheduler.Unwant(from.Key), to).Executed.All() {
				if !op.Noop {
					order = append(order, op.Verb.String())
				}
			}
			if got := strings.Join(order, " "); got != move.order {
				t.Errorf("operations %s; expected %s", got, move.order)
			}
			expectPath(t, vpp, move.path)
			if record := a.commitTxn(scheduler.Txn{Refresh: true}); record.Executed.Len() > 0 {
				t.Errorf("a resync does %d operations; expected none", record.Executed.Len())
			}
			a.commit(scheduler.Unwant(to.Key))
			expectPath(t, vpp, "")
		})
	}
}

// TestRouteToHost has a route to one host by an interface, without next hop: VPP makes the host its
// next hop. The route is found as declared, changes in place, and is removed, also by an agent that
// was started again.
func TestRouteToHost(t *testing.T) { onEachVPP(t, routeToHost) }

func routeToHost(t *testing.T, vpp *simulated.VPP) {
	for _, host := range []struct{ network, path string }{
		{`4host out`, "via 10.9.0.9 loop0"},
		{`4host out hop "0.0.0.0"`, "via 10.9.0.9 loop0"},
		{`6host out`, "via fd09::9 loop0"},
	} {
		known := quiet()
		a := startAgentKnowing(t, vpp.Socket, known)
		awaitReady(t, a)
		a.want(true, loopKey, loop)
		a.commit(routeChange(a, host.network))
		expectPath(t, vpp, host.path+" weight 1")
		a.commit(routeChange(a, host.network+" weight: 5"))
		expectPath(t, vpp, host.path+" weight 5")
		a.resyncsInSync(vpp)
		a.stop()

		a = startAgentKnowing(t, vpp.Socket, known)
		awaitReady(t, a)
		a.want(true, loopKey, loop)
		expectPath(t, vpp, "")
		a.stop()
	}
}

// routeChange declares a route to a network of an IP version, in short: "4 out hop ADDRESS drop"; 4host is one
// address of it.
func routeChange(a *agent, text string) scheduler.Change {
	a.Helper()
	text = strings.NewReplacer("4host ", `dst_network: "10.9.0.9/32" `, "6host ", `dst_network: "fd09::9/128" `, "4 ", `dst_network: "10.9.0.0/16" `, "6 ", `dst_network: "fd09::/64" `, "out", `outgoing_interface: "loop1"`, "hop", "next_hop_addr:", "drop", "type: DROP").Replace(text)
	message := testkit.Parse[*l3.Route](a.T, text)
	key, err := models.For[*l3.Route]().Key(message)
	if err != nil {
		a.Fatal(err)
	}
	v, err := a.sched.Value(key, message)
	if err != nil {
		a.Fatal(err)
	}
	return v.Change()
}

func (a *agent) commit(changes ...scheduler.Change) *scheduler.Record {
	a.Helper()
	return a.commitTxn(scheduler.Txn{Changes: changes})
}

func (a *agent) commitTxn(txn scheduler.Txn) *scheduler.Record {
	a.Helper()
	record, err := a.sched.Commit(a.Context(), txn)
	if err != nil {
		a.Fatal(err)
	}
	return record
}

// expectPath checks that the networks of routeChange have this path and no other; empty: none.
func expectPath(t *testing.T, vpp *simulated.VPP, path string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(vpp.Show("show ip fib")) {
		line = strings.TrimSpace(line)
		for _, network := range []string{"10.9.0.0/16 ", "10.9.0.9/32 ", "fd09::/64 ", "fd09::9/128 "} {
			if its, ok := strings.CutPrefix(line, network); ok {
				got = append(got, strings.TrimSpace(its))
			}
		}
	}
	if strings.Join(got, "; ") != path {
		t.Errorf("paths %q; expected %q", got, path)
	}
}

// TestRouterStartsOnceItsInterfaceHasAnAddress: VPP takes the interface for one that is down until
// then, and for ever if the router runs already.
func TestRouterStartsOnceItsInterfaceHasAnAddress(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		const router, router6 = "config/vpp/v2/vrrp/loop1/vrid/7", "config/vpp/v2/vrrp/loop1/vrid/8"
		loop := func(addresses string) []string {
			return []string{loopKey, `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true,"ip_addresses":[` + addresses + `]}`}
		}
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		a.want(false, append(loop(`"10.1.0.1/24"`),
			router, `{"interface":"loop1","vr_id":7,"priority":100,"interval":1000,"ip_addresses":["10.1.0.9"],"enabled":true}`,
			router6, `{"interface":"loop1","vr_id":8,"priority":100,"interval":1000,"ip_addresses":["fd01::9"],"enabled":true}`)...)
		awaits(t, vpp, "show vrrp vr", "10.1.0.9 runs")
		a.expectState(router6, scheduler.Pending)

		a.want(false, loop(`"fd01::1/64"`)...)
		awaits(t, vpp, "show vrrp vr", "fd01::9 runs")
		a.expectState(router, scheduler.Pending)
	})
}

// TestRouterOnTunnel has virtual routers on tunnels for IP packets. VPP dies of the advertisements
// of one that runs on a GRE tunnel, so that is not started.
func TestRouterOnTunnel(t *testing.T) { onEachVPP(t, routerOnTunnel) }

func routerOnTunnel(t *testing.T, vpp *simulated.VPP) {
	const onGRE, onIPIP = "config/vpp/v2/vrrp/gre1/vrid/7", "config/vpp/v2/vrrp/ipip1/vrid/7"
	router := func(on, enabled string) string {
		return `{"interface":"` + on + `","vr_id":7,"priority":255,"interval":1000,"ip_addresses":["10.1.0.1"],"enabled":` + enabled + `}`
	}
	tunnel := func(name, kind string) []string {
		return []string{interfacesPrefix + name, `{"name":"` + name + `","enabled":true,"ip_addresses":["10.1.0.1/24"],` + kind + `}`}
	}
	ends := `"src_addr":"10.2.0.1","dst_addr":"10.2.0.2"}`
	gre, ethernet := tunnel("gre1", `"type":"GRE_TUNNEL","gre":{"tunnel_type":"L3",`+ends), tunnel("gre1", `"type":"GRE_TUNNEL","gre":{"tunnel_type":"TEB",`+ends)
	a := startAgent(t, vpp.Socket)
	awaitReady(t, a)
	_, err := a.declare(true, append(gre, onGRE, router("gre1", "true"))...)
	if err == nil || !strings.Contains(err.Error(), "gre1: the interface has no MAC address, which a virtual router on a GRE tunnel needs") {
		t.Errorf("the transaction says %v", err)
	}
	a.expectState(onGRE, scheduler.Failed)
	if vpp.Revive() {
		t.Fatal("VPP has died")
	}
	a.want(false, onGRE, router("gre1", "false"))
	a.expectState(onGRE, scheduler.Configured)

	a.want(true, append(ethernet, onGRE, router("gre1", "true"))...)
	a.expectState(onGRE, scheduler.Configured)
	a.want(true, append(tunnel("ipip1", `"type":"IPIP_TUNNEL","ipip":{`+ends), onIPIP, router("ipip1", "true"))...)
	a.expectState(onIPIP, scheduler.Configured)
	awaits(t, vpp, "show vrrp vr", "10.1.0.1 runs")
}
