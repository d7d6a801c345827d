package fleet_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/cli"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/fleet"
	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/summary"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

// lines returns what the table shows of each label: its first columns.
func lines(table string) string {
	var out []string
	for line := range strings.Lines(table) {
		columns := strings.Split(strings.TrimSpace(line), "  ")
		filled := columns[:0]
		for _, c := range columns {
			if c = strings.TrimSpace(c); c != "" && len(filled) < 4 {
				filled = append(filled, c)
			}
		}
		out = append(out, strings.Join(filled, "|"))
	}
	return strings.Join(out[1:], "\n")
}

// TestTable follows real agents in each kind of store.
func TestTable(t *testing.T) {
	for name, open := range sites() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			label := func(n int) string { return fmt.Sprintf("table-%s-%d", name, n) }
			one, other := s.start(label(1)), s.start(label(2))
			s.put(one.Label, "a=1", "b=2")
			s.put(other.Label, "a=1", "w=waits", "f=fails")
			var out string
			tells := func(args []string, want string) {
				t.Helper()
				s.until(strings.Join(args, " ")+" shows\n"+want, func() bool {
					var code int
					out, _, code = s.agentctl(args...)
					return code == cli.ExitDone && strings.HasPrefix(lines(out), want)
				})
			}
			wrong := label(2) + "|NOT OK|1|1 FAILED, 1 PENDING"
			tells([]string{"--scan"}, label(1)+"|OK|2")
			tells(nil, label(1)+"|OK|2")
			tells([]string{"--not-ok"}, wrong)
			tells([]string{"--labels", "table-*-2"}, wrong)
			if out, problems, code := s.agentctl("--labels", "tabel-*,table-*-1"); code != cli.ExitDone || !strings.HasPrefix(lines(out), label(1)) ||
				!strings.Contains(problems, "agentctl: warning: --labels: tabel-* fits no agent that runs and publishes a summary\n") || strings.Contains(problems, "table-") {
				t.Errorf("a misspelt label: %d, %s%s", code, out, problems)
			}
			if !strings.Contains(out, "config/linux/interfaces/v2/interface/w (") {
				t.Errorf("the table does not show what is PENDING:\n%s", out)
			}

			// An agent that ended stays in the table.
			other.Stop()
			tells([]string{"--labels", other.Label}, label(2)+"|ENDED|1|1 FAILED, 1 PENDING")
			if _, problems, _ := s.agentctl("--labels", other.Label); !strings.Contains(problems, other.Label+" fits no agent that runs") {
				t.Errorf("an agent that ended: %s", problems)
			}
			if _, problems, code := s.agentctl("forget", one.Label); code != cli.ExitFailed || !strings.Contains(problems, "so its agent runs") {
				t.Errorf("forgetting an agent that runs: %d, %s", code, problems)
			}
			if out, problems, code := s.agentctl("forget", other.Label); code != cli.ExitDone || out != "OK\n" {
				t.Errorf("forgetting: %d, %s", code, problems)
			}
			// Its keys do.
			tells([]string{"--scan", "--labels", other.Label}, label(2)+"|UNKNOWN|3 declared")

			out, _, _ = s.agentctl("-o", "json")
			var all []fleet.Agent
			if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != 1 || all[0].Label != one.Label || all[0].States["CONFIGURED"] != 2 || all[0].LastSeen == nil || all[0].Version == "" {
				t.Errorf("JSON is %v:\n%s", err, out)
			}
		})
	}
}

