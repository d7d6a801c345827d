package rest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/proto/ligato/linux/l3"
	"github.com/keyplane/keyplane/scheduler"
)

var update = flag.Bool("update", false, "write what is answered into the golden files")

// A life is what the golden files show: values that stand, wait, fail, are invalid,
// are noticed; that changed and went; and a resync that finds something foreign.
func (w *world) life() {
	dummy := interfaces.Interface_DUMMY
	w.must(w.commit("a route that waits",
		&l3.Route{OutgoingInterface: "if1", DstNetwork: "10.2.0.0/16", GwAddr: "10.0.0.2"},
		&l3.Route{OutgoingInterface: "if9", DstNetwork: "10.9.0.0/16"}))
	<-time.After(time.Second)
	w.must(w.commit("its interface",
		&interfaces.Interface{Name: "if1", Type: dummy, Enabled: true, IpAddresses: []string{"10.0.0.1/24"}}))
	<-time.After(time.Second)
	w.broken[ifPrefix+"if2"] = true
	if w.commit("one that fails, one that is invalid",
		&interfaces.Interface{Name: "if2", Type: dummy}, &interfaces.Interface{Name: "if3", Type: dummy, Mtu: 10000}) == nil {
		w.t.Fatal("nothing failed")
	}
	if _, err := w.sched.Retry(w.t.Context()); err == nil {
		w.t.Fatal("the broken interface did not fail again")
	}
	synctest.Wait()
	w.sched.Observe(scheduler.Observed{Key: "linux/interface/host-name/eth0", Value: &emptypb.Empty{}})
	<-time.After(time.Hour)
	w.broken["route"] = true
	delete(w.broken, ifPrefix+"if2") // a resync tries again what failed
	w.stands[ifPrefix+"foreign"] = &interfaces.Interface{Name: "foreign", Type: dummy}
	status, resynced := w.ask("POST", "/scheduler/downstream-resync?retry=0&verbose=1", "")
	compare(w.t, "resync.json", fmt.Sprintf("%d\n%s", status, resynced))
	delete(w.broken, "route")
	// Otherwise the routes would be read back again at a random moment.
	_, err := w.sched.Commit(w.t.Context(), scheduler.Txn{Description: "read back again", Refresh: true})
	w.must(err)
	<-time.After(time.Second)
	w.must(w.commit("a change",
		&interfaces.Interface{Name: "if1", Type: dummy, Enabled: true, IpAddresses: []string{"10.0.0.1/24"}, Mtu: 1400}))
	w.broken[ifPrefix+"if2"] = true
	if w.commit("a change that fails", &interfaces.Interface{Name: "if2", Type: dummy, Mtu: 1400}) == nil {
		w.t.Fatal("nothing failed")
	}
}

const planned = `
linuxConfig:
  interfaces:
    - {name: if9, type: DUMMY}
    - {name: if4, type: DUMMY, mtu: 10000}
    - {name: if5, type: DUMY}
`

