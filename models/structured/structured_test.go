package structured_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/keyplane/keyplane/internal/testkit/draw"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
)

const office = `# an office
linuxConfig:
  interfaces:
    - name: veth1
      type: VETH
      veth: {peer_if_name: veth2}
      ip_addresses: [10.0.0.1/24]
    - {name: veth2, type: VETH, veth: {peer_if_name: veth1}}
  arp_entries:
    - interface: veth1
      ipAddress: 10.0.0.2
      hw_address: 00:00:00:00:00:02
---
vppConfig:
  nat44Global:
    forwarding: true
  routes: []
`

func TestParse(t *testing.T) {
	items, errs := structured.For(models.BuiltIn()).Parse([]byte(office), document.YAML)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := []string{
		`4 config/linux/interfaces/v2/interface/veth1 {"name":"veth1","type":"VETH","veth":{"peer_if_name":"veth2"},"ip_addresses":["10.0.0.1/24"]}`,
		`8 config/linux/interfaces/v2/interface/veth2 {"name":"veth2","type":"VETH","veth":{"peer_if_name":"veth1"}}`,
		`10 config/linux/l3/v2/arp/veth1/10.0.0.2 {"interface":"veth1","ipAddress":"10.0.0.2","hw_address":"00:00:00:00:00:02"}`,
		`16 config/vpp/nat/v2/nat44-global {"forwarding":true}`,
	}
	var got []string
	for _, it := range items {
		if it.Err != nil {
			t.Error(it.Err)
		}
		got = append(got, fmt.Sprintf("%d %s %s", it.Line, it.Key, it.Value))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Each row has one fault. What it does not touch is read all the same.
func TestFaults(t *testing.T) {
	const route = "config/linux/l3/v2/route/10.1.0.0/16/veth1"
	tests := []struct {
		name, text string
		key        string // of the only item, where there is one
		want       string
	}{
		{"group", "linuxConfg: {}", "", `1:1: unknown field "linuxConfg": did you mean linuxConfig?`},
		{"group far from all", "network: {}", "", `1:1: unknown field "network": expected one of data, linuxConfig, netallocConfig, vppConfig`},
		{"field", "linuxConfig:\n  interface: []", "", `2:3: unknown field "interface": did you mean interfaces?`},
		{"no list", "linuxConfig:\n  routes: {a: 1}", "", `2:11: routes: found a mapping: expected a list: "- " before each value`},
		{"no mapping", "linuxConfig: [1]", "", `1:14: found a list: expected a mapping`},
		{"text", "hello", "", `1:1: found "hello": expected a mapping`},
		{"syntax", "linuxConfig: {", "", `1:15: did not find expected node content`},
		{"no object", "linuxConfig:\n  routes:\n  - hello", "-", `3:5: found "hello": expected a mapping`},
		{"field of a value", "linuxConfig:\n  routes:\n  - outgoing_interface: veth1\n    dst_network: 10.1.0.0/16\n    scop: GLOBAL", route,
			`5:5: scop: expected`},
		{"type", "linuxConfig:\n  routes:\n  - outgoing_interface: veth1\n    dst_network: 10.1.0.0/16\n    metric: much", route, `5:5: metric is "much"; expected`},
		{"nested", "linuxConfig:\n  interfaces:\n  - name: veth1\n    namespace:\n      type: NOWHERE", "config/linux/interfaces/v2/interface/veth1",
			`5:7: namespace.type is "NOWHERE"; expected`},
		{"element", "linuxConfig:\n  interfaces:\n  - name: veth1\n    ipAddresses:\n    - 10.0.0.1/24\n    - {}", "config/linux/interfaces/v2/interface/veth1",
			`6:7: ipAddresses[1] is`},
		{"no JSON", "linuxConfig:\n  interfaces:\n  - name: veth1\n    mtu: .inf", "config/linux/interfaces/v2/interface/veth1", `4:10: found ".inf": expected a finite number`},
		{"what makes the key", "linuxConfig:\n  interfaces:\n  - name: {}\n    mtu: 1500", "-", `3:5: name is`},
		{"misspelled what makes the key", "vppConfig:\n  routes:\n  - outgoing_interfce: if1\n    dst_network: 10.1.0.0/16", "-", `3:5: outgoing_interfce: expected`},
		{"singleton", "vppConfig:\n  nat44Global:\n    forwarding: 7", "config/vpp/nat/v2/nat44-global", `3:5: forwarding is 7; expected`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			items, errs := structured.For(models.BuiltIn()).Parse([]byte(tt.text), document.YAML)
			if tt.key == "" && (len(items) != 0 || len(errs) != 1) || tt.key != "" && (len(items) != 1 || len(errs) != 0) {
				t.Fatalf("%d items, errors %v", len(items), errs)
			}
			for _, it := range items {
				errs = append(errs, it.Err)
				if want := strings.TrimPrefix(tt.key, "-"); it.Key != want {
					t.Errorf("key %q, want %q", it.Key, want)
				}
			}
			var place *document.Error
			if !errors.As(errs[0], &place) || !strings.HasPrefix(errs[0].Error(), tt.want) {
				t.Errorf("got  %v\nwant %s ...", errs[0], tt.want)
			}
		})
	}
}

// TestOldBooleans has the words that are booleans in YAML 1.1 alone. Where text is expected, and where
// they are quoted, they are text.
func TestOldBooleans(t *testing.T) {
	items, errs := structured.For(models.BuiltIn()).Parse([]byte(`linuxConfig:
  interfaces:
    - {name: yes, type: DUMMY, enabled: yes}
    - {name: &on ON, type: DUMMY, enabled: *on, linkOnly: Off}
    - {name: n, type: DUMMY, enabled: y, link_only: NO, <<: {set_dhcp_client: on}}
    - {name: d, type: DUMMY, enabled: "yes"}
    - {name: e, type: DUMMY, enabled: yEs}
vppConfig:
  interfaces:
    - {name: f, type: DPDK, enabled: true, sub: {push_dot1q: on}}
`), document.YAML)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := []struct {
		value    string
		warnings []string
		fails    bool
	}{
		{`{"name":"yes","type":"DUMMY","enabled":true}`, []string{"3:41: yes is taken for true, as in YAML 1.1; write true"}, false},
		{`{"name":"ON","type":"DUMMY","enabled":true,"linkOnly":false}`, []string{"4:14: ON", "4:59: Off is taken for false, as in YAML 1.1; write false"}, false},
		{`{"name":"n","type":"DUMMY","enabled":true,"link_only":false,"set_dhcp_client":"on"}`, []string{"5:39: y", "5:53: NO"}, true},
		{`{"name":"d","type":"DUMMY","enabled":"yes"}`, nil, true},
		{`{"name":"e","type":"DUMMY","enabled":"yEs"}`, nil, true},
		{`{"name":"f","type":"DPDK","enabled":true,"sub":{"push_dot1q":true}}`, []string{"10:62: on"}, false},
	}
	for i, it := range items {
		if string(it.Value) != want[i].value || (it.Err != nil) != want[i].fails || len(it.Warnings) != len(want[i].warnings) {
			t.Errorf("value %d: %s %v, warnings %v", i, it.Value, it.Err, it.Warnings)
			continue
		}
		for j, w := range it.Warnings {
			if !strings.HasPrefix(w.Error(), want[i].warnings[j]) {
				t.Errorf("value %d: warning %v, want %s", i, w, want[i].warnings[j])
			}
		}
	}
}

// TestOldBooleansInPairs has one under a key that says which fields are booleans.
func TestOldBooleansInPairs(t *testing.T) {
	docs, err := document.Read([]byte(`- value: {name: veth1, enabled: yes}
  key: /vnf-agent/vpp1/config/linux/interfaces/v2/interface/veth1
- {key: config/elsewhere, value: {enabled: yes}}
`), document.YAML)
	if err != nil {
		t.Fatal(err)
	}
	items, err := structured.For(models.BuiltIn()).Pairs(document.NewBudget(t.Context()), docs[0])
	if err != nil || len(items) != 2 {
		t.Fatal(items, err)
	}
	if string(items[0].Value) != `{"name":"veth1","enabled":true}` || len(items[0].Warnings) != 1 {
		t.Errorf("%s %v", items[0].Value, items[0].Warnings)
	}
	if string(items[1].Value) != `{"enabled":"yes"}` || len(items[1].Warnings) != 0 {
		t.Errorf("a key of no model: %s %v", items[1].Value, items[1].Warnings)
	}
}

// TestRead has each form in one text, parts for other programs, and an end that may be cut off.
func TestRead(t *testing.T) {
	const text = `x-defaults: &d {type: DUMMY}
.more: [1]
mock1Config: {items: []}
linuxConfig:
  interfaces: [{<<: *d, name: a}]
  gadgets: [{name: a}]
data: [{key: config/b, value: {}}]
---
- {key: config/c}
---
linuxConfg: {}
vppConfig:
`
	got, err := structured.For(models.BuiltIn()).Read(t.Context(), []byte(text), document.YAML)
	if err != nil {
		t.Fatal(err)
	}
	items, faults, ignored := got.All()
	var keys []string
	for _, it := range items {
		keys = append(keys, it.Key)
	}
	if want := "config/linux/interfaces/v2/interface/a config/b config/c"; strings.Join(keys, " ") != want {
		t.Errorf("keys %q, want %s", keys, want)
	}
	texts := func(errs []error) (out string) {
		for _, err := range errs {
			text, _, _ := strings.Cut(err.Error(), ":")
			_, rest, _ := strings.Cut(err.Error(), " ")
			out += text + " " + rest[:min(len(rest), 26)] + "\n"
		}
		return out
	}
	if want := "3 unknown field \"mock1Config\n6 unknown field \"gadgets\": e\n"; texts(ignored) != want {
		t.Errorf("ignored %q, want %q", texts(ignored), want)
	}
	if want := "11 unknown field \"linuxConfg\"\n12 ends with \"vppConfig\", whi\n"; texts(faults) != want || got.Cut == nil {
		t.Errorf("faults %q, want %q", texts(faults), want)
	}
}

// A misspelt name may hide the values of each name that it resembles.
func TestMayHide(t *testing.T) {
	for text, want := range map[string]string{
		"vppConfig: {ipsec_ss: []}": "config/vpp/ipsec/v2/sa/ config/vpp/ipsec/v2/sp/ config/vpp/ipsec/v2/spd/",
		"vppConfig: {routs: []}":    "config/vpp/v2/route/",
		"dta: []":                   "",
	} {
		got, err := structured.For(models.BuiltIn()).Read(t.Context(), []byte(text), document.YAML)
		if err != nil {
			t.Fatal(err)
		}
		_, faults, _ := got.All()
		if len(faults) != 1 {
			t.Fatalf("%s: faults %v", text, faults)
		}
		prefixes := structured.MayHide(faults[0])
		slices.Sort(prefixes)
		if strings.Join(prefixes, " ") != want {
			t.Errorf("%s may hide %q, want %q", text, prefixes, want)
		}
	}
}

func TestOneBadValueLeavesTheOthers(t *testing.T) {
	items, errs := structured.For(models.BuiltIn()).Parse([]byte(strings.Replace(office, "veth: {peer_if_name: veth2}", "mtu: lots", 1)), document.YAML)
	if len(items) != 4 || len(errs) != 0 || items[0].Err == nil || items[0].Key == "" {
		t.Fatalf("%d items, first %+v, errors %v", len(items), items[0], errs)
	}
	for _, it := range items[1:] {
		if it.Err != nil || it.Key == "" {
			t.Errorf("%+v", it)
		}
	}
}

func TestWhatFormatWritesIsReadBack(t *testing.T) {
	items, _ := structured.For(models.BuiltIn()).Parse([]byte(office), document.YAML)
	text, err := structured.For(models.BuiltIn()).Format(items)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "linuxConfig:\n  interfaces:\n    - name: veth1\n      type: VETH\n") {
		t.Errorf("not as a person would write it:\n%s", text)
	}
	sameItems(t, items, text)

	draw.Check(t, func(t *rapid.T) {
		m, _ := models.BuiltIn().ByName("linux.l3.route")
		arp, _ := models.BuiltIn().ByName("linux.l3.arp")
		item := rapid.Custom(func(t *rapid.T) structured.Item {
			text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"yes", "null", "1", "0x1", "a: b", "- a", "# no", " pad ", "x\ny", "\t\n", "\n\tx", "\r", "~"}))
			model, field := m, "gw_addr"
			if rapid.Bool().Draw(t, "arp") {
				model, field = arp, "hw_address"
			}
			object := map[string]string{"interface": "if1", "ip_address": "10.0.0.1"}
			if model == m {
				object = map[string]string{"outgoing_interface": "if1", "dst_network": "10.0.0.0/8"}
			}
			object[field] = text.Draw(t, field)
			return structured.Item{Model: model, Value: jsonOf(object)}
		})
		items := rapid.SliceOf(item).Draw(t, "items")
		text, err := structured.For(models.BuiltIn()).Format(items)
		if err != nil {
			t.Fatal(err)
		}
		sameItems(t, items, text)
	})
}