// An agent of vpp-agent 3.5 publishes status and health, and no summary.
func TestScanOfOlderAgents(t *testing.T) {
	s := sites()["etcd"](t)
	for key, value := range map[string]string{
		"old/config/a": "{}", "old/config/b": "{}", "old/config-status/a": `{"key":"config/a","state":"CONFIGURED"}`,
		"old/config-status/b": `{"key":"config/b","state":"PENDING","details":["x"]}`, "old/config-status/c": `nonsense`,
		"old/check/status/v1/agent": `{"build_version":"v3.5.0","state":"OK","start_time":"1700000000","last_update":"1700000100"}`,
		"/vnf-agent-fleet/bad\x1b":  "nonsense",
	} {
		if key[0] != '/' {
			key = "/vnf-agent/" + key
		}
		if err := s.client.Put(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	out, problems, code := s.agentctl("--scan", "-o", "json")
	var all []fleet.Agent
	if err := json.Unmarshal([]byte(out), &all); err != nil || code != cli.ExitDone || len(all) != 1 {
		t.Fatalf("%d, %v, %s%s", code, err, out, problems)
	}
	got := all[0]
	if got.State != "NOT OK" || got.Version != "v3.5.0" || got.States["UNREADABLE"] != 1 || got.Oldest.Key != "config/b" || got.LastSeen.Unix() != 1700000100 || got.Declared != 2 {
		t.Errorf("the older agent is %s", out)
	}
	if !strings.Contains(problems, "not the summary of an agent") || strings.Contains(problems, "\x1b") {
		t.Errorf("said %q", problems)
	}
	if out, _, code := s.agentctl(); code != cli.ExitDone || !strings.HasPrefix(out, "LABEL") {
		t.Errorf("without --scan: %d, %s", code, out)
	}
}

func TestDiff(t *testing.T) {
	s := sites()["etcd"](t)
	s.put("left", "same=1", "other=1", "gone=1")
	s.put("right", "other=2", "new=1")
	// The same value in another form.
	if err := s.client.Put(t.Context(), "/vnf-agent/right/config/linux/interfaces/v2/interface/same", []byte(`{"host_if_name":"1","type":"DUMMY","name":"same"}`)); err != nil {
		t.Fatal(err)
	}
	out, problems, code := s.agentctl("diff", "left", "right")
	const prefix = "config/linux/interfaces/v2/interface/"
	for _, want := range []string{"-   " + prefix + "gone\n", "+   " + prefix + "new\n", "~   " + prefix + "other\n", "~ hostIfName: 1 -> 2\n", "From left to right: 1 to create, 1 to update, 1 to delete.\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("diff does not print %q", want)
		}
	}
	if code != cli.ExitChanges || strings.Contains(out, "same") {
		t.Errorf("diff: code %d, %s\n%s", code, problems, out)
	}
	if out, _, code := s.agentctl("diff", "left", "left"); code != cli.ExitDone || out != "Nothing to do.\n" {
		t.Errorf("diff of one label: code %d, %s", code, out)
	}
	if _, problems, code := s.agentctl("diff", "left", "none"); code != cli.ExitNotFound {
		t.Errorf("diff with a label without keys: code %d, %s", code, problems)
	}
}

// TestDeclaredValuesAreCounted has the summary of an agent of an earlier release, which counts what it has found, too.
func TestDeclaredValuesAreCounted(t *testing.T) {
	s := sites()["etcd"](t)
	at := time.Now().UTC()
	sum := summary.Summary{Label: "edge-1", Started: at, Time: at, Period: 3600, States: map[string]int{"CONFIGURED": 2, "OBTAINED": 20, "DISCOVERED": 1}}
	if err := s.client.Put(t.Context(), summary.Key("edge-1"), sum.Text()); err != nil {
		t.Fatal(err)
	}
	if out, problems, code := s.agentctl(); code != cli.ExitDone || !strings.HasPrefix(lines(out), "edge-1|OK|2|") {
		t.Errorf("code %d, %s%s", code, out, problems)
	}
}

func TestFleetUsage(t *testing.T) {
	for _, args := range [][]string{
		{"fleet", "--labels", "a/b", "-e", "127.0.0.1:1"}, {"fleet", "--labels", "[", "-e", "127.0.0.1:1"}, {"fleet", "extra"},
		{"fleet", "--store-config", "/none"}, {"fleet", "--store", "redis", "--store-config", "/none"}, {"fleet", "forget"},
	} {
		if out, problems, code := run(t.Context(), args...); code != cli.ExitUsage {
			t.Errorf("%q: code %d, %s%s", args, code, out, problems)
		}
	}
}

// BenchmarkTable10k prints the table of 10,000 agents from a real etcd, in which each of them
// also has 20 keys.
func BenchmarkTable10k(b *testing.B) {
	addr := testkit.StartEtcd(b, testkit.EtcdOptions{}).Addr
	client, err := etcd.Dial(b.Context(), etcd.Config{Endpoints: []string{addr}})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	at := time.Now().UTC().Truncate(time.Second)
	for i := range 10_000 {
		label := fmt.Sprintf("edge-%05d", i)
		sum := summary.Summary{Label: label, Version: "v1.0.0", Started: at, Time: at, Period: 3600, States: map[string]int{"CONFIGURED": 98, "PENDING": i % 2},
			Oldest: &summary.Waiting{Key: "config/linux/l3/v2/route/10.0.0.0/24/veth1", Since: at}}
		pairs := []kvdbsync.Pair{{Key: summary.Key(label), Value: sum.Text()}}
		for k := range 20 {
			pairs = append(pairs, kvdbsync.Pair{Key: fmt.Sprintf("/vnf-agent/%s/config/linux/interfaces/v2/interface/veth%d", label, k), Value: []byte(`{"name":"veth"}`)})
		}
		if err := client.Apply(b.Context(), pairs); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		out, problems, code := run(b.Context(), "fleet", "-e", addr)
		if code != cli.ExitDone || strings.Count(out, "\n") != 10_001 {
			b.Fatalf("code %d: %s", code, problems)
		}
	}
}
