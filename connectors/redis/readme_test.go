package redis_test

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/config"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// TestReadme runs the session of README.md, and parses its configuration.
func TestReadme(t *testing.T) {
	t.Parallel()
	t.Run("session", func(t *testing.T) {
		s, bin := start(t), t.TempDir()
		host, port, _ := net.SplitHostPort(s.redis.Addr)
		wrapper := "#!/bin/sh\nexec " + lookPath(t, "redis-cli") + " -h " + host + " -p " + port + ` "$@"` + "\n"
		if err := os.WriteFile(bin+"/redis-cli", []byte(wrapper), 0o755); err != nil {
			t.Fatal(err)
		}
		conformance.RunConsole(t, s.connector(), root, bin)
	})
	t.Run("configuration", func(t *testing.T) {
		var cfg redis.Config
		unknown, err := config.Parse("README.md", []byte(conformance.Block(t, "yaml")), &cfg)
		if err != nil || len(unknown) > 0 || len(cfg.Endpoints) != 3 || cfg.Validate() != nil {
			t.Errorf("%+v, unknown keys %v, error %v", cfg, unknown, err)
		}
	})
	t.Run("permissions", func(t *testing.T) { permissions(t, conformance.Block(t, "")) })
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
	m := follow(t, redis.New(redis.Config{ReadTimeout: testkit.Patience, Endpoint: s.redis.Addr, Username: "vpp1", Password: "secret"}, discard()))
	m.Await("a", "1")
	s.put(root+"a", "2")
	m.Await("a", "2")
}

func lookPath(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
