package fleet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/cli"
	"github.com/keyplane/keyplane/internal/fleet"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
)

// template writes a template with items "name=text", and returns its path.
func template(t *testing.T, items ...string) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("linuxConfig:\n  interfaces:\n")
	for _, item := range items {
		name, value, _ := strings.Cut(item, "=")
		fmt.Fprintf(&text, "    - {name: %q, type: DUMMY, hostIfName: %q}\n", name, value)
	}
	path := filepath.Join(t.TempDir(), "template.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// removal writes a template that removes an item, and returns its path.
func removal(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "removal.yaml")
	key := models.For[*interfaces.Interface]().KeyOf(name)
	if err := os.WriteFile(path, fmt.Appendf(nil, "- {key: %s, value: null}\n", key), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A fleetOf are running agents, by label.
type fleetOf map[string]*fleet.Agent

// has checks that each agent has come to exactly these items: "a=1 b=2".
func (f fleetOf) has(t *testing.T, label, items string) {
	t.Helper()
	want := map[string]string{}
	for item := range strings.FieldsSeq(items) {
		name, text, _ := strings.Cut(item, "=")
		want[name] = text
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	if err := f[label].Await(ctx, want); err != nil {
		t.Errorf("%v: it has %v, want %v", err, f[label].Has(), want)
	}
}

// TestApply changes real agents in each kind of store.
func TestApply(t *testing.T) {
	for name, open := range sites() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			agents := fleetOf{}
			label := func(n int) string { return fmt.Sprintf("apply-%s-0%d", name, n) }
			for n := range 4 {
				agents[label(n+1)] = s.start(label(n + 1))
				s.put(label(n+1), "a=old")
			}
			all := []string{"--labels", "apply-*", "--batch", "2", "--wait"}
			s.until("all agents are in the table", func() bool {
				out, _, _ := s.agentctl()
				return strings.Count(out, "apply-") == 4
			})
			done := func(code int, out, problems string, want ...string) {
				t.Helper()
				for _, text := range want {
					if !strings.Contains(out, text) {
						t.Errorf("does not print %q", text)
					}
				}
				if t.Failed() || code != cli.ExitDone {
					t.Fatalf("code %d\n%s%s", code, out, problems)
				}
			}

			out, problems, code := s.agentctl(append([]string{"apply", template(t, "a=${label}", "n=${number}"), "--dry-run"}, all...)...)
			done(code, out, problems, label(3)+": 1 to create, 1 to update, 0 to delete")
			agents.has(t, label(1), "a=old")

			out, problems, code = s.agentctl(append([]string{"apply", template(t, "a=${label}", "n=${number}")}, all...)...)
			done(code, out, problems, label(4)+": configured", "4 of 4 labels done, 0 failed, 0 not begun, 0 skipped.")
			for n := range 4 {
				agents.has(t, label(n+1), fmt.Sprintf("a=%s n=%d", label(n+1), n+1))
			}

			// The same command again continues an interrupted run: it writes nothing.
			verbs := agents[label(1)].Verbs()
			out, problems, code = s.agentctl(append([]string{"apply", template(t, "a=${label}", "n=${number}")}, all...)...)
			done(code, out, problems, label(4)+": unchanged, configured")
			if now := agents[label(1)].Verbs(); now != verbs {
				t.Errorf("%d operations for equal values", now-verbs)
			}

			// An update ends in the same status text, CONFIGURED by UPDATE, as the one before. It must
			// not be taken for done before the agent has it.
			for _, text := range []string{"second", "third"} {
				out, problems, code = s.agentctl(append([]string{"apply", template(t, "a="+text)}, all...)...)
				done(code, out, problems)
				for n := range 4 {
					if got := agents[label(n+1)].Has()["a"]; got != text {
						t.Errorf("%s is called done, and has %q, want %q", label(n+1), got, text)
					}
				}
			}

			// The agents of the first batch fail. The others keep what they have, and with --undo all do.
			out, _, code = s.agentctl(append([]string{"apply", template(t, "a=fails", "more=1"), "--max-failures", "2", "--undo"}, all...)...)
			for _, text := range []string{label(1) + ": FAILED: config/linux/interfaces/v2/interface/a is FAILED: no room", label(2) + ": undone: 2 keys", "0 of 4 labels done, 2 failed, 2 not begun"} {
				if !strings.Contains(out, text) {
					t.Errorf("does not print %q:\n%s", text, out)
				}
			}
			if code != cli.ExitFailed || strings.Contains(out, label(3)+": undone") {
				t.Errorf("code %d\n%s", code, out)
			}
			for n := range 4 {
				agents.has(t, label(n+1), fmt.Sprintf("a=third n=%d", n+1))
			}

			// A removal is done when the agents have removed the item, not when the store has.
			out, problems, code = s.agentctl(append([]string{"apply", removal(t, "n")}, all...)...)
			done(code, out, problems, label(4)+": configured")
			for n := range 4 {
				if got, there := agents[label(n+1)].Has()["n"]; there {
					t.Errorf("%s is called done, and still has n=%s", label(n+1), got)
				}
			}
		})
	}
}

