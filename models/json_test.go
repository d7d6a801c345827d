package models

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/proto/ligato/linux/namespace"
)

func TestMarshal(t *testing.T) {
	m, _ := BuiltIn().ByName("linux.interfaces.interface")
	got, err := m.Marshal(&interfaces.Interface{
		Name:      "veth1",
		Type:      interfaces.Interface_VETH,
		Namespace: &namespace.NetNamespace{Type: namespace.NetNamespace_NSID, Reference: "<a & b>"},
		Mtu:       1500,
		Link:      &interfaces.Interface_Veth{Veth: &interfaces.VethLink{PeerIfName: "veth2"}},
	})
	want := `{"name":"veth1","type":"VETH","namespace":{"type":"NSID","reference":"<a & b>"},"mtu":1500,"veth":{"peer_if_name":"veth2"}}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	if got, err := m.Marshal(&l3.Route{}); err == nil {
		t.Errorf("a route is no interface, but marshals to %s", got)
	}
}

func TestUnmarshalTakesAllSpellings(t *testing.T) {
	want := &interfaces.Interface{Name: "veth1", Type: interfaces.Interface_VETH, HostIfName: "v", Mtu: 1500, Enabled: true}
	for _, data := range []string{
		`{"name":"veth1","type":"VETH","host_if_name":"v","mtu":1500,"enabled":true}`,
		`{"name":"veth1","type":1,"hostIfName":"v","mtu":"1500","enabled":true}`,
		"\n{\"mtu\": 1.5e3,\t\"type\": \"VETH\", \"enabled\":true, \"veth\": null, \"name\": \"\\u0076eth1\", \"hostIfName\":\"v\"}\r\n",
	} {
		m, _ := BuiltIn().ByName("linux.interfaces.interface")
		if got, err := m.Unmarshal([]byte(data)); err != nil || !proto.Equal(got, want) {
			t.Errorf("%s: %v, %v", data, got, err)
		}
	}
}

func TestMarshalRoundTrip(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		v := drawValue(t, m)
		data, err := m.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		again, err := m.Marshal(v)
		if err != nil || !bytes.Equal(data, again) {
			t.Fatalf("first %s\nthen %s, %v", data, again, err)
		}
		back, err := m.Unmarshal(data)
		if err != nil || !proto.Equal(v, back) {
			t.Fatalf("%s: %v, %v", data, back, err)
		}
	})
}

// Each error names field, value and what would be right, and is the same in
// every build.
func TestUnmarshalErrors(t *testing.T) {
	for _, tt := range []struct{ name, data, want string }{
		{"empty", "", `not a JSON object: it is empty: expected one such as {"name": ...}`},
		{"blank", " \n", `not a JSON object: it is empty: expected one such as {"name": ...}`},
		{"null", "null", `not a JSON object: it is null: expected one such as {"name": ...}`},
		{"list", `[{"name":"veth1"}]`, `not a JSON object: it is a list: expected one such as {"name": ...}`},
		{"text", `"name"`, `not a JSON object: it is text: expected one such as {"name": ...}`},
		{"number", "-1", `not a JSON object: it is a number: expected one such as {"name": ...}`},
		{"binary", "\x7fELF\x02\x01\x00", `not a JSON object: line 1, column 1: '\x7f' cannot stand here`},
		{"not UTF-8", "{\n \"name\": \"\xe4\"}", `not a JSON object: line 2, column 11: byte 0xe4 is no UTF-8 text`},
		{"last comma", "{\n  \"name\": \"veth1\",\n}", `not a JSON object: line 3, column 1: '}' cannot stand here`},
		{"column in characters", `{"name":"größe" "mtu":1}`, `not a JSON object: line 1, column 17: '"' cannot stand here`},
		{"cut off", `{"name": "veth1"`, `not a JSON object: line 1, column 17: it ends too early`},
		{"cut off in text", `{"name": "ve`, `not a JSON object: line 1, column 13: it ends too early`},
		{"two values", `{"name":"veth1"} {}`, `not a JSON object: line 1, column 18: '{' cannot stand here`},
		{"yaml", "name: veth1", `not a JSON object: line 1, column 2: 'a' cannot stand here`},
		{"unknown field", `{"ip_adresses":[]}`, `ip_adresses: expected a known field; did you mean ip_addresses?`},
		{"unknown field, nothing like it", `{"veth":{"colour":1}}`,
			`veth.colour: expected a known field: peer_if_name, rx_checksum_offloading, tx_checksum_offloading`},
		{"unknown field, unprintable", "{\"veth\":{\"\\u0000\":1}}",
			`veth."\x00": expected a known field: peer_if_name, rx_checksum_offloading, tx_checksum_offloading`},
		{"field twice", `{"host_if_name":"a","hostIfName":"b"}`, `hostIfName: expected the field only once`},
		{"two links", `{"veth":{},"tap":{}}`, `tap: expected only one of veth, tap, vrf_dev`},
		{"number for text", `{"name":1}`, `name is 1; expected text in quotes`},
		{"half a character", `{"name":"\ud800"}`, "name is \"\ufffd\"; expected text in quotes"},
		{"text for bool", `{"enabled":"yes"}`, `enabled is "yes"; expected true or false`},
		{"negative", `{"mtu":-1}`, `mtu is -1; expected a whole number from 0 to 4294967295`},
		{"too large", `{"mtu":4294967296}`, `mtu is 4294967296; expected a whole number from 0 to 4294967295`},
		{"fraction", `{"mtu":"1.5"}`, `mtu is "1.5"; expected a whole number from 0 to 4294967295`},
		{"enum", `{"type":"VET"}`,
			`type is "VET"; expected one of UNDEFINED, VETH, TAP_TO_VPP, LOOPBACK, EXISTING, VRF_DEVICE, DUMMY; did you mean VETH?`},
		{"enum of wrong kind", `{"type":true}`,
			`type is true; expected one of UNDEFINED, VETH, TAP_TO_VPP, LOOPBACK, EXISTING, VRF_DEVICE, DUMMY`},
		{"no list", `{"ip_addresses":"10.0.0.1/24"}`, `ip_addresses is "10.0.0.1/24"; expected a list: [...]`},
		{"in a list", `{"ip_addresses":["10.0.0.1/24",null,{ "a" : 1 }]}`,
			`ip_addresses[1] is null; expected text in quotes; ip_addresses[2] is {"a":1}; expected text in quotes`},
		{"no object", `{"veth":"veth2"}`, `veth is "veth2"; expected an object: {...}`},
		{"several", `{"mtu":"x","enabled":1,"veth":{"peer_if_name":[]}}`,
			`mtu is "x"; expected a whole number from 0 to 4294967295; enabled is 1; expected true or false; veth.peer_if_name is []; expected text in quotes`},
		{"long text", `{"type":"` + strings.Repeat("x", 1000) + `"}`,
			`type is "` + strings.Repeat("x", 80) + `…"; expected one of UNDEFINED, VETH, TAP_TO_VPP, LOOPBACK, EXISTING, VRF_DEVICE, DUMMY`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, _ := BuiltIn().ByName("linux.interfaces.interface")
			if v, err := m.Unmarshal([]byte(tt.data)); err == nil || err.Error() != tt.want {
				t.Errorf("%s: %v\ngot  %v\nwant %s", tt.data, v, err, tt.want)
			}
		})
	}
}

