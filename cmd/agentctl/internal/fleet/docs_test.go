package fleet_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/cli"
	"github.com/keyplane/keyplane/cmd/agentctl/internal/fleet"
	harness "github.com/keyplane/keyplane/internal/fleet"
)

var (
	consoleBlock = regexp.MustCompile("(?s)```console\n\\$ agentctl (.*?)\n(.*?)```")
	templateText = regexp.MustCompile("(?s)`lan.yaml`:\n\n```yaml\n(.*?)```")
	age          = regexp.MustCompile(`\d+s ago`)
	spaces       = regexp.MustCompile(` +`)
)

// TestSessionInDocs runs the commands of docs/fleet.md in their order, with three real agents, and
// compares what they print.
func TestSessionInDocs(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	s := sites()["etcd"](t)
	for _, label := range []string{"edge-1", "edge-2", "edge-3"} {
		value := `{"name":"lo1","type":"LOOPBACK","mtu":1400}`
		if label == "edge-3" {
			value = `{"name":"lo1","type":"LOOPBACK","mtu":1500}`
			if err := s.client.Put(t.Context(), harness.Key(label, "bad"), []byte(`{"name":"bad","typo":1}`)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.client.Put(t.Context(), harness.Key(label, "lo1"), []byte(value)); err != nil {
			t.Fatal(err)
		}
		s.start(label)
	}
	var all []fleet.Agent
	s.until("three agents are in the table", func() bool {
		out, _, _ := s.agentctl("-o", "json")
		return json.Unmarshal([]byte(out), &all) == nil && len(all) == 3 && all[2].States["INVALID"] == 1 && all[0].States["CONFIGURED"] == 1 && all[1].States["CONFIGURED"] == 1
	})
	t.Chdir(t.TempDir())
	template := templateText.FindSubmatch(text)
	if template == nil {
		t.Fatal("docs/fleet.md shows no lan.yaml")
	}
	if err := os.WriteFile("lan.yaml", template[1], 0o600); err != nil {
		t.Fatal(err)
	}
	blocks := consoleBlock.FindAllSubmatch(text, -1)
	if len(blocks) != 3 {
		t.Fatalf("docs/fleet.md has %d sessions, want 3", len(blocks))
	}
	// The labels of a batch are printed in the order in which they get ready.
	plain := func(out string) string {
		out = age.ReplaceAllString(strings.ReplaceAll(out, all[0].Version, "v1.2.0"), "Ns ago")
		lines := strings.Split(spaces.ReplaceAllString(out, " "), "\n")
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	for _, block := range blocks {
		command := strings.ReplaceAll(string(block[1]), "'", "")
		out, problems, code := s.agentctl(strings.Fields(command)[1:]...)
		if plain(out) != plain(string(block[2])) || code == cli.ExitFailed {
			t.Errorf("agentctl %s: code %d, prints\n%s%s\nwant\n%s", command, code, out, problems, block[2])
		}
	}
}