// An agent that does not run is skipped if a pattern selects it, and fails if it is named.
func TestApplyToAnAgentThatEnded(t *testing.T) {
	s := sites()["etcd"](t)
	agent := s.start("ended-1")
	s.put("ended-1", "a=1")
	s.until("the agent has a summary", func() bool {
		out, _, _ := s.agentctl()
		return strings.Contains(out, "ended-1  OK")
	})
	agent.Stop()
	if _, problems, code := s.agentctl("apply", template(t, "a=2"), "--labels", "ended-*"); code != cli.ExitNotFound {
		t.Errorf("code %d, %s", code, problems)
	}
	out, _, code := s.agentctl("apply", template(t, "a=2"), "--labels", "ended-1", "--wait", "--batch-timeout", "1s", "--undo")
	if code != cli.ExitFailed || !strings.Contains(out, "not configured within 1s") || !strings.Contains(out, "does the agent run") || !strings.Contains(out, "undone: 1 key") {
		t.Errorf("code %d, %s", code, out)
	}
	if value, err := s.client.Get(t.Context(), fleet.Key("ended-1", "a")); err != nil || string(value) != string(fleet.Value("a", "1")) {
		t.Errorf("undone to %s, %v", value, err)
	}
}

// Nothing is written if one label has a mistake.
func TestTemplatesWithMistakes(t *testing.T) {
	s := sites()["etcd"](t)
	for text, want := range map[string]string{
		"a=${lable}":  "${lable}: expected ${label} or ${number}",
		"a=${number}": "the label two does not end with digits",
		"a=1 a=2":     "is there twice",
	} {
		_, problems, code := s.agentctl("apply", template(t, strings.Fields(text)...), "--labels", "one-1,two")
		if code != cli.ExitFailed || !strings.Contains(problems, want) {
			t.Errorf("%s: code %d, %s", text, code, problems)
		}
	}
	for _, args := range [][]string{{"--labels", "a b"}, {"--labels", "a", "--batch", "0"}, {"--labels", "a", "--max-failures", "0"}, {}} {
		if _, problems, code := s.agentctl(append([]string{"apply", template(t, "a=1")}, args...)...); code != cli.ExitUsage {
			t.Errorf("%q: code %d, %s", args, code, problems)
		}
	}
	if pairs, err := s.client.List(t.Context(), "/"); err != nil || len(pairs) != 0 {
		t.Errorf("the store has %v, %v", pairs, err)
	}
	// The text of a variable itself.
	if out, problems, code := s.agentctl("apply", template(t, "a=$${HOME}"), "--labels", "one"); code != cli.ExitDone {
		t.Errorf("code %d, %s%s", code, out, problems)
	}
	value, err := s.client.Get(t.Context(), fleet.Key("one", "a"))
	if err != nil || !strings.Contains(string(value), `"${HOME}"`) {
		t.Errorf("the store has %s, %v", value, err)
	}
}

// Many values are one transaction, also where their status needs further ones.
func TestApplyManyValues(t *testing.T) {
	s := sites()["consul"](t)
	agents := fleetOf{"many": s.start("many")}
	var items []string
	for i := range kvdbsync.MaxApply {
		items = append(items, fmt.Sprintf("i%d=1", i))
	}
	if out, problems, code := s.agentctl("apply", template(t, items...), "--labels", "many", "--wait"); code != cli.ExitDone {
		t.Fatalf("code %d, %s%s", code, out, problems)
	}
	agents.has(t, "many", strings.Join(items, " "))
	items = append(items, "one=more")
	out, _, code := s.agentctl("apply", template(t, items...), "--labels", "other")
	if code != cli.ExitFailed || !strings.Contains(out, "other: FAILED: nothing was written") {
		t.Errorf("code %d, %s", code, out)
	}
}
