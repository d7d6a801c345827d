package redis_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/config"
)

// TestReadme runs the session of README.md, and parses its configuration.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Run("session", func(t *testing.T) { runSession(t, block(t, string(readme), "console")) })
	t.Run("configuration", func(t *testing.T) {
		var cfg redis.Config
		unknown, err := config.Parse("README.md", []byte(block(t, string(readme), "yaml")), &cfg)
		if err != nil || len(unknown) > 0 || len(cfg.Endpoints) != 3 || cfg.Validate() != nil {
			t.Errorf("%+v, unknown keys %v, error %v", cfg, unknown, err)
		}
	})
	t.Run("permissions", func(t *testing.T) { permissions(t, block(t, string(readme), "")) })
}

// block returns the content of the first fenced block of a language.
func block(t *testing.T, text, language string) string {
	t.Helper()
	found := regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(text, -1)
	for _, f := range found {
		if f[1] == language {
			return f[2]
		}
	}
	t.Fatalf("no block of %q", language)
	return ""
}

// permissions watches as the user whom the README makes.
func permissions(t *testing.T, command string) {
	s := start(t)
	s.put(root+"a", "1")
	var args []any
	for arg := range strings.FieldsSeq(strings.Replace(command, ">...", ">secret", 1)) {
		args = append(args, arg)
	}
	s.do(args...)
	m := follow(t, redis.New(redis.Config{Endpoint: s.redis.Addr, Username: "vpp1", Password: "secret"}, discard()))
	m.Await("a", "1")
	s.put(root+"a", "2")
	m.Await("a", "2")
}

// runSession runs each "$ command" and compares what follows with its output. The
// first command puts what the connector must see, the last one deletes it.
func runSession(t *testing.T, session string) {
	s := start(t)
	m := follow(t, s.connector())
	host, port, _ := net.SplitHostPort(s.redis.Addr)
	bin := t.TempDir()
	wrapper := "#!/bin/sh\nexec " + lookPath(t, "redis-cli") + " -h " + host + " -p " + port + ` "$@"` + "\n"
	if err := os.WriteFile(filepath.Join(bin, "redis-cli"), []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	steps := regexp.MustCompile(`(?m)^\$ (.*)\n((?:[^$].*\n)*)`).FindAllStringSubmatch(session, -1)
	if len(steps) != 4 {
		t.Fatalf("%d commands, want 4", len(steps))
	}
	for i, step := range steps {
		cmd := exec.CommandContext(s.ctx(), "sh", "-c", step[1])
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
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

func lookPath(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
