package vpp_test

import (
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"

	vppif "go.fd.io/govpp/binapi/interface"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/scheduler"
)

// TestAutoconfOfOthers has interfaces stop to configure themselves: VPP takes the addresses of all
// interfaces then, and the others get theirs back at once.
func TestAutoconfOfOthers(t *testing.T) {
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		testkit.Need(t, "a simulated VPP, on whose links routers advertise", vpp.Sim != nil)
		sim, socket := vpp.Sim, vpp.Socket
		const solicited = "ip6nd_send_router_solicitation"
		auto := func(name, nd string) []string {
			return []string{interfacesPrefix + name, `{"name":"` + name + `","type":"SOFTWARE_LOOPBACK","enabled":true,"ip6_nd":{` + nd + `}}`}
		}
		const addresses, both, neither = `"address_autoconfig":true`, `"address_autoconfig":true,"install_default_routes":true`, ``
		a := startAgent(t, socket)
		awaitReady(t, a)
		a.want(true, auto("loop1", addresses)...) // alone, so that its index is 1
		a.want(false, auto("loop2", both)...)
		for name, network := range map[string]string{"loop1": "fd01::/64", "loop2": "fd02::/64"} {
			if err := sim.Advertise(name, netip.MustParsePrefix(network)); err != nil {
				t.Fatal(err)
			}
		}
		expect := func(when string, asked int, networks ...string) {
			t.Helper()
			text := sim.Show("show interface")
			for _, network := range []string{"fd01::", "fd02::"} {
				if has, want := strings.Contains(text, network), strings.Contains(strings.Join(networks, " "), network); has != want {
					t.Errorf("%s: an address of %s exists: %t; expected %t:\n%s", when, network, has, want, text)
				}
			}
			if n := sim.Counts()[solicited]; n != asked {
				t.Errorf("%s: routers were solicited %d times; expected %d", when, n, asked)
			}
		}
		expect("advertised", 0, "fd01::", "fd02::")
		a.want(false, auto("loop2", addresses)...)
		expect("loop2 takes no routes", 1, "fd01::", "fd02::")
		a.want(false, auto("loop2", both)...)
		expect("loop2 takes routes", 0, "fd01::", "fd02::")
		a.want(false, auto("loop2", neither)...)
		expect("loop2 takes nothing", 1, "fd01::")
		a.want(false, auto("loop2", both)...)
		expect("loop2 takes addresses again", 0, "fd01::", "fd02::")
		a.unwant(secondKey)
		expect("loop2 is deleted", 1, "fd01::")

		// Somebody else deletes the interface: the setting is ended on the next one with the index.
		a.want(false, auto("loop2", both)...)
		if err := sim.Advertise("loop2", netip.MustParsePrefix("fd02::/64")); err != nil {
			t.Fatal(err)
		}
		sim.Counts()
		vpp.Ask(vpp.Dial(), &vppif.DeleteLoopback{SwIfIndex: 2}, &vppif.DeleteLoopbackReply{})
		until(t, func() bool { return sim.Counts()[solicited] > 0 }, func() string { return "routers were not solicited" })
		a.awaitState(secondKey, scheduler.Configured)
		awaits(t, sim, "show interface", "fd01::")

		// The next agent does not know what is set.
		a.stop()
		a = startAgent(t, socket)
		awaitReady(t, a)
		a.want(true, append(auto("loop1", addresses), auto("loop2", addresses)...)...)
		awaits(t, sim, "show interface", "fd01::")
	})
}

