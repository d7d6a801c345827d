package vpp_test

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/keyplane/keyplane/models"
)

// A config has many values of the same kinds.
type config []stored

// A stored value is the JSON under a key, as a store has it.
type stored struct {
	key   string
	model *models.Model
	json  []byte
}

// add declares a value in JSON.
func (c *config) add(b *testing.B, key, value string) {
	b.Helper()
	model, _, ok := models.BuiltIn().ByKey(key)
	if !ok {
		b.Fatalf("%s: no model has this key", key)
	}
	*c = append(*c, stored{key, model, []byte(value)})
}

// BenchmarkDNATCold10k declares 10,000 static mappings to an agent on a VPP without any: as
// values of one mapping each, of a hundred each, and as one value.
func BenchmarkDNATCold10k(b *testing.B) {
	for _, values := range []int{10_000, 100, 1} {
		b.Run(fmt.Sprint(values, "-values"), func(b *testing.B) {
			var c config
			c.nat(b, values, 10_000/values)
			race{values: c}.run(b)
		})
	}
}

// BenchmarkACLCold10k declares 1,000 access lists of ten rules each, each on an interface, and one
// list of 10,000 rules.
func BenchmarkACLCold10k(b *testing.B) {
	b.Run("1000-lists", func(b *testing.B) {
		var c config
		c.loops(b, 100)
		for n := range 1000 {
			c.acl(b, n, 10, fmt.Sprint("loop", n%100))
		}
		race{values: c}.run(b)
	})
	b.Run("1-list", func(b *testing.B) {
		var c config
		c.loops(b, 1)
		c.acl(b, 0, 10_000, "loop0")
		race{values: c}.run(b)
	})
}

// BenchmarkIPsecCold5k declares 2,500 tunnels with a protection each, by two of 5,000 security
// associations.
func BenchmarkIPsecCold5k(b *testing.B) {
	var c config
	for n := range 2500 {
		c.protectedTunnel(b, n)
	}
	race{values: c}.run(b)
}

// BenchmarkMixedCold declares many values of each kind that VPP can have many of, and one of each
// other kind.
func BenchmarkMixedCold(b *testing.B) {
	for _, each := range []int{100, 690} {
		c := mixed(b, each)
		b.Run(fmt.Sprint(len(c), "-values"), func(b *testing.B) { race{values: c}.run(b) })
	}
}

// BenchmarkMixedRestart has VPP restarted under an agent with the same values, and then the agent. It
// reports both times beside that of the cold start, and the operations of the new agent.
func BenchmarkMixedRestart(b *testing.B) {
	for _, each := range []int{100, 690} {
		c := mixed(b, each)
		b.Run(fmt.Sprint(len(c), "-values"), func(b *testing.B) { race{values: c}.restarts(b) })
	}
}

// mixed returns so many values of each kind. There are only 20 memifs: VPP's memif process dies now
// and then when many are created.
func mixed(b *testing.B, each int) (c config) {
	b.Helper()
	c.loops(b, 2*each)
	c.nat(b, each, 1)
	for n := range each {
		loop := fmt.Sprint("loop", n)
		c.acl(b, n, 10, loop)
		c.protectedTunnel(b, n)
		c.links(b, n)
		c.bridges(b, n)
		c.routing(b, n, loop)
		c.srv6(b, n, loop)
		c.services(b, n, loop, fmt.Sprint("loop", n+each))
	}
	for n := range 20 {
		c.link(b, fmt.Sprint("mem", n), fmt.Sprintf(`"type":"MEMIF","memif":{"id":%d,"master":true}`, n))
	}
	c.add(b, "config/vpp/dns/v1/dnscache", `{"upstream_dns_servers":["10.200.0.53"]}`)
	c.add(b, "config/vpp/srv6/v2/srv6-global", `{"encap_source_address":"fd01::1"}`)
	c.add(b, "config/vpp/ipfix/v2/ipfix", `{"collector":{"address":"10.200.0.6"},"source_address":"10.200.0.1"}`)
	c.add(b, "config/vpp/ipfix/v2/flowprobe-params", `{"active_timer":10,"passive_timer":60,"record_l3":true}`)
	c.add(b, "config/vpp/v2/ipscanneigh-global", `{"mode":"BOTH","scan_interval":1}`)
	c.add(b, "config/vpp/v2/proxyarp-global", `{"interfaces":[{"name":"loop1"}],"ranges":[{"first_ip_addr":"10.16.1.10","last_ip_addr":"10.16.1.20"}]}`)
	c.add(b, "config/vpp/v2/exception/reason/ipsec4-no-such-tunnel", `{"reason":"ipsec4-no-such-tunnel","socket_path":"/run/program.sock"}`)
	return c
}

// subnet returns the first three bytes of a network with 24 bits, which addresses of loopback n begin with.
func subnet(n int) string { return fmt.Sprintf("10.%d.%d", 16+n>>8, n&255) }

// pair returns n as two bytes of an IPv4 address.
func pair(n int) string { return fmt.Sprintf("%d.%d", n>>8, n&255) }

