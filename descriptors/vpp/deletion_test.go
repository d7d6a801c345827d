package vpp_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/scheduler"
)

// town is a network in which much hangs on much.
func town() map[string]string {
	const links, l2, l3 = "config/vpp/v2/interfaces/", "config/vpp/l2/v2/", "config/vpp/v2/"
	return map[string]string{
		links + "lo1":   `{"name":"lo1","type":"SOFTWARE_LOOPBACK","enabled":true,"vrf":5,"ip_addresses":["10.1.0.1/24","fd01::1/64"]}`,
		links + "lo2":   `{"name":"lo2","type":"SOFTWARE_LOOPBACK","enabled":true,"unnumbered":{"interface_with_ip":"lo1"}}`,
		links + "lo3":   `{"name":"lo3","type":"SOFTWARE_LOOPBACK","enabled":true,"ip_addresses":["10.3.0.1/24"]}`,
		links + "sub1":  `{"name":"sub1","type":"SUB_INTERFACE","enabled":true,"vrf":5,"ip_addresses":["10.4.0.1/24"],"sub":{"parent_name":"lo3","sub_id":7}}`,
		links + "bond1": `{"name":"bond1","type":"BOND_INTERFACE","enabled":true,"bond":{"id":1,"mode":"XOR","bonded_interfaces":[{"name":"ta2"}]}}`,
		links + "ta2":   `{"name":"ta2","type":"TAP","enabled":true,"tap":{"host_if_name":"lin2"}}`,
		links + "sub2":  `{"name":"sub2","type":"SUB_INTERFACE","enabled":true,"sub":{"parent_name":"lo3","sub_id":9,"tag_rw_option":"POP1"}}`,
		links + "lo4":   `{"name":"lo4","type":"SOFTWARE_LOOPBACK","enabled":true,"phys_address":"02:00:00:00:00:44"}`,
		links + "ta1":   `{"name":"ta1","type":"TAP","enabled":true,"tap":{"host_if_name":"lin1"}}`,
		links + "vx1":   `{"name":"vx1","type":"VXLAN_TUNNEL","enabled":true,"vrf":6,"vxlan":{"src_address":"10.1.0.1","dst_address":"10.1.0.2","vni":7}}`,
		links + "gpe1":  `{"name":"gpe1","type":"VXLAN_TUNNEL","enabled":true,"vrf":6,"ip_addresses":["10.7.0.1/24"],"vxlan":{"src_address":"10.1.0.1","dst_address":"10.1.0.2","vni":8,"gpe":{"protocol":"IP4","decap_vrf_id":6}}}`,
		links + "gtp1":  `{"name":"gtp1","type":"GTPU_TUNNEL","enabled":true,"gtpu":{"src_addr":"10.1.0.1","dst_addr":"10.1.0.2","teid":7,"encap_vrf_id":6}}`,
		links + "gtp2":  `{"name":"gtp2","type":"GTPU_TUNNEL","vrf":5,"ip_addresses":["10.8.0.1/24"],"gtpu":{"src_addr":"10.1.0.1","dst_addr":"10.1.0.2","teid":8}}`,
		links + "wg1":   `{"name":"wg1","type":"WIREGUARD_TUNNEL","enabled":true,"vrf":5,"ip_addresses":["10.9.0.1/24"],"wireguard":{"private_key":"AAECAwQFBgcICQoLDA0ODw8ODQwLCgkIBwYFBAMCAQA=","src_addr":"10.1.0.1"}}`,
		links + "ips1":  `{"name":"ips1","type":"IPSEC_TUNNEL","unnumbered":{"interface_with_ip":"lo3"},"ipsec":{}}`,
		links + "nic0":  `{"name":"nic0","type":"DPDK","enabled":true,"vrf":5,"ip_addresses":["10.10.0.1/24"]}`,
		links + "mem1":  `{"name":"mem1","type":"MEMIF","enabled":true,"memif":{"id":1,"master":true}}`,
		links + "mem2":  `{"name":"mem2","type":"MEMIF","enabled":true,"memif":{"id":2,"master":true}}`,

		links + "lo5": `{"name":"lo5","type":"SOFTWARE_LOOPBACK","enabled":true,"vrf":5,"set_dhcp_client":true,"ip6_nd":{"address_autoconfig":true}}`,

		l2 + "bridge-domain/bd1":                               `{"name":"bd1","flood":true,"learn":true,"forward":true,"interfaces":[{"name":"ta1"},{"name":"vx1"},{"name":"sub2"},{"name":"lo4","bridged_virtual_interface":true}],"arp_termination_table":[{"ip_address":"10.0.0.9","phys_address":"02:00:00:00:00:09"}]}`,
		l2 + "fib/bd1/mac/02:00:00:00:00:01":                   `{"bridge_domain":"bd1","phys_address":"02:00:00:00:00:01","action":"FORWARD","outgoing_interface":"ta1","static_config":true}`,
		l2 + "fib/bd1/mac/02:00:00:00:00:02":                   `{"bridge_domain":"bd1","phys_address":"02:00:00:00:00:02","action":"DROP"}`,
		l2 + "xconnect/mem1":                                   `{"receive_interface":"mem1","transmit_interface":"mem2"}`,
		l2 + "xconnect/mem2":                                   `{"receive_interface":"mem2","transmit_interface":"mem1"}`,
		l3 + "vrf-table/id/5/protocol/IPV4":                    `{"id":5,"label":"blue"}`,
		l3 + "vrf-table/id/5/protocol/IPV6":                    `{"id":5,"protocol":"IPV6"}`,
		l3 + "vrf-table/id/6/protocol/IPV4":                    `{"id":6}`,
		l3 + "arp/lo1/10.1.0.9":                                `{"interface":"lo1","ip_address":"10.1.0.9","phys_address":"02:00:00:00:00:09","static":true}`,
		l3 + "arp/lo3/fd03::9":                                 `{"interface":"lo3","ip_address":"fd03::9","phys_address":"02:00:00:00:00:09"}`,
		l3 + "proxyarp-global":                                 `{"interfaces":[{"name":"lo1"},{"name":"sub1"}],"ranges":[{"first_ip_addr":"10.1.0.10","last_ip_addr":"10.1.0.20","vrf_id":5}]}`,
		l3 + "route/if/lo1/vrf/5/dst/10.2.0.0/16/gw/10.1.0.2":  `{"vrf_id":5,"dst_network":"10.2.0.0/16","next_hop_addr":"10.1.0.2","outgoing_interface":"lo1"}`,
		l3 + "route/if/sub1/vrf/5/dst/10.2.0.0/16/gw/10.4.0.2": `{"vrf_id":5,"dst_network":"10.2.0.0/16","next_hop_addr":"10.4.0.2","outgoing_interface":"sub1","weight":3}`,
		l3 + "teib/lo1/peer/10.1.0.7":                          `{"interface":"lo1","peer_addr":"10.1.0.7","next_hop_addr":"10.9.0.7"}`,
		l3 + "l3xconnect/lo3/protocol/IPV6":                    `{"interface":"lo3","protocol":"IPV6","paths":[{"outgoing_interface":"lo1","next_hop_addr":"fd01::3"}]}`,
		l3 + "vrrp/lo1/vrid/7":                                 `{"interface":"lo1","vr_id":7,"priority":255,"interval":1000,"ip_addresses":["10.1.0.1"],"enabled":true}`,
		l3 + "vrrp/sub1/vrid/8":                                `{"interface":"sub1","vr_id":8,"priority":9,"interval":1000,"ip_addresses":["10.4.0.9"],"enabled":true}`,
		l3 + "dhcp-proxy/IPv4/rx-vrf/5":                        `{"source_ip_address":"10.1.0.1","rx_vrf_id":5,"servers":[{"vrf_id":6,"ip_address":"10.6.0.1"},{"ip_address":"10.9.0.1"}]}`,
		l3 + "dhcp-proxy/IPv6/rx-vrf/0":                        `{"source_ip_address":"fd01::1","servers":[{"vrf_id":5,"ip_address":"fd05::1"}]}`,
		l3 + "ipscanneigh-global":                              `{"mode":"BOTH","stale_threshold":3}`,
		l3 + "span/lo1/to/lo3":                                 `{"interface_from":"lo1","interface_to":"lo3","direction":"BOTH"}`,
		l3 + "span/ta1/to/mem1":                                `{"interface_from":"ta1","interface_to":"mem1","direction":"RX","is_l2":true}`,
		l3 + "route/vrf/0/dst/10.6.0.0/16":                     `{"type":"INTER_VRF","dst_network":"10.6.0.0/16","via_vrf_id":6}`,
		l3 + "route/vrf/0/dst/fd06::/64":                       `{"type":"DROP","dst_network":"fd06::/64"}`,
	}
}

