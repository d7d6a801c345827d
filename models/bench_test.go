package models_test

import (
	"strings"
	"testing"

	"github.com/keyplane/keyplane/models"
)

// What an agent does with each key of a store when it starts.
func BenchmarkDecode(b *testing.B) {
	for _, bm := range []struct{ name, key, value string }{
		{"linux-route", "config/linux/l3/v2/route/10.1.3.0/24/veth1",
			`{"outgoing_interface":"veth1","scope":"GLOBAL","dst_network":"10.1.3.0/24","gw_addr":"192.168.22.1","metric":100}`},
		{"vpp-interface", "config/vpp/v2/interfaces/memif1",
			`{"name":"memif1","type":"MEMIF","enabled":true,"phys_address":"62:89:c6:a3:6d:5c","ip_addresses":["10.1.0.1/24","fd00::1/64"],` +
				`"mtu":1500,"vrf":1,"memif":{"master":true,"id":1,"socket_filename":"/run/vpp/memif.sock","ring_size":1024}}`},
	} {
		b.Run(bm.name, func(b *testing.B) {
			data := []byte(bm.value)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := models.BuiltIn().Decode(bm.key, data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What the bound of lists costs a value of a megabyte.
func BenchmarkLongValue(b *testing.B) {
	mapping := `{"external_ip":"198.51.100.1","external_port":1,"local_ips":[{"local_ip":"10.0.0.1","local_port":1,"probability":1}],"protocol":"TCP"},`
	data := []byte(`{"label":"a","st_mappings":[` + strings.TrimSuffix(strings.Repeat(mapping, 10_000), ",") + `]}`)
	m, _ := models.BuiltIn().ByName("vpp.nat.dnat44")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Unmarshal(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkByKey(b *testing.B) {
	for _, key := range []string{"config/linux/l3/v2/route/10.1.3.0/24/veth1", "config/vpp/v2/proxyarp-global"} {
		b.Run(key, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, ok := models.BuiltIn().ByKey(key); !ok {
					b.Fatal("no model")
				}
			}
		})
	}
}

func BenchmarkMarshal(b *testing.B) {
	m, _ := models.BuiltIn().ByName("linux.l3.route")
	v, err := m.Unmarshal([]byte(`{"outgoing_interface":"veth1","dst_network":"10.1.3.0/24","gw_addr":"192.168.22.1","metric":100}`))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Marshal(v); err != nil {
			b.Fatal(err)
		}
	}
}