// Each path has at least one file here; each shape occurs in one.
func TestGolden(t *testing.T) {
	tests := []struct{ file, method, url, body string }{
		{"index.html", "GET", "/", ""},
		{"version.json", "GET", "/info/version", ""},
		{"models.json", "GET", "/info/models", ""},
		{"models-none.json", "GET", "/info/models?class=none", ""},
		{"model.json", "GET", "/info/models/govppmux.stats", ""},
		{"model-unknown.json", "GET", "/info/models/linux.l3.rout", ""},
		{"sources.json", "GET", "/sources", ""},
		{"sources-key.json", "GET", "/sources?key=/vnf-agent/vpp1/config/linux/interfaces/v2/interface/if1", ""},
		{"sources-prefix.json", "GET", "/sources?key-prefix=config/", ""},
		{"sources-none.json", "GET", "/sources?key=config/nothing", ""},
		{"dump.json", "GET", "/scheduler/dump", ""},
		{"dump-sb.json", "GET", "/scheduler/dump?descriptor=interface", ""},
		{"dump-nb.json", "GET", "/scheduler/dump?key-prefix=config/linux/l3/v2/route/&view=NB", ""},
		{"dump-cached.json", "GET", "/scheduler/dump?descriptor=host&view=cached", ""},
		{"dump-none.json", "GET", "/scheduler/dump?key-prefix=config/none/", ""},
		{"dump-twice.json", "GET", "/scheduler/dump?descriptor=route&descriptor=host", ""},
		{"status.json", "GET", "/scheduler/status?key-prefix=&key=", ""},
		{"status-key.json", "GET", "/scheduler/status?key=config/linux/interfaces/v2/interface/if1", ""},
		{"status-prefix.json", "GET", "/scheduler/status?key-prefix=config/linux/l3/v2/route/", ""},
		{"status-unknown.json", "GET", "/scheduler/status?key=config/nothing", ""},
		{"history.json", "GET", "/scheduler/txn-history", ""},
		{"history-one.json", "GET", "/scheduler/txn-history?seq-num=1", ""},
		{"history-since.json", "GET", "/scheduler/txn-history?since=946684800500000000&until=946684801500000000", ""},
		{"history-unknown.json", "GET", "/scheduler/txn-history?seq-num=4711", ""},
		{"timeline.json", "GET", "/scheduler/key-timeline?key=config/linux/l3/v2/route/10.2.0.0/16/if1", ""},
		{"timeline-interface.json", "GET", "/scheduler/key-timeline?key=config/linux/interfaces/v2/interface/if1", ""},
		{"timeline-then.json", "GET", "/scheduler/key-timeline?key=config/linux/interfaces/v2/interface/if1&time=946684801500000000", ""},
		{"timeline-before.json", "GET", "/scheduler/key-timeline?key=config/linux/interfaces/v2/interface/if1&time=1", ""},
		{"snapshot.json", "GET", "/scheduler/graph-snapshot", ""},
		{"snapshot-then.json", "GET", "/scheduler/graph-snapshot?time=946684800500000000", ""},
		{"flag-stats.json", "GET", "/scheduler/flag-stats?flag=value-state", ""},
		{"flag-stats-prefix.json", "GET", "/scheduler/flag-stats?flag=descriptor&prefix=linux/&prefix=config/linux/l3/", ""},
		{"stats.json", "GET", "/scheduler/stats", ""},
		{"graph.svg", "GET", "/scheduler/graph", ""},
		{"graph.dot", "GET", "/scheduler/graph?format=dot", ""},
		{"graph-txn.dot", "GET", "/scheduler/graph?format=raw&txn=1", ""},
		{"explain.json", "GET", "/scheduler/explain?key=/vnf-agent/vpp1/config/linux/l3/v2/route/10.9.0.0/16/if9", ""},
		{"explain.txt", "GET", "/scheduler/explain?format=text&key=config/linux/l3/v2/route/10.9.0.0/16/if9", ""},
		{"explain-declared.json", "GET", "/scheduler/explain?key=config/linux/interfaces/v2/interface/if1", ""},
		{"explain-declared.txt", "GET", "/scheduler/explain?format=text&key=config/linux/interfaces/v2/interface/if2", ""},
		{"plan.json", "POST", "/scheduler/plan", planned},
		{"validate.json", "POST", "/scheduler/validate", planned},
		{"plan.txt", "POST", "/scheduler/plan?format=text", planned},
		{"configuration.yaml", "GET", "/configuration", ""},
		{"configuration-secrets.json", "GET", "/configuration?secrets=1", ""},
		{"configuration-validate.json", "POST", "/configuration/validate", planned},
		{"configuration-valid.json", "POST", "/configuration/validate", "linuxConfig: {interfaces: [{name: a, type: DUMMY}]}"},
		{"jsonschema-onlyjson.json", "GET", "/info/configuration/jsonschema?fieldnames=onlyjson", ""},
		{"openapi.json", "GET", "/openapi.json", ""},
		{"liveness.json", "GET", "/liveness", ""},
		{"readiness.json", "GET", "/readiness", ""},
		{"log-list.json", "GET", "/log/list", ""},
		{"log-set.json", "PUT", "/log/etcd/warn", ""},
		{"log-unknown.json", "PUT", "/log/none/warn", ""},
		{"log-level.json", "PUT", "/log/etcd/loud", ""},
		{"vpp-info.json", "GET", "/vpp/info", ""},
		{"vpp-proxy.json", "CONNECT", "/_goRPC_", ""},
		{"telemetry.json", "GET", "/vpp/telemetry", ""},
		{"telemetry-memory.json", "GET", "/vpp/telemetry/memory", ""},
		{"telemetry-runtime.json", "GET", "/vpp/telemetry/runtime", ""},
		{"telemetry-nodecount.json", "GET", "/vpp/telemetry/nodecount", ""},
		{"govppmux.json", "GET", "/govppmux/stats", ""},
		{"stats-linux.json", "GET", "/stats/linux/interfaces", ""},
		{"stats-configurator.json", "GET", "/stats/configurator", ""},
		{"health.txt", "GET", "/health", ""},
		{"metrics.txt", "GET", "/metrics", ""},
		{"metrics-model.json", "GET", "/metrics/govppmux.stats", ""},
		{"metrics-none.json", "GET", "/metrics/none", ""},
		{"values.json", "GET", "/scheduler/values?why=1", ""},
		{"values-search.json", "GET", "/scheduler/values?search=IF2+interfaces", ""},
		{"values-states.json", "GET", "/scheduler/values?state=PENDING&state=FAILED&offset=1&limit=1", ""},
		{"values-beyond.json", "GET", "/scheduler/values?offset=18446744073709551615", ""},
		{"values-state.json", "GET", "/scheduler/values?state=pending", ""},
		{"values-limit.json", "GET", "/scheduler/values?limit=1001", ""},
		{"values-why.json", "GET", "/scheduler/values?why=1&limit=201", ""},
		{"value.json", "GET", "/scheduler/value?key=/vnf-agent/vpp1/config/linux/interfaces/v2/interface/if1", ""},
		{"value-pending.json", "GET", "/scheduler/value?key=" + routePrefix + "10.9.0.0/16/if9", ""},
		{"value-none.json", "GET", "/scheduler/value?key=linux/interface/state/if9/UP", ""},
		{"transactions.json", "GET", "/scheduler/transactions?limit=3&offset=1", ""},
		{"operations.json", "GET", "/scheduler/operations?seq-num=1&limit=2&offset=1", ""},
		{"operations-planned.json", "GET", "/scheduler/operations?seq-num=3&list=planned", ""},
		{"operations-none.json", "GET", "/scheduler/operations?seq-num=99", ""},
		{"operations-which.json", "GET", "/scheduler/operations", ""},
		{"login.json", "GET", "/login", ""},
		{"authenticate.json", "POST", "/authenticate", `{"username": "a", "password": "b"}`},
		{"logout.json", "POST", "/logout", ""},
		{"dump-linux-interfaces.json", "GET", "/dump/linux/v2/interfaces", ""},
		{"dump-linux-routes.json", "GET", "/dump/linux/v2/routes", ""},
		{"dump-vpp-none.json", "GET", "/dump/vpp/v2/interfaces", ""},
		{"plan-list.txt", "POST", "/scheduler/plan?format=text", `[{"key": "/vnf-agent/vpp1/config/linux/interfaces/v2/interface/if1", "value": null}]`},
		{"plan-replace.txt", "POST", "/scheduler/plan?format=text&replace=1", `{"data": []}`},
	}
	inWorld(t, func(w *world) {
		w.life()
		for _, tt := range tests {
			status, answer := w.ask(tt.method, tt.url, tt.body)
			compare(t, tt.file, fmt.Sprintf("%s %s\n%d\n%s", tt.method, tt.url, status, answer))
		}
		o := w.options()
		o.Secrets = true // as on the agent's socket
		w.handler = Handler(o)
		for file, line := range map[string]string{"vpp-command": `"show version"`, "vpp-command-none": `""`, "vpp-command-failed": `"show run"`} {
			status, answer := w.ask("POST", "/vpp/command", `{"vppclicommand": `+line+`}`)
			compare(t, file+".json", fmt.Sprintf("POST /vpp/command\n%d\n%s", status, answer))
		}
	})
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n%s\nwant\n%s", file, got, want)
	}
}
