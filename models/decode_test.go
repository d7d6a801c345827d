package models

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
)

func TestDecodeErrors(t *testing.T) {
	for _, tt := range []struct {
		name, key, data string
		is              error
		fields          []string
		want            string
	}{
		{
			"class misspelt", "confg/linux/l3/v2/route/10.1.3.0/24/veth1", `{}`, ErrNoModel, nil,
			`no such model: key "confg/linux/l3/v2/route/10.1.3.0/24/veth1": did you mean "config/linux/l3/v2/route/<name>"?`,
		}, {
			"type misspelt", "config/vpp/v2/interface/loop1", `{}`, ErrNoModel, nil,
			`no such model: key "config/vpp/v2/interface/loop1": did you mean "config/vpp/v2/interfaces/<name>"?`,
		}, {
			"no name", "config/vpp/ipsec/v2/sp/", `{}`, ErrNoModel, nil,
			`no such model: key "config/vpp/ipsec/v2/sp/": did you mean "config/vpp/ipsec/v2/sp/<name>"?`,
		}, {
			"name for a singleton", "config/vpp/nat/v2/nat44-global/x", `{}`, ErrNoModel, nil,
			`no such model: key "config/vpp/nat/v2/nat44-global/x": did you mean "config/vpp/nat/v2/nat44-global"?`,
		}, {
			"whole key", "/vnf-agent/vpp1/config/vpp/v2/interfaces/loop1", `{}`, ErrNoModel, nil,
			`no such model: key "/vnf-agent/vpp1/config/vpp/v2/interfaces/loop1": did you mean "config/vpp/v2/interfaces/<name>"?`,
		}, {
			"nothing like it", "foo", `{}`, ErrNoModel, nil,
			`no such model: key "foo": expected one that begins like "config/linux/interfaces/v2/interface/"`,
		}, {
			"other name", "config/vpp/v2/interfaces/loop1", `{"name":"loop2"}`, ErrKeyMismatch, []string{"name"},
			`key and value disagree: key "config/vpp/v2/interfaces/loop1", but the value makes "config/vpp/v2/interfaces/loop2": ` +
				`name is "loop2"; expected the value in the key`,
		}, {
			"other network", "config/linux/l3/v2/route/10.1.3.0/24/veth1", `{"dst_network":"10.1.3.0/25","outgoing_interface":"veth1"}`,
			ErrKeyMismatch, []string{"dst_network"},
			`key and value disagree: key "config/linux/l3/v2/route/10.1.3.0/24/veth1", but the value makes ` +
				`"config/linux/l3/v2/route/10.1.3.0/25/veth1": dst_network is "10.1.3.0/25"; expected the value in the key`,
		}, {
			"network not masked in the key", "config/linux/l3/v2/route/10.1.3.7/24/veth1", `{"dst_network":"10.1.3.7/24","outgoing_interface":"veth1"}`,
			ErrKeyMismatch, []string{"dst_network"},
			`key and value disagree: key "config/linux/l3/v2/route/10.1.3.7/24/veth1", but the value makes ` +
				`"config/linux/l3/v2/route/10.1.3.0/24/veth1": dst_network is "10.1.3.7/24"; expected the value in the key`,
		}, {
			"other network and no interface", "config/linux/l3/v2/route/10.3.0.0/24/veth1", `{"dst_network":"10.33.0.0/24"}`,
			ErrKeyMismatch, []string{"dst_network"},
			`key and value disagree: key "config/linux/l3/v2/route/10.3.0.0/24/veth1", but the value makes ` +
				`"config/linux/l3/v2/route/10.33.0.0/24": dst_network is "10.33.0.0/24"; expected the value in the key`,
		}, {
			"no interface", "config/linux/l3/v2/route/10.3.0.0/24/veth1", `{"dst_network":"10.3.0.0/24"}`,
			ErrKeyMismatch, []string{"outgoing_interface"},
			`key and value disagree: key "config/linux/l3/v2/route/10.3.0.0/24/veth1", but the value makes ` +
				`"config/linux/l3/v2/route/10.3.0.0/24": outgoing_interface is empty; expected the value in the key`,
		}, {
			"other network where a field may be empty", "config/vpp/v2/route/vrf/0/dst/10.1.0.0/24/gw/10.0.0.1",
			`{"dst_network":"10.2.0.0/24","next_hop_addr":"10.0.0.1"}`, ErrKeyMismatch, []string{"dst_network"},
			`key and value disagree: key "config/vpp/v2/route/vrf/0/dst/10.1.0.0/24/gw/10.0.0.1", but the value makes ` +
				`"config/vpp/v2/route/vrf/0/dst/10.2.0.0/24/gw/10.0.0.1": dst_network is "10.2.0.0/24"; expected the value in the key`,
		}, {
			"other number and enum", "config/vpp/v2/vrf-table/id/1/protocol/IPV4", `{"id":2,"protocol":"IPV6"}`,
			ErrKeyMismatch, []string{"id", "protocol"},
			`key and value disagree: key "config/vpp/v2/vrf-table/id/1/protocol/IPV4", but the value makes ` +
				`"config/vpp/v2/vrf-table/id/2/protocol/IPV6": id is 2; expected the value in the key; protocol is IPV6; expected the value in the key`,
		}, {
			"fields in each other's place", "config/vpp/v2/span/a/to/b", `{"interface_from":"b","interface_to":"a"}`,
			ErrKeyMismatch, []string{"interface_from", "interface_to"},
			`key and value disagree: key "config/vpp/v2/span/a/to/b", but the value makes "config/vpp/v2/span/b/to/a": ` +
				`interface_from is "b"; expected the value in the key; interface_to is "a"; expected the value in the key`,
		}, {
			"key not clean", "config/vpp/v2/interfaces/a//b", `{"name":"a//b"}`, ErrKeyMismatch, []string{"name"},
			`key and value disagree: key "config/vpp/v2/interfaces/a//b", but the value makes "config/vpp/v2/interfaces/a/b": ` +
				`name is "a//b"; expected the value in the key`,
		}, {
			"no prefix length", "config/linux/l3/v2/route/10.1.3.0/veth1", `{"dst_network":"10.1.3.0","outgoing_interface":"veth1"}`,
			nil, []string{"dst_network"}, `dst_network is "10.1.3.0"; expected a network with prefix length, such as "10.0.0.0/24"`,
		}, {
			"no network, other optional fields empty", "config/vpp/v2/route/vrf/0/dst/x/", `{}`,
			nil, []string{"dst_network"}, `dst_network is empty; expected a network with prefix length, such as "10.0.0.0/24"`,
		}, {
			"no address", "config/vpp/v2/dhcp-proxy/IPv4/rx-vrf/0", `{"source_ip_address":"10.0.0"}`,
			nil, []string{"source_ip_address"}, `source_ip_address is "10.0.0"; expected an address, such as "10.0.0.1"`,
		}, {
			"name empty", "config/vpp/v2/interfaces/loop1", `{}`, nil, []string{"name"}, `name is required`,
		}, {
			"name leads upwards", "config/vpp/v2/interfaces/loop1", `{"name":"../route/x"}`, nil, []string{"name"},
			`name is "../route/x"; expected a text without "..", since it is part of the key`,
		}, {
			"bad value", "config/vpp/v2/interfaces/loop1", `{"name":"loop1","mtu":{}}`, nil, []string{"mtu"},
			`mtu is {}; expected a whole number from 0 to 4294967295`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := BuiltIn().Decode(tt.key, []byte(tt.data))
			if err == nil || err.Error() != tt.want {
				t.Fatalf("%v\ngot  %v\nwant %s", v, err, tt.want)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%v is not %v", err, tt.is)
			}
			if got := Fields(err); !slices.Equal(got, tt.fields) {
				t.Errorf("fields %q, want %q", got, tt.fields)
			}
		})
	}
}

