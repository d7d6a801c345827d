package models

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
)

func TestKeysOfValues(t *testing.T) {
	for _, tt := range []struct{ model, value, key string }{
		{"vpp.interfaces", `{"name":"loop1"}`, "config/vpp/v2/interfaces/loop1"},
		{"vpp.interfaces", `{"name":"a//b/"}`, "config/vpp/v2/interfaces/a/b"},
		{"vpp.interfaces", `{"name":"GigabitEthernet0/8/0"}`, "config/vpp/v2/interfaces/GigabitEthernet0/8/0"},
		{"vpp.span", `{"interface_from":"if1","interface_to":"if2"}`, "config/vpp/v2/span/if1/to/if2"},
		{"vpp.route", `{"dst_network":"10.1.3.0/24","next_hop_addr":"192.168.11.1","outgoing_interface":"tap1"}`,
			"config/vpp/v2/route/if/tap1/vrf/0/dst/10.1.3.0/24/gw/192.168.11.1"},
		{"vpp.route", `{"vrf_id":1,"dst_network":"2001:db8::/64","next_hop_addr":"::1"}`, "config/vpp/v2/route/vrf/1/dst/2001:db8::/64/gw/::1"},
		{"vpp.route", `{"type":"DROP","dst_network":"1.2.3.4/24"}`, "config/vpp/v2/route/vrf/0/dst/1.2.3.0/24"},
		{"vpp.route", `{"dst_network":"alloc:net1/if1"}`, "config/vpp/v2/route/vrf/0/dst/alloc:net1/if1"},
		{"vpp.vrf-table", `{"id":1}`, "config/vpp/v2/vrf-table/id/1/protocol/IPV4"},
		{"vpp.vrf-table", `{"id":1,"protocol":7}`, "config/vpp/v2/vrf-table/id/1/protocol/7"},
		{"vpp.l2.fib", `{"bridge_domain":"bd1","phys_address":"62:89:C6:A3:6D:5C"}`, "config/vpp/l2/v2/fib/bd1/mac/62:89:C6:A3:6D:5C"},
		{"vpp.ipsec.sp", `{"spd_index":1,"sa_index":2,"is_outbound":true,"local_addr_start":"10.0.0.1","local_addr_stop":"10.0.0.1",` +
			`"remote_addr_start":"10.0.0.2","remote_addr_stop":"10.0.0.2"}`,
			"config/vpp/ipsec/v2/sp/spd/1/sa/2/outbound/local-addresses/10.0.0.1-10.0.0.1/remote-addresses/10.0.0.2-10.0.0.2"},
		{"vpp.ipsec.tun-protect", `{"interface":"tun0"}`, "config/vpp/ipsec/v2/tun-protect/tun0"},
		{"vpp.ipsec.tun-protect", `{"interface":"tun0","next_hop_addr":"10.0.0.1"}`, "config/vpp/ipsec/v2/tun-protect/tun0/nh/10.0.0.1"},
		{"vpp.nat.nat44-pool", `{"first_ip":"1.2.3.4","last_ip":"1.2.3.9"}`, "config/vpp/nat/v2/nat44-pool/vrf/0/address/1.2.3.4-1.2.3.9"},
		{"vpp.nat.nat44-pool", `{"first_ip":"1.2.3.4","last_ip":"1.2.3.4"}`, "config/vpp/nat/v2/nat44-pool/vrf/0/address/1.2.3.4"},
		{"vpp.nat.nat44-pool", `{"name":"p","first_ip":"1.2.3.4"}`, "config/vpp/nat/v2/nat44-pool/p"},
		{"vpp.nat.nat44-global", `{"forwarding":true}`, "config/vpp/nat/v2/nat44-global"},
		{"vpp.dhcp-proxy", `{"source_ip_address":"10.0.0.1"}`, "config/vpp/v2/dhcp-proxy/IPv4/rx-vrf/0"},
		{"vpp.dhcp-proxy", `{"source_ip_address":"fd00::1","rx_vrf_id":3}`, "config/vpp/v2/dhcp-proxy/IPv6/rx-vrf/3"},
		{"vpp.tohost", `{"l3_protocol":"IPV4","l4_protocol":"UDP","port":9000}`, "config/vpp/v2/tohost/l3/IPV4/l4/UDP/port/9000"},
		{"vpp.wg.peer", `{"wg_if_name":"wg0","endpoint":"10.10.0.1","port":12312}`, "config/vpp/wg/v1/peer/wg0/endpoint/10.10.0.1/12312"},
		{"linux.l3.route", `{"dst_network":"10.1.3.0/24","outgoing_interface":"veth1"}`, "config/linux/l3/v2/route/10.1.3.0/24/veth1"},
		{"linux.l3.route", `{"dst_network":"alloc:net1/if1","outgoing_interface":"veth1"}`, "config/linux/l3/v2/route/alloc:net1/if1/veth1"},
		{"linux.l3.arp", `{"interface":"veth1","ip_address":"192.168.22.1"}`, "config/linux/l3/v2/arp/veth1/192.168.22.1"},
		{"netalloc.ip", `{"network_name":"net1","interface_name":"if1"}`, "config/netalloc/v1/ip/network/net1/interface/if1"},
		{"govppmux.stats", `{}`, "metrics/govppmux/v0/stats"},
	} {
		m, ok := BuiltIn().ByName(tt.model)
		if !ok {
			t.Fatalf("no model %s", tt.model)
		}
		v, err := m.Unmarshal([]byte(tt.value))
		if err != nil {
			t.Fatalf("%s %s: %v", tt.model, tt.value, err)
		}
		if key, err := m.Key(v); err != nil || key != tt.key {
			t.Errorf("%s %s: key %q, %v; want %q", tt.model, tt.value, key, err, tt.key)
		}
	}
}

