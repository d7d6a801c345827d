package vpp_test

import (
	"os"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/structured"
	"github.com/keyplane/keyplane/models/structured/document"
	"github.com/keyplane/keyplane/scheduler"
)

// What a README shows can be typed in: each value comes to stand, with all its parts.
func TestREADMEs(t *testing.T) {
	simulated.NeedTAPs(t)
	onEachVPP(t, func(t *testing.T, vpp *simulated.VPP) {
		a := startAgent(t, vpp.Socket)
		awaitReady(t, a)
		for _, file := range []string{
			"iface/README.md", "l2/README.md", "acl/README.md", "abf/README.md", "l3/README.md", "stn/README.md",
			"dns/README.md",
			"ipfix/README.md",
			"ipsec/README.md",
			"srv6/README.md",
			"nat/README.md",
			"wireguard/README.md",
			"punt/README.md",
		} {
			if file == "wireguard/README.md" && strings.HasSuffix(t.Name(), "/22.02") {
				continue // that release has other messages for peers
			}
			values := shownIn(t, file)
			a.want(true, values...)
			for i := 0; i < len(values); i += 2 {
				a.expectState(values[i], scheduler.Configured)
			}
			for _, s := range a.sched.Statuses("vpp/") {
				if s.State != scheduler.Configured && s.State != scheduler.Obtained {
					t.Errorf("%s: %s is %s: %v", file, s.Key, s.State, s.Err)
				}
			}
		}
	})
}

// shownIn are the keys and values, by turns, that a README shows as its first YAML.
func shownIn(t *testing.T, file string) (out []string) {
	t.Helper()
	return shownAt(t, file, 0)
}

// shownAt is shownIn for the YAML behind this number of others.
func shownAt(t *testing.T, file string, others int) (out []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	examples := strings.Split(string(text), "```yaml\n")
	if len(examples) < others+2 {
		t.Fatalf("%s shows %d examples", file, len(examples)-1)
	}
	example, _, ok := strings.Cut(examples[others+1], "```")
	items, errs := structured.For(models.BuiltIn()).Parse([]byte(example), document.YAML)
	if !ok || len(errs) > 0 || len(items) == 0 {
		t.Fatalf("%s shows %d values, %v", file, len(items), errs)
	}
	for _, item := range items {
		if item.Err != nil {
			t.Fatalf("%s: %v", file, item.Err)
		}
		out = append(out, item.Key, string(item.Value))
	}
	return out
}