// pages are all that a simulated VPP shows, without what depends on the order in which things came.
func pages(sim *simulated.VPP) string { return vppsim.Normalized(sim.Show) }

// TestNothingIsLeftBehind has parts of a network come and go in any order, with VPP started
// anew in between: in the end VPP has what a fresh one would have, and nothing else.
func TestNothingIsLeftBehind(t *testing.T) {
	for _, release := range simulated.Releases() {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			start := func() *simulated.VPP {
				return simulated.StartWith(t, vppsim.Options{Release: release, Hardware: []string{"nic0"}})
			}
			sim, fresh := start(), start()
			a, other := startAgent(t, sim.Socket), startAgent(t, fresh.Socket)
			awaitReady(t, a)
			awaitReady(t, other)
			bare := pages(fresh)
			draw.Few(t, 25, func(rt *rapid.T) {
				declared := map[string]string{}
				for range rapid.IntRange(1, 6).Draw(rt, "steps") {
					a.step(rt, sim, declared)
				}
				other.declareOnly(declared)
				eventually(rt, sim, pages(fresh))
				other.declareOnly(nil)
				eventually(rt, fresh, bare)
				a.declareOnly(nil)
				eventually(rt, sim, bare)
			})
		})
	}
}

// step puts some values, or takes some away, after VPP was started anew or not.
func (a *agent) step(rt *rapid.T, sim *simulated.VPP, declared map[string]string) {
	all := townOf(sim)
	if rapid.IntRange(0, 9).Draw(rt, "restart") == 0 {
		if err := sim.Restart(); err != nil {
			rt.Fatal(err)
		}
	}
	keys := rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(all))), 1, len(all), rapid.ID[string]).Draw(rt, "keys")
	put := rapid.IntRange(0, 2).Draw(rt, "put") > 0
	for _, key := range keys {
		if delete(declared, key); put {
			declared[key] = all[key]
		}
	}
	a.declareOnly(declared)
}

// declareOnly declares exactly these values. Verbs may fail while VPP starts, and wait if it
// was killed while they ran.
func (a *agent) declareOnly(values map[string]string) {
	a.Helper()
	var flat []string
	for key, value := range values {
		flat = append(flat, key, value)
	}
	_, err := a.declare(true, flat...)
	for _, fine := range []error{conn.ErrLost, vpp.ErrSuspect, scheduler.ErrUnimplemented} {
		if errors.Is(err, fine) {
			return
		}
	}
	if err != nil {
		a.Errorf("of %q: %v", slices.Sorted(maps.Keys(values)), err)
	}
}

// eventually waits until the pages are these.
func eventually(rt rapid.TB, sim *simulated.VPP, want string) {
	eventuallyIn(rt, func() string { return pages(sim) }, want)
}

func eventuallyIn(rt rapid.TB, pages func() string, want string) {
	got := ""
	if !testkit.Until(func() bool { got = pages(); return got == want }) {
		rt.Fatalf("VPP has\n%s\nwant\n%s", got, want)
	}
}
