package models

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/vpp/nat"
)

// listOf returns a JSON list of n entries.
func listOf(n int, entry string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(entry+",", n), ",") + "]"
}

func TestListsAreBounded(t *testing.T) {
	const most = MaxEntries
	const allowed = "expected at most 32,768 entries; it has "
	for name, tt := range map[string]struct{ model, data, want string }{
		"at the bound":                    {"linux.interfaces.interface", `{"name":"a","ip_addresses":` + listOf(most, `"x"`) + `}`, ""},
		"one more":                        {"linux.interfaces.interface", `{"name":"a","ip_addresses":` + listOf(most+1, `"x"`) + `}`, "ip_addresses: " + allowed + "32,769"},
		"as it is spelled":                {"linux.interfaces.interface", `{"name":"a","ipAddresses":` + listOf(100_000, `1`) + `}`, "ipAddresses: " + allowed + "100,000"},
		"the shortest":                    {"linux.interfaces.interface", `{"ip_addresses":` + listOf(most+1, `1`) + `}`, "ip_addresses: " + allowed + "32,769"},
		"only the first":                  {"linux.interfaces.interface", `{"a":` + listOf(most+1, `1`) + `,"b":` + listOf(2*most, `1`) + `}`, "a: " + allowed + "32,769"},
		"in a list":                       {"vpp.nat.dnat44", `{"st_mappings":[{},{"local_ips":` + listOf(most+1, `{"p":[1,2]}`) + `,"x":1}]}`, "st_mappings[1].local_ips: " + allowed + "32,769"},
		"the list of lists":               {"vpp.nat.dnat44", `{"st_mappings":` + listOf(most+2, `{"local_ips":[]}`) + `}`, "st_mappings: " + allowed + "32,770"},
		"an object":                       {"vpp.nat.dnat44", `{"label":{` + strings.TrimSuffix(strings.Repeat(`"a":1,`, most+1), ",") + `}}`, "label: " + allowed + "32,769"},
		"the value itself":                {"vpp.nat.dnat44", `{` + strings.TrimSuffix(strings.Repeat(`"a":[{},1],`, most+5), ",") + `}`, "the value: " + allowed + "32,773"},
		"brackets in texts, at the bound": {"linux.interfaces.interface", `{"name":"]\\","ip_addresses":` + listOf(most, `"[,]\"}\\"`) + `}`, ""},
		"brackets in texts, one more":     {"linux.interfaces.interface", `{"name":"]\\","ip_addresses":` + listOf(most+1, `"[,]\"}\\"`) + `}`, "ip_addresses: " + allowed + "32,769"},
		"cut off":                         {"linux.interfaces.interface", `{"ip_addresses":` + strings.TrimSuffix(listOf(most+1, `1`), "]"), "ip_addresses: " + allowed + "32,769"},
		"after a fault":                   {"linux.interfaces.interface", `{"ip_addresses":]` + listOf(most+1, `1`), "not a JSON object"},
	} {
		m, _ := BuiltIn().ByName(tt.model)
		_, err := m.Unmarshal([]byte(tt.data))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// Messages of programs have the same bound.
func TestListsOfMessagesAreBounded(t *testing.T) {
	locals := slices.Repeat([]*nat.DNat44_StaticMapping_LocalIP{{}}, MaxEntries+1)
	for want, m := range map[string]proto.Message{
		"ip_addresses: expected at most 32,768 entries; it has 32,769":             &interfaces.Interface{IpAddresses: make([]string, MaxEntries+1)},
		"st_mappings[0].local_ips: expected at most 32,768 entries; it has 32,769": &nat.DNat44{StMappings: []*nat.DNat44_StaticMapping{{LocalIps: locals}}},
	} {
		if err := Check(m); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := Check(&interfaces.Interface{IpAddresses: make([]string, MaxEntries)}); err != nil {
		t.Error(err)
	}
}

// A value with many names does not take a map of all of them.
func TestSpellingKeepsFewNames(t *testing.T) {
	var data strings.Builder
	for i := range 10_000 {
		data.WriteString(`{"n` + strings.Repeat("x", i%100) + string(rune('a'+i%26)) + `":`)
	}
	if got := len(spellingOf([]byte(data.String())).names); got > mostSpelled {
		t.Errorf("%d names, want at most %d", got, mostSpelled)
	}
}
