package consul_test

import (
	"os"
	"testing"

	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/internal/config"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// TestReadme runs the session of README.md, and parses its configuration.
func TestReadme(t *testing.T) {
	t.Parallel()
	t.Run("session", func(t *testing.T) {
		s, bin := start(t), t.TempDir()
		must(t, bin, os.Symlink(testkit.ConsulProgram(t), bin+"/consul"))
		conformance.RunConsole(t, s.connector(), root, bin, "CONSUL_HTTP_ADDR="+s.consul.Addr)
	})
	t.Run("configuration", func(t *testing.T) {
		var cfg consul.Config
		unknown, err := config.Parse("README.md", []byte(conformance.Block(t, "yaml")), &cfg)
		if err != nil || len(unknown) > 0 || cfg.TokenFile == "" || cfg.Validate() != nil {
			t.Errorf("%+v, unknown keys %v, error %v", cfg, unknown, err)
		}
	})
}