func TestFormatRefusesWhatHasNoPlace(t *testing.T) {
	for _, m := range models.BuiltIn().All() {
		_, field := m.ConfigField()
		_, err := structured.For(models.BuiltIn()).Format([]structured.Item{{Model: m, Value: []byte("{}")}})
		if (field == "") != (err != nil) {
			t.Errorf("%s: %v", m.Name(), err)
		}
	}
	m, _ := models.BuiltIn().ByName("linux.l3.route")
	for _, value := range []string{"", "{", "{} {}"} {
		if _, err := structured.For(models.BuiltIn()).Format([]structured.Item{{Model: m, Value: []byte(value)}}); err == nil {
			t.Errorf("%q was written", value)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(office))
	f.Add([]byte(`{"linuxConfig": {"routes": [{"dst_network": "::/0", "outgoing_interface": "a"}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, format := range []document.Format{document.YAML, document.JSONText} {
			items, errs := structured.For(models.BuiltIn()).Parse(data, format)
			for _, it := range items {
				if it.Err != nil {
					errs = append(errs, it.Err)
				} else if _, err := models.BuiltIn().Decode(it.Key, it.Value); err != nil {
					t.Fatalf("%q gave %s %s: %v", data, it.Key, it.Value, err)
				}
			}
			for _, err := range errs {
				var place *document.Error
				if !errors.As(err, &place) || place.Line < 1 {
					t.Fatalf("an error without a place: %v", err)
				}
			}
		}
	})
}
