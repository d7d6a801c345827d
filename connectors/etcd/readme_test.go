package etcd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/config"
	"github.com/keyplane/keyplane/internal/testkit"
)

// TestReadme runs the session of README.md, and parses its configuration.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("session", func(t *testing.T) { runSession(t, block(t, string(readme), "console")) })
	t.Run("configuration", func(t *testing.T) {
		var cfg etcd.Config
		unknown, err := config.Parse("README.md", []byte(block(t, string(readme), "yaml")), &cfg)
		if err != nil || len(unknown) > 0 || len(cfg.Endpoints) != 3 || cfg.Validate() != nil {
			t.Errorf("%+v, unknown keys %v, error %v", cfg, unknown, err)
		}
	})
}

// block returns the content of the first fenced block of a language.
func block(t *testing.T, text, language string) string {
	t.Helper()
	_, after, found := strings.Cut(text, "```"+language+"\n")
	content, _, closed := strings.Cut(after, "```\n")
	if !found || !closed {
		t.Fatalf("no block of %s", language)
	}
	return content
}

// runSession runs each "$ command" and compares what follows with its output. The
// first command puts what the connector must see, the last one deletes it.
func runSession(t *testing.T, session string) {
	s := start(t)
	m := follow(t, s.connector())
	bin := t.TempDir()
	if err := os.Symlink(testkit.Tool(t, "etcdctl", "go.etcd.io/etcd/etcdctl/v3"), filepath.Join(bin, "etcdctl")); err != nil {
		t.Fatal(err)
	}
	steps := regexp.MustCompile(`(?m)^\$ (.*)\n((?:[^$].*\n)*)`).FindAllStringSubmatch(session, -1)
	if len(steps) != 3 {
		t.Fatalf("%d commands, want 3", len(steps))
	}
	for i, step := range steps {
		cmd := exec.CommandContext(s.ctx(), "sh", "-c", step[1])
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "ETCDCTL_ENDPOINTS="+s.etcd.Addr)
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != step[2] {
			t.Errorf("%s: %v, printed\n%s\nwant\n%s", step[1], err, out, step[2])
		}
		switch i {
		case 0:
			m.Await("config/linux/interfaces/v2/interface/lo1", `{"name":"lo1","type":"LOOPBACK"}`)
		case len(steps) - 1:
			m.Await()
		}
	}
}
