package names

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/session"
	"github.com/keyplane/keyplane/northbound/rest/wire/browse"
)

// catalogue has two models whose values may have the same names.
func catalogue() session.Catalogue {
	return session.Catalogue{
		{Name: "linux.interfaces.interface", KeyPrefix: "config/linux/interface/", NameTemplate: "{{.Name}}"},
		{Name: "linux.l3.route", KeyPrefix: "config/linux/route/", NameTemplate: "{{.DstNetwork}}/{{.OutgoingInterface}}"},
		{Name: "vpp.global", KeyPrefix: "config/vpp/global"},
		{Name: "vpp.interfaces", KeyPrefix: "config/vpp/interface/", NameTemplate: "{{.Name}}"},
	}
}

func values() []browse.ListedValue {
	return []browse.ListedValue{
		{Key: "config/linux/interface/tap1"},
		{Key: "config/linux/interface/tap10"},
		{Key: "config/linux/interface/uplink"},
		{Key: "config/linux/route/10.0.0.0/8/tap1"},
		{Key: "config/vpp/global"},
		{Key: "config/vpp/interface/tap1"},
		{Key: "config/vpp/interface/Loop0"},
		{Key: "linux/interface/state/tap10/UP", Base: "config/linux/interface/tap10"},
		{Key: "linux/interface/state/uplink/UP", Base: "config/linux/interface/uplink"},
	}
}

func TestPick(t *testing.T) {
	for given, want := range map[string]string{
		"config/linux/interface/tap1":                 "config/linux/interface/tap1",
		"/vnf-agent/vpp1/config/linux/interface/tap1": "config/linux/interface/tap1",
		"vnf-agent/vpp1/config/linux/interface/tap1":  "config/linux/interface/tap1",
		"/config/linux/interface/tap1":                "config/linux/interface/tap1",
		"uplink":                                      "config/linux/interface/uplink", // not its derived value
		"tap1":                                        "config/linux/interface/tap1 config/vpp/interface/tap1",
		"vpp.interfaces/tap1":                         "config/vpp/interface/tap1",
		"vpp/interface/tap1":                          "config/vpp/interface/tap1",
		"10.0.0.0/8/tap1":                             "config/linux/route/10.0.0.0/8/tap1",
		"8/tap1":                                      "config/linux/route/10.0.0.0/8/tap1",
		"tap10":                                       "config/linux/interface/tap10",
		"ap10":                                        "config/linux/interface/tap10",
		"loop":                                        "config/vpp/interface/Loop0",
		"vpp loop":                                    "config/vpp/interface/Loop0",
		"route tap":                                   "config/linux/route/10.0.0.0/8/tap1",
		"global":                                      "config/vpp/global",
		"state/uplink":                                "linux/interface/state/uplink/UP",
		"UP":                                          "config/linux/interface/uplink",
		"tap10 up":                                    "linux/interface/state/tap10/UP",
		"none":                                        "",
		"":                                            "",
		" ":                                           "",
		"/vnf-agent/vpp1/config/vpp/no":               "",
	} {
		var got []string
		for _, c := range pick(asInAgent(given), catalogue(), values()) {
			got = append(got, c.Key)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q means %q; expected %q", given, got, want)
		}
	}
}

func TestSimilar(t *testing.T) {
	var all []candidate
	for _, v := range values() {
		model, name := catalogue().ModelAndName(v.Key)
		all = append(all, candidate{v, model, name})
	}
	for given, want := range map[string][]string{
		"uplnk":                      {"uplink"},
		"tap2":                       {"tap1", "10.0.0.0/8/tap1"},
		"config/linux/interface/tap": {"config/linux/interface/tap1"},
		"entirely-different":         nil,
		strings.Repeat("long", 100):  nil,
		"":                           nil,
	} {
		if got := similar(given, all); !slices.Equal(got, want) {
			t.Errorf("%q is similar to %q; expected %q", given, got, want)
		}
	}
}

func TestAmbiguousIsBounded(t *testing.T) {
	var found []candidate
	for i := range 1000 {
		found = append(found, candidate{ListedValue: browse.ListedValue{Key: fmt.Sprintf("config/%03d\x1b", i)}})
	}
	text := ambiguous("config", found).Error()
	if lines := strings.Count(text, "\n") + 1; lines != 12 || !strings.HasSuffix(text, "\nand 990 more") || strings.Contains(text, "\x1b") {
		t.Errorf("%d lines: %s", lines, text)
	}
}
