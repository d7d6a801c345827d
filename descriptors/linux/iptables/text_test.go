package iptables

import (
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/linux/iptables/internal/ruletext"
)

func TestMarks(t *testing.T) {
	for _, m := range []mark{
		{label: "vpp1", name: "in", declared: "0011223344556677", rules: 2},
		{label: "a/b c", name: "x/y #\"'\\ é", installation: "0123456789abcdef", declared: "00", kernel: "11", in: "INPUT", policy: "DROP", was: "ACCEPT"},
	} {
		comment, rest, ok := commentOf(ruletext.Join(append(commented(m.String()), "-j", "x")))
		back, parsed := parseMark(comment)
		if !ok || !parsed || back != m || !slices.Equal(rest, []string{"-j", "x"}) {
			t.Errorf("%+v\n%s\n%+v", m, comment, back)
		}
	}
	for _, comment := range []string{"", "hello", "/vnf-agent/", "/vnf-agent/vpp1", "/vnf-agent/%zz/x"} {
		if m, ok := parseMark(comment); ok {
			t.Errorf("%q: %+v", comment, m)
		}
	}
}

// FuzzListing holds that no output of iptables-save stops the agent.
func FuzzListing(f *testing.F) {
	f.Add("# c\n*filter\n:INPUT ACCEPT [0:0]\n:a - [0:0]\n-A INPUT -m comment --comment \"/vnf-agent/l/n\" -j a\n-A a -m comment --comment \"/vnf-agent/l/n rules=0\"\nCOMMIT\n")
	f.Fuzz(func(_ *testing.T, text string) {
		for _, m := range parse(text).marked(false) {
			m.intact(false)
			m.entered(m.in)
		}
	})
}

func TestComplaints(t *testing.T) {
	for said, want := range map[string]int{
		"iptables-restore: line 3 failed\n": 3,
		"iptables-restore v1.8.9 (legacy): unknown option \"--x\"\nError occurred at line: 12\nTry `iptables-restore -h' for more information.\n": 12,
		"iptables-restore v1.8.9 (nf_tables): \nline 5: RULE_APPEND failed (Invalid argument): rule in chain b\n":                                 5,
		"Another app is currently holding the xtables lock.\n":                                                                                    0,
	} {
		text := complaint(said)
		if lineOf(text) != want || strings.Contains(text, "v1.8.9") || strings.Contains(text, "Try") {
			t.Errorf("%s: line %d, want %d", text, lineOf(text), want)
		}
	}
}
