package jsonschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/sample"
)

// compile returns the schema as a library reads it.
func compile(t *testing.T, names Names) *jsonschema.Schema {
	t.Helper()
	text, err := json.Marshal(Of(models.BuiltIn(), names))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("configuration.json", doc); err != nil {
		t.Fatal(err)
	}
	out, err := c.Compile("configuration.json")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSchema checks documents with each choice of names.
func TestSchema(t *testing.T) {
	for _, tt := range []struct {
		doc               string
		both, proto, json bool
	}{
		{`linuxConfig: {routes: [{outgoingInterface: a, dstNetwork: 10.0.0.0/8, metric: 3}]}`, true, false, true},
		{`linux_config: {routes: [{outgoing_interface: a, dst_network: 10.0.0.0/8}]}`, true, true, false},
		{`vppConfig: {interfaces: [{name: a, type: MEMIF, mtu: 9000, memif: {id: 1, master: true}}]}`, true, false, true},
		{`vppConfig: {interfaces: [{name: a, type: 2}], nat44Global: {forwarding: true}, Peer_list: []}`, true, false, true},
		{`{}`, true, true, true},
		{`vppConfig: {interfaces: [{name: a, type: MEMFI}]}`, false, false, false},
		{`vppConfig: {interfaces: [{name: a, mtu: -1}]}`, false, false, false},
		{`vppConfig: {interfaces: [{name: a}]}`, false, false, false},               // no type
		{`vppConfig: {interfaces: [{type: 2}]}`, false, false, false},               // no name
		{`linuxConfig: {routes: [{outgoing_interface: a}]}`, false, false, false},   // no network
		{`linuxConfig: {routes: [{dst_network: 10.0.0.0/8}]}`, false, false, false}, // no interface
		{`linuxConfig: {routes: [{outgoingInterface: a, dst_network: 10.0.0.0/8}]}`, true, false, false},
		{`vppConfig: {interfaces: {name: a}}`, false, false, false},
		{`vppConfig: {interface: []}`, false, false, false},
		{`otherConfig: {}`, false, false, false},
	} {
		var doc any
		if err := yaml.Unmarshal([]byte(tt.doc), &doc); err != nil {
			t.Fatal(err)
		}
		for names, want := range map[Names]bool{BothNames: tt.both, ProtoNames: tt.proto, JSONNames: tt.json} {
			if err := compile(t, names).Validate(asJSON(doc)); (err == nil) != want {
				t.Errorf("%s with names %d: %v, want valid %t", tt.doc, names, err, want)
			}
		}
	}
}

// TestSamplesAreValid has the schema accept every sample, and refuse it with another field, and with
// a number beyond its limits.
func TestSamplesAreValid(t *testing.T) {
	schema := compile(t, BothNames)
	for _, m := range models.BuiltIn().All() {
		group, field := m.ConfigField()
		if field == "" {
			continue
		}
		all, err := sample.All(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range all {
			text, err := m.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			whole := func(value string) any {
				if !m.Singleton() {
					value = "[" + value + "]"
				}
				doc, err := jsonschema.UnmarshalJSON(strings.NewReader(fmt.Sprintf(`{%q: {%q: %s}}`, group, field, value)))
				if err != nil {
					t.Fatal(err)
				}
				return doc
			}
			if err := schema.Validate(whole(string(text))); err != nil {
				t.Errorf("%s: %v", m.Name(), err)
			}
			if schema.Validate(whole(strings.Replace(string(text), "{", `{"no_field": 1,`, 1))) == nil {
				t.Errorf("%s: another field is accepted", m.Name())
			}
		}
	}
	for _, doc := range []string{
		`{"vppConfig": {"VRRPEntry_list": [{"interface": "a", "vr_id": 256, "priority": 1, "interval": 10}]}}`,
		`{"vppConfig": {"VRRPEntry_list": [{"interface": "a", "vr_id": 1, "priority": 1, "interval": 9}]}}`,
		`{"vppConfig": {"acls": [{"name": "` + strings.Repeat("x", 64) + `"}]}}`,
		`{"linuxConfig": {"routes": [{"outgoing_interface": "a", "dst_network": "10.0.0.0/8", "gw_addr": "gateway"}]}}`,
		`{"data": [{"value": 1}]}`,
	} {
		in, err := jsonschema.UnmarshalJSON(strings.NewReader(doc))
		if err != nil {
			t.Fatal(err)
		}
		if schema.Validate(in) == nil {
			t.Errorf("%s is accepted", doc)
		}
	}
}

// asJSON converts the numbers and maps of YAML.
func asJSON(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprint(v, err))
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	return out
}

func TestUnderscored(t *testing.T) {
	for name, want := range map[string]string{"vppConfig": "vpp_config", "nat44Global": "nat44_global", "Peer_list": "Peer_list", "DNSCache": "DNSCache"} {
		if got := underscored(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