// loops adds loopbacks with an address each.
func (c *config) loops(b *testing.B, n int) {
	b.Helper()
	for i := range n {
		c.add(b, fmt.Sprint(interfacesPrefix, "loop", i), fmt.Sprintf(`{"name":"loop%[1]d","type":"SOFTWARE_LOOPBACK","enabled":true,"ip_addresses":["%[2]s.1/24"]}`, i, subnet(i)))
	}
}

// nat adds NAT44 itself, and values of so many static mappings each.
func (c *config) nat(b *testing.B, values, each int) {
	b.Helper()
	c.add(b, "config/vpp/nat/v2/nat44-global", `{}`)
	for v := range values {
		mappings := ""
		for m := range each {
			mappings += fmt.Sprintf(`,{"external_ip":"11.0.%[1]s","external_port":80,"local_ips":[{"local_ip":"10.0.%[1]s","local_port":8080}]}`, pair(v*each+m))
		}
		c.add(b, fmt.Sprint("config/vpp/nat/v2/dnat44/dnat", v), fmt.Sprintf(`{"label":"dnat%d","st_mappings":[%s]}`, v, mappings[1:]))
	}
}

// acl adds an access list with so many rules to an interface.
func (c *config) acl(b *testing.B, n, rules int, by string) {
	b.Helper()
	text := ""
	for r := range rules {
		text += fmt.Sprintf(`,{"action":"PERMIT","ip_rule":{"ip":{"source_network":"12.%s.0/24"},"tcp":{"destination_port_range":{"lower_port":80,"upper_port":90},"source_port_range":{"upper_port":65535}}}}`, pair(r))
	}
	c.add(b, fmt.Sprint("config/vpp/acls/v2/acl/list", n), fmt.Sprintf(`{"name":"list%d","rules":[%s],"interfaces":{"ingress":[%q]}}`, n, text[1:], by))
}

// protectedTunnel adds an IPIP tunnel that two security associations protect.
func (c *config) protectedTunnel(b *testing.B, n int) {
	b.Helper()
	out, in := 2*n+1, 2*n+2
	c.add(b, fmt.Sprint(interfacesPrefix, "ipip", n), fmt.Sprintf(`{"name":"ipip%[1]d","type":"IPIP_TUNNEL","enabled":true,"ipip":{"src_addr":"10.9.0.1","dst_addr":"13.0.%[2]s"}}`, n, pair(n)))
	c.add(b, fmt.Sprint("config/vpp/ipsec/v2/sa/", out), association(out))
	c.add(b, fmt.Sprint("config/vpp/ipsec/v2/sa/", in), association(in))
	c.add(b, fmt.Sprint("config/vpp/ipsec/v2/tun-protect/ipip", n), fmt.Sprintf(`{"interface":"ipip%d","sa_out":[%d],"sa_in":[%d]}`, n, out, in))
}

// links adds interfaces of several types.
func (c *config) links(b *testing.B, n int) {
	b.Helper()
	c.link(b, fmt.Sprint("vx", n), fmt.Sprintf(`"type":"VXLAN_TUNNEL","vxlan":{"src_address":"10.9.0.1","dst_address":"10.10.%s","vni":%d}`, pair(n), n+1))
	c.link(b, fmt.Sprint("sub", n), fmt.Sprintf(`"type":"SUB_INTERFACE","sub":{"parent_name":"loop0","sub_id":%d}`, n+1))
	c.link(b, fmt.Sprint("gre", n), fmt.Sprintf(`"type":"GRE_TUNNEL","gre":{"tunnel_type":"L3","src_addr":"10.9.0.1","dst_addr":"10.11.%s"}`, pair(n)))
	key := "AAECAwQFBgcICQoLDA0ODw8ODQwLCgkIBwYFBAMCAQA="
	c.link(b, fmt.Sprint("wg", n), fmt.Sprintf(`"type":"WIREGUARD_TUNNEL","wireguard":{"private_key":%q,"src_addr":"10.9.0.1","port":%d}`, key, 20000+n))
}

// link adds an enabled interface. fields are its type and its link in JSON.
func (c *config) link(b *testing.B, name, fields string) {
	b.Helper()
	c.add(b, interfacesPrefix+name, fmt.Sprintf(`{"name":%q,"enabled":true,%s}`, name, fields))
}

// bridges adds a bridge domain with a member and an L2 FIB entry.
func (c *config) bridges(b *testing.B, n int) {
	b.Helper()
	c.add(b, fmt.Sprint("config/vpp/l2/v2/bridge-domain/bd", n), fmt.Sprintf(`{"name":"bd%[1]d","forward":true,"learn":true,"interfaces":[{"name":"vx%[1]d"}]}`, n))
	mac := fmt.Sprintf("02:00:00:00:%02x:%02x", n>>8, n&255)
	c.add(b, fmt.Sprintf("config/vpp/l2/v2/fib/bd%d/mac/%s", n, mac), fmt.Sprintf(`{"bridge_domain":"bd%[1]d","phys_address":%[2]q,"outgoing_interface":"vx%[1]d","static_config":true}`, n, mac))
}

