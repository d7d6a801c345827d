package vpp_test

import (
	"testing"

	vppdns "go.fd.io/govpp/binapi/dns"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/scheduler"
)

// TestDNSCacheOverRestarts has the agent, VPP and somebody else do away with the cache. The
// agent's settings say which servers VPP has.
func TestDNSCacheOverRestarts(t *testing.T) { onEachVPP(t, dnsCacheOverRestarts) }

func dnsCacheOverRestarts(t *testing.T, vpp *simulated.VPP) {
	const key, first, second = "config/vpp/dns/v1/dnscache", `{"upstream_dns_servers":["10.0.0.53"]}`, `{"upstream_dns_servers":["10.0.0.54"]}`
	notes := memories{settings: notebook{}, applied: notebook{}}
	has := func(want string) {
		t.Helper()
		if vpp.Sim != nil && vpp.Show("show dns") != want {
			t.Errorf("VPP has\n%s; expected\n%s", vpp.Show("show dns"), want)
		}
	}
	start := func() *agent {
		a := startAgentKnowing(t, vpp.Socket, notes)
		awaitReady(t, a)
		return a
	}
	a := start()
	if !a.canHave(t, vpp, configuration{key, first}) {
		return
	}
	a.stop()
	vpp.Counts()
	a = start()
	a.want(true, key, first)
	expectOnlyReads(t, vpp)

	a.stop()
	a = start()
	a.want(true, key, second)
	has("enabled true\nserver 10.0.0.54\n")

	vpp.Ask(vpp.Dial(), &vppdns.DNSEnableDisable{}, &vppdns.DNSEnableDisableReply{})
	if r, err := a.sched.Commit(t.Context(), scheduler.Txn{Refresh: true}); err != nil || r.Executed.Len() != 1 {
		t.Errorf("after somebody has disabled it: %v, %v", r, err)
	}
	has("enabled true\nserver 10.0.0.54\n")

	if err := vpp.Restart(); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		st, _ := a.sched.Status(key)
		return vpp.Sim == nil || st != nil && vpp.Show("show dns") == "enabled true\nserver 10.0.0.54\n"
	},
		func() string { return "after a restart VPP has\n" + vpp.Show("show dns") })

	a.stop()
	a = start()
	a.want(true) // nobody declares it any more
	has("enabled false\n")
}
