package fleet_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/cli"
	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/fleet"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

// A site is a store with its agents.
type site struct {
	t      *testing.T
	kind   string
	conf   string // of the agents
	client kvdbsync.Writer
	args   []string // by which agentctl reaches the store
}

// sites are the kinds of store that many agents can share.
func sites() map[string]func(*testing.T) *site {
	return map[string]func(*testing.T) *site{
		"etcd": func(t *testing.T) *site {
			addr := testkit.StartEtcd(t, testkit.EtcdOptions{}).Addr
			client, err := etcd.Dial(t.Context(), etcd.Config{Endpoints: []string{addr}})
			s := newSite(t, "etcd", "endpoints: ["+addr+"]\n", client, err)
			s.args = []string{"-e", addr}
			return s
		},
		"redis": func(t *testing.T) *site {
			addr := testkit.StartRedis(t, testkit.RedisOptions{}).Addr
			client, err := redis.Dial(t.Context(), redis.Config{Endpoint: addr})
			return newSite(t, "redis", "endpoint: "+addr+"\n", client, err)
		},
		"consul": func(t *testing.T) *site {
			addr := testkit.StartConsul(t, testkit.ConsulOptions{}).Addr
			client, err := consul.Dial(consul.Config{Address: addr})
			return newSite(t, "consul", "address: "+addr+"\n", client, err)
		},
	}
}

// newSite returns a site whose store agentctl reaches by a configuration file.
func newSite(t *testing.T, kind, conf string, client interface {
	kvdbsync.Writer
	Close() error
}, err error) *site {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	file := filepath.Join(t.TempDir(), "store.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	return &site{t, kind, conf, client, []string{"--store", kind, "--store-config", file}}
}

// start starts an agent that publishes everything. It counts as LOST after 90 s, which is longer
// than a busy machine lets it wait.
func (s *site) start(label string) *fleet.Agent {
	s.t.Helper()
	return fleet.Start(s.t, fleet.Options{Label: label, Store: s.kind, Conf: s.conf, Orchestrator: "state-dir: ''\n" +
		"publish-status: [" + s.kind + "]\npublish-health: [" + s.kind + "]\npublish-summary: [" + s.kind + "]\npublish-summary-period: 30s\n"})
}

// put declares items: "a=text".
func (s *site) put(label string, items ...string) {
	s.t.Helper()
	for _, item := range items {
		name, text, _ := strings.Cut(item, "=")
		if err := s.client.Put(s.t.Context(), fleet.Key(label, name), fleet.Value(name, text)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// agentctl runs a command of agentctl fleet.
func (s *site) agentctl(args ...string) (out, problems string, code int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testkit.Patience)
	defer cancel()
	return run(ctx, append(append([]string{"fleet"}, args...), s.args...)...)
}

// run runs agentctl.
func run(ctx context.Context, args ...string) (out, problems string, code int) {
	var o, e bytes.Buffer
	code = cli.Run(ctx, args, cli.Streams{In: strings.NewReader(""), Out: &o, Err: &e}, func(string) (string, bool) { return "", false })
	return o.String(), e.String(), code
}

// until polls until a condition holds: nothing tells a reader of a store about its changes.
func (s *site) until(what string, is func() bool) {
	s.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(testkit.Patience)
	for !is() {
		select {
		case <-tick.C:
		case <-late:
			s.t.Fatalf("%s: not within %v", what, testkit.Patience)
		}
	}
}