func TestByKey(t *testing.T) {
	for _, tt := range []struct{ key, model, name string }{
		{"config/vpp/ipsec/v2/sp/spd/1/sa/2", "vpp.ipsec.sp", "spd/1/sa/2"},
		{"config/vpp/ipsec/v2/spd/1", "vpp.ipsec.spd", "1"},
		{"config/vpp/nat/v2/nat44-vrf/vrfid/1", "vpp.nat.nat44-vrf", "vrfid/1"},
		{"config/vpp/nat/v2/nat44-vrf-route/vrfid/1/destvrfid/2", "vpp.nat.nat44-vrf-route", "vrfid/1/destvrfid/2"},
		{"config/vpp/nat/v2/nat44-global", "vpp.nat.nat44-global", ""},
		{"metrics/govppmux/v0/stats", "govppmux.stats", ""},
		{"config/vpp/nat/v2/nat44-global/", "", ""},
		{"config/vpp/nat/v2/nat44-global/x", "", ""},
		{"config/vpp/nat/v2/nat44-globalx", "", ""},
		{"config/vpp/v2/interfaces", "", ""},
		{"config/vpp/v2/interfaces/", "", ""},
		{"config/vpp/v2/interface/x", "", ""},
		{"/config/vpp/v2/interfaces/x", "", ""},
		{"vpp.interfaces/x", "", ""},
		{"", "", ""},
	} {
		m, name, ok := BuiltIn().ByKey(tt.key)
		if ok != (tt.model != "") || ok && (m.Name() != tt.model || name != tt.name) {
			t.Errorf("%q: %v, %q, %v; want %q, %q", tt.key, m, name, ok, tt.model, tt.name)
		}
	}
}

func TestKeysLeadBack(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		v := drawValue(t, m)
		key, err := m.Key(v)
		if err != nil {
			if len(Fields(err)) == 0 {
				t.Fatalf("%s: error without a field: %v", m.Name(), err)
			}
			return
		}
		found, name, ok := BuiltIn().ByKey(key)
		if !ok || found != m {
			t.Fatalf("%q of %s is of %v, %v", key, m.Name(), found, ok)
		}
		if again, ok := m.NameOf(key); !ok || again != name || m.KeyOf(name) != key {
			t.Fatalf("%q: names %q and %q, %v; key again %q", key, name, again, ok, m.KeyOf(name))
		}
		data, err := m.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		back, err := BuiltIn().Decode(key, data)
		if err != nil || !proto.Equal(v, back) {
			t.Fatalf("%s %s: %v, %v", key, data, back, err)
		}
	})
}

func TestPrefixesDoNotNest(t *testing.T) {
	for _, m := range BuiltIn().All() {
		if found, name, ok := BuiltIn().ByKey(m.KeyOf("x")); !ok || found != m || m.Singleton() != (name == "") {
			t.Errorf("%s: its key is of %v, name %q, %v", m.Name(), found, name, ok)
		}
	}
}

func TestForAndForMessage(t *testing.T) {
	if got := For[*l3.Route]().Name(); got != "linux.l3.route" {
		t.Errorf("model of l3.Route is %s", got)
	}
	for _, m := range BuiltIn().All() {
		if found, ok := BuiltIn().ForMessage(m.New()); !ok || found != m {
			t.Errorf("%s: its message is of %v, %v", m.Name(), found, ok)
		}
		if found, ok := BuiltIn().ByName(m.Name()); !ok || found != m {
			t.Errorf("%s: by name %v, %v", m.Name(), found, ok)
		}
	}
}

func TestKeyOfAnotherModelsValue(t *testing.T) {
	if key, err := For[*l3.Route]().Key(&l3.ARPEntry{}); !errors.Is(err, ErrNoModel) {
		t.Errorf("key %q, %v; want ErrNoModel", key, err)
	}
}