func TestUnmarshalReportsAFewOfManyErrors(t *testing.T) {
	m, _ := BuiltIn().ByName("linux.interfaces.interface")
	data := `{"ip_addresses":[` + strings.Repeat(`1,`, MaxEntries-1) + `1]}`
	_, err := m.Unmarshal([]byte(data))
	if got := len(Fields(err)); got != mostProblems {
		t.Errorf("%d problems reported, want %d", got, mostProblems)
	}
}

func TestUnmarshalErrorsShowLittleOfTheValue(t *testing.T) {
	m, _ := BuiltIn().ByName("linux.interfaces.interface")
	data := `{"ip_addresses":[` + strings.Repeat(`[`+strings.Repeat("1,", 5000)+`1],`, 7) + `[]]}`
	_, err := m.Unmarshal([]byte(data))
	if got := strings.Count(err.Error(), "1,"); got < 50 || got > mostShown/2 {
		t.Errorf("%d bytes of the value in %v", 2*got, err)
	}
}

func TestUnmarshalRefusesHugeValues(t *testing.T) {
	m, _ := BuiltIn().ByName("linux.interfaces.interface")
	data := `{"name":"` + strings.Repeat("x", 10<<20) + `"}`
	_, err := m.Unmarshal([]byte(data))
	if want := "value too large: 10485771 bytes: expected at most 4194304"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
