package etcd_test

import (
	"os"
	"testing"

	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/internal/config"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync/conformance"
)

// TestReadme runs the session of README.md, and parses its configuration.
func TestReadme(t *testing.T) {
	t.Parallel()
	t.Run("session", func(t *testing.T) {
		s, bin := start(t), t.TempDir()
		if err := os.Symlink(testkit.Tool(t, "etcdctl"), bin+"/etcdctl"); err != nil {
			t.Fatal(err)
		}
		conformance.RunConsole(t, s.connector(), root, bin, "ETCDCTL_ENDPOINTS="+s.etcd.Addr)
	})
	t.Run("configuration", func(t *testing.T) {
		var cfg etcd.Config
		unknown, err := config.Parse("README.md", []byte(conformance.Block(t, "yaml")), &cfg)
		if err != nil || len(unknown) > 0 || len(cfg.Endpoints) != 3 || cfg.Validate() != nil {
			t.Errorf("%+v, unknown keys %v, error %v", cfg, unknown, err)
		}
	})
}
