package vpp_test

import (
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit/readme"
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
	examples := readme.Examples(t, file)
	if len(examples) <= others {
		t.Fatalf("%s shows %d examples", file, len(examples))
	}
	for _, item := range examples[others] {
		out = append(out, item.Key, string(item.Value))
	}
	return out
}