// TestAutoconfOverRestarts has an agent start again, beside a VPP that has run on or not. It sends the setting when VPP
// lacks it, and then only. Hardware is there without it when VPP has been restarted.
func TestAutoconfOverRestarts(t *testing.T) {
	vpp := simulated.StartWith(t, vppsim.Options{Hardware: []string{nic}})
	const auto = `,"ip6_nd":{"address_autoconfig":true,"install_default_routes":true}`
	values := func(of, nd string) []string {
		return []string{
			nicKey, `{"name":"` + nic + `","type":"DPDK","enabled":true` + nd + `}`,
			interfacesPrefix + of, `{"name":"` + of + `","type":"SOFTWARE_LOOPBACK"` + nd + `}`,
		}
	}
	known := memories{deaths: notebook{}, applied: notebook{}, settings: notebook{}}
	var a *agent
	again := func(when, shows string, messages int, all ...string) {
		t.Helper()
		if a != nil {
			a.stop()
		}
		vpp.Counts()
		a = startAgentKnowing(t, vpp.Socket, known)
		awaitReady(t, a)
		a.want(true, all...)
		if n := vpp.Counts()["ip6_nd_address_autoconfig"]; n != messages {
			t.Errorf("%s: the setting was sent %d times; expected %d", when, n, messages)
		}
		if text := vpp.Sim.Show("show ip6 nd"); text != shows {
			t.Errorf("%s: VPP has\n%s\nexpected\n%s", when, text, shows)
		}
	}
	const both = nic + " autoconfig routes true\nloop0 autoconfig routes true\n"
	again("at first", both, 2, values("loop1", auto)...)
	again("VPP has run on", both, 0, values("loop1", auto)...)
	if err := vpp.Restart(); err != nil {
		t.Fatal(err)
	}
	again("VPP has been restarted", both, 2, values("loop1", auto)...)
	if err := vpp.Restart(); err != nil {
		t.Fatal(err)
	}
	awaits(t, vpp.Sim, "show ip6 nd", strings.Split(strings.TrimSpace(both), "\n")...) // the agent has run on
	again("VPP has run on again", both, 0, values("loop1", auto)...)
	again("removed meanwhile", "", 2, values("loop1", "")...)
	left := maps.Collect(known.settings.Load())
	delete(left, "vpp/run") // which run of VPP it was
	if len(left) > 0 {
		t.Errorf("the agent remembers %q", left)
	}
}

// VPP fails when the autoconfiguration of an interface is to end or to change, and has carried that out or not. The agent,
// or the next one, does it again. The other interfaces get back the addresses that VPP then takes from them.
func TestAutoconfWhoseEndFails(t *testing.T) {
	const addresses, both = `,"ip6_nd":{"address_autoconfig":true}`, `,"ip6_nd":{"address_autoconfig":true,"install_default_routes":true}`
	values := func(nd string) []string {
		return []string{
			interfacesPrefix + "loop1", `{"name":"loop1","type":"SOFTWARE_LOOPBACK","enabled":true` + nd + `}`,
			interfacesPrefix + "loop2", `{"name":"loop2","type":"SOFTWARE_LOOPBACK","enabled":true` + both + `}`,
		}
	}
	for _, c := range []struct{ name, nd, shows string }{
		{"ended", "", "loop1 autoconfig routes true\n"},
		{"changed", addresses, "loop0 autoconfig routes false\nloop1 autoconfig routes true\n"},
	} {
		for _, done := range []bool{false, true} {
			for _, restarted := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, done %t, restarted %t", c.name, done, restarted), func(t *testing.T) {
					sim, socket := startSim(t)
					known := memories{deaths: notebook{}, applied: notebook{}, settings: notebook{}}
					a := startAgentKnowing(t, socket, known)
					awaitReady(t, a)
					a.want(true, values(both)[:2]...) // alone, so that its index is 1
					a.want(false, values(both)...)
					if err := sim.Advertise("loop2", netip.MustParsePrefix("fd02::/64")); err != nil {
						t.Fatal(err)
					}
					fault := vppsim.Fault{Retval: -1, Done: done, Times: 1}
					if restarted {
						fault.Times = 0 // until the next agent
					}
					sim.Fail("ip6_nd_address_autoconfig", fault)
					if _, err := a.declare(false, values(c.nd)...); err == nil {
						t.Error("VPP has not failed")
					}
					if restarted {
						a.stop()
						sim.Fail("ip6_nd_address_autoconfig", vppsim.Fault{})
						a = startAgentKnowing(t, socket, known)
						awaitReady(t, a)
						a.want(true, values(c.nd)...)
					}
					shown := func() string { return sim.Show("show ip6 nd") + sim.Show("show interface") }
					until(t, func() bool { return sim.Show("show ip6 nd") == c.shows && strings.Contains(shown(), "fd02::") }, shown)
				})
			}
		}
	}
}
