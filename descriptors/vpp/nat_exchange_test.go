package vpp_test

import (
	"fmt"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/descriptors/vpp/keys"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
)

// Pools get other names, or exchange them, while the agent runs or while none does. VPP knows no names, so it is asked for
// nothing, neither now nor by the next agent.
func TestNATPoolsExchangeNames(t *testing.T) {
	ranges := []string{`"first_ip":"10.6.0.1","last_ip":"10.6.0.4"`, `"first_ip":"10.6.0.5"`, `"first_ip":"10.6.1.1","twice_nat":true`}
	values := func(names ...string) []string {
		out := []string{keys.NAT44Global, `{}`}
		for i, name := range names {
			out = append(out, "config/vpp/nat/v2/nat44-pool/"+name, fmt.Sprintf(`{"name":"%s",%s}`, name, ranges[i]))
		}
		return out
	}
	const running, resynced, connected, late = "the agent runs", "it resyncs", "the next agent is connected", "the next agent is not connected yet"
	for _, when := range []string{running, resynced, connected, late} {
		for _, names := range [][]string{{"b", "a", "c"}, {"b", "c", "a"}, {"d", "b", "c"}, {"b", "d", "c"}} {
			if when == running && names[0] == "b" {
				continue // without a resync, each pool that another one had changes its addresses
			}
			t.Run(fmt.Sprintf("%s, %q", when, names), func(t *testing.T) {
				vpp := simulated.Start(t, "")
				known := memories{deaths: notebook{}, applied: notebook{}, settings: notebook{}}
				a := startAgentKnowing(t, vpp.Socket, known)
				awaitReady(t, a)
				a.want(true, values("a", "b", "c")...)
				if when == connected || when == late {
					a.stop()
					a = startAgentKnowing(t, vpp.Socket, known)
				}
				if when == connected {
					awaitReady(t, a)
				}
				vpp.Counts()
				a.replace(when != running, values(names...)...)
				for i := 0; i < 2*len(names); i += 2 {
					a.awaitState(values(names...)[i], scheduler.Configured)
				}
				expectNoWrites(t, vpp.Counts())
				a.resyncsInSync(vpp)
				a.stop()
				a = startAgentKnowing(t, vpp.Socket, known)
				awaitReady(t, a)
				vpp.Counts()
				a.want(true, values(names...)...)
				expectOnlyReads(t, vpp)
			})
		}
	}
}

// replace declares these values and no others, and reads back first if refresh is set.
func (a *agent) replace(refresh bool, keysAndValues ...string) {
	a.Helper()
	txn := scheduler.Txn{Replace: true, Refresh: refresh}
	for i := 0; i < len(keysAndValues); i += 2 {
		message, err := models.BuiltIn().Decode(keysAndValues[i], []byte(keysAndValues[i+1]))
		if err != nil {
			a.Fatal(err)
		}
		txn.Changes = append(txn.Changes, scheduler.Want(keysAndValues[i], message))
	}
	if _, err := a.sched.Commit(a.Context(), txn); err != nil {
		a.Fatal(err)
	}
}