// routing adds a VRF, a route, a neighbour, a TEIB entry and a forwarding by an access list.
func (c *config) routing(b *testing.B, n int, loop string) {
	b.Helper()
	net, network := subnet(n), fmt.Sprintf("14.%s.0/24", pair(n))
	c.add(b, fmt.Sprintf("config/vpp/v2/vrf-table/id/%d/protocol/IPV4", n+1), fmt.Sprintf(`{"id":%d}`, n+1))
	c.add(b, fmt.Sprintf("config/vpp/v2/route/if/%s/vrf/0/dst/%s/gw/%s.2", loop, network, net), fmt.Sprintf(`{"dst_network":%q,"next_hop_addr":"%s.2","outgoing_interface":%q}`, network, net, loop))
	c.add(b, fmt.Sprintf("config/vpp/v2/arp/%s/%s.9", loop, net), fmt.Sprintf(`{"interface":%q,"ip_address":"%s.9","phys_address":"02:00:00:00:00:09","static":true}`, loop, net))
	c.add(b, fmt.Sprintf("config/vpp/v2/teib/%s/peer/%s.7", loop, net), fmt.Sprintf(`{"interface":%q,"peer_addr":"%s.7","next_hop_addr":"10.9.0.7"}`, loop, net))
	c.add(b, fmt.Sprint("config/vpp/abfs/v2/abf/", n+1), fmt.Sprintf(`{"index":%d,"acl_name":"list%d","attached_interfaces":[{"input_interface":%q}],"forwarding_paths":[{"interface_name":%q,"next_hop_ip":"%s.4"}]}`, n+1, n, loop, loop, net))
}

// srv6 adds a local SID, a policy, and steering into it.
func (c *config) srv6(b *testing.B, n int, loop string) {
	b.Helper()
	c.add(b, fmt.Sprintf("config/vpp/srv6/v2/localsid/fd02::%x", n+1), fmt.Sprintf(`{"sid":"fd02::%x","end_function_dx4":{"outgoing_interface":%q,"next_hop":"%s.4"}}`, n+1, loop, subnet(n)))
	c.add(b, fmt.Sprintf("config/vpp/srv6/v2/policy/fd03::%x", n+1), fmt.Sprintf(`{"bsid":"fd03::%x","srh_encapsulation":true,"segment_lists":[{"segments":["fd04::5","fd04::6"]}]}`, n+1))
	c.add(b, fmt.Sprint("config/vpp/srv6/v2/steering/steering", n), fmt.Sprintf(`{"name":"steering%d","policy_bsid":"fd03::%x","l3_traffic":{"prefix_address":"15.%s.0/24"}}`, n, n+1, pair(n)))
}

// services adds a security policy database with a policy, an STN rule, exported flows, a
// redirection and a registration for the host, and a WireGuard peer. other is a second loopback.
func (c *config) services(b *testing.B, n int, loop, other string) {
	b.Helper()
	net := subnet(n)
	c.add(b, fmt.Sprint("config/vpp/ipsec/v2/spd/", n+1), fmt.Sprintf(`{"index":%d,"interfaces":[{"name":%q}]}`, n+1, other))
	c.add(b, fmt.Sprintf("config/vpp/ipsec/v2/sp/spd/%d/sa/1/outbound/local-addresses/10.1.0.0-10.1.0.255/remote-addresses/10.3.0.0-", n+1),
		fmt.Sprintf(`{"spd_index":%d,"sa_index":1,"is_outbound":true,"local_addr_start":"10.1.0.0","local_addr_stop":"10.1.0.255","remote_addr_start":"10.3.0.0","action":"PROTECT"}`, n+1))
	c.add(b, fmt.Sprintf("config/vpp/stn/v2/rule/%s/ip/%s.1", loop, net), fmt.Sprintf(`{"interface":%q,"ip_address":"%s.1"}`, loop, net))
	c.add(b, "config/vpp/ipfix/v2/flowprobe-feature/"+other, fmt.Sprintf(`{"interface":%q,"ip4":true}`, other))
	c.add(b, fmt.Sprintf("config/vpp/v2/ipredirect/l3/IPV4/tx/%s", loop), fmt.Sprintf(`{"l3_protocol":"IPV4","rx_interface":%q,"tx_interface":%q,"next_hop":"%s.5"}`, other, loop, net))
	c.add(b, fmt.Sprintf("config/vpp/v2/tohost/l3/IPV4/l4/UDP/port/%d", 9000+n), fmt.Sprintf(`{"l3_protocol":"IPV4","l4_protocol":"UDP","port":%d,"socket_path":"/run/program.sock"}`, 9000+n))
	endpoint := "10.12." + pair(n)
	key := base64.StdEncoding.EncodeToString(append(make([]byte, 29), 1, byte((n+1)>>8), byte(n+1)))
	c.add(b, fmt.Sprintf("config/vpp/wg/v1/peer/wg%d/endpoint/%s/51820", n, endpoint), fmt.Sprintf(`{"wg_if_name":"wg%d","endpoint":%q,"port":51820,"public_key":%q,"allowed_ips":["10.11.0.0/16"],"persistent_keepalive":25}`, n, endpoint, key))
}