func TestDecodeErrorsAreShort(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for key, data := range map[string]string{
		long:                                 `{}`,
		"config/vpp/v2/interfaces/" + long:   `{"name":"loop1"}`,
		"config/vpp/v2/interfaces/loop1":     `{"name":"` + long + `"}`,
		"config/vpp/v2/interfaces/loop2":     `{"` + long + `":1}`,
		"config/vpp/v2/interfaces/loop3":     long,
		"config/vpp/v2/vrf-table/id/" + long: `{"id":1}`,
	} {
		if _, err := BuiltIn().Decode(key, []byte(data)); err == nil || len(err.Error()) > 600 {
			t.Errorf("key %.40s…, value %.40s…: error of %d bytes", key, data, len(err.Error()))
		}
	}
}

// A store may hold a great many keys that are not ours.
func TestAKeyOfNoModelCostsLittleUntilItsErrorIsRead(t *testing.T) {
	const most = 10
	if n := testing.AllocsPerRun(10, func() { _, _ = BuiltIn().Decode("config/vpp/acls/v2/acll/a", nil) }); n > most {
		t.Errorf("%v allocations, want at most %d", n, most)
	}
}

// Whatever stands under the key of something else, there is an error or the same key.
func TestDecodeUnderAnotherKey(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		key, err := m.Key(drawValue(t, m))
		if err != nil {
			t.Skip("no key")
		}
		other := drawValue(t, m)
		data, err := m.Marshal(other)
		if err != nil {
			t.Skip("no JSON")
		}
		made, _ := m.Key(other)
		if _, err := BuiltIn().Decode(key, data); (err == nil) != (made == key) {
			t.Fatalf("%s under %s, not %s: %v", data, key, made, err)
		}
	})
}
