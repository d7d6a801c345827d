package access_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/cli"
	"github.com/keyplane/keyplane/connectors/consul"
	"github.com/keyplane/keyplane/connectors/etcd"
	"github.com/keyplane/keyplane/connectors/redis"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
)

const (
	root     = "/vnf-agent/vpp1/"
	password = "least'of'$all"
)

// A connector is what the agent uses of a store.
type connector interface {
	kvdbsync.Connector
	kvdbsync.Leaser
}

// A deployment is a server with access control.
type deployment struct {
	t   *testing.T
	env []string // lets the store's client reach the server as administrator
	dir string   // first in PATH
	// as connects as the user whose commands printed out.
	as func(user, out string) (connector, kvdbsync.Writer)
}

// shell executes commands as the administrator would, and returns what they print.
func (d *deployment) shell(script string) string {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), "sh", "-eu", "-c", script)
	cmd.Env = append(os.Environ(), append(d.env, "PATH="+d.dir+":"+os.Getenv("PATH"), "PASSWORD="+password)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("%s\n%v: %s", script, err, out)
	}
	return string(out)
}

// make creates the user of the command line, and connects as that user.
func (d *deployment) make(user string, args ...string) (connector, kvdbsync.Writer) {
	d.t.Helper()
	var out, problems bytes.Buffer
	code := cli.Run(d.t.Context(), append([]string{"access"}, args...), cli.Streams{Out: &out, Err: &problems}, func(string) (string, bool) { return "", false })
	if code != cli.ExitDone {
		d.t.Fatalf("agentctl access %v: code %d: %s", args, code, problems.String())
	}
	return d.as(user, d.shell(out.String()))
}

// onlyPath is a folder with one program, a link to target.
func onlyPath(t *testing.T, name, target string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func deployEtcd(t *testing.T) *deployment {
	server := testkit.StartEtcd(t, testkit.EtcdOptions{})
	d := &deployment{t: t, dir: onlyPath(t, "etcdctl", testkit.Tool(t, "etcdctl")), env: []string{"ETCDCTL_ENDPOINTS=" + server.Endpoint, "ETCDCTL_COMMAND_TIMEOUT=" + testkit.Patience.String()}}
	d.shell("printf admin | etcdctl user add root --interactive=false; etcdctl user grant-role root root; etcdctl auth enable")
	d.env = append(d.env, "ETCDCTL_USER=root:admin")
	d.as = func(user, _ string) (connector, kvdbsync.Writer) {
		cfg := etcd.Config{Endpoints: []string{server.Endpoint}, Username: user, Password: password}
		client, err := etcd.Dial(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		return etcd.New(cfg, slog.New(slog.DiscardHandler)), client
	}
	return d
}

func deployRedis(t *testing.T) *deployment {
	server := testkit.StartRedis(t, testkit.RedisOptions{Args: []string{"--requirepass", "admin"}})
	host, port, err := net.SplitHostPort(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	real, err := exec.LookPath("redis-cli")
	testkit.Need(t, "redis-cli", err == nil)
	d := &deployment{t: t, dir: t.TempDir(), env: []string{"REDISCLI_AUTH=admin"}}
	// Redis-cli has no variable for the address, and its exit code does not tell errors.
	wrapper := "#!/bin/sh\nout=$(" + real + " -h " + host + " -p " + port + " \"$@\") || exit\necho \"$out\"\ncase $out in ERR*|NOPERM*) exit 1;; esac\n"
	if err := os.WriteFile(filepath.Join(d.dir, "redis-cli"), []byte(wrapper), 0o700); err != nil {
		t.Fatal(err)
	}
	d.as = func(user, _ string) (connector, kvdbsync.Writer) {
		cfg := redis.Config{Endpoint: server.Addr, Username: user, Password: password}
		client, err := redis.Dial(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		return redis.New(cfg, slog.New(slog.DiscardHandler)), client
	}
	return d
}

// TestRedisCommandsBesideTheGranted asks Redis about a command, or a part of one, beside each that the user has. Each would
// give an editor of one label power over the whole server.
func TestRedisCommandsBesideTheGranted(t *testing.T) {
	t.Parallel()
	d := deployRedis(t)
	d.make("both", "redis", "--for", "both", "--user", "both")
	may := func(command string) bool {
		return strings.TrimSpace(d.shell("redis-cli ACL DRYRUN both "+command)) == "OK"
	}
	for _, command := range []string{"cluster myid", "cluster nodes", "cluster slots", "client tracking on", "hello 3", "info", "scan 0", "get " + root + "config/a"} {
		if !may(command) {
			t.Errorf("%s is refused", command)
		}
	}
	for _, command := range []string{
		"cluster reset", "cluster failover", "cluster forget a", "cluster meet a 1", "cluster setslot 1 node a", "cluster delslots 1", "cluster flushslots",
		"cluster replicate a", "cluster set-config-epoch 1", "cluster info", "client list", "client kill a", "client pause 1", "client no-evict on",
		"config get a", "acl list", "acl setuser a", "debug sleep 0", "eval 1 0", "script load a", "function list", "keys a", "flushall", "flushdb",
		"swapdb 0 1", "save", "shutdown", "replicaof a 1", "monitor", "sync", "psync a 1", "publish a b", "subscribe a", "unlink " + root + "config/a",
		"rename " + root + "config/a " + root + "config/b", "expire " + root + "config/a 1", "persist " + root + "config/a", "migrate a 1 a 0 1", "latency reset",
		"slowlog get", "memory stats", "module list", "readonly", "watch /vnf-agent/vpp2/config/a", "set " + root + "other 1", "del /vnf-agent/vpp2/owner",
	} {
		if may(command) {
			t.Errorf("%s is allowed", command)
		}
	}
}

func deployConsul(t *testing.T) *deployment {
	server := testkit.StartConsul(t, testkit.ConsulOptions{ACL: true})
	d := &deployment{t: t, dir: onlyPath(t, "consul", testkit.Tool(t, "consul"))}
	d.env = []string{"CONSUL_HTTP_ADDR=" + server.Addr, "CONSUL_HTTP_TOKEN=" + testkit.ConsulToken}
	d.as = func(_, out string) (connector, kvdbsync.Writer) {
		secret := regexp.MustCompile(`SecretID:\s+(\S+)`).FindStringSubmatch(out)
		if secret == nil {
			t.Fatalf("no token in %s", out)
		}
		cfg := consul.Config{Address: server.Addr, Token: secret[1]}
		client, err := consul.Dial(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		return consul.New(cfg, slog.New(slog.DiscardHandler)), client
	}
	return d
}

// node returns the name of the only node of Consul.
func (d *deployment) node() string {
	lines := strings.Split(d.shell("consul catalog nodes"), "\n")
	return strings.Fields(lines[1])[0]
}

// TestSessionsOfConsul has the agents of two labels and one node. Consul gives the right to sessions for a node alone, so
// by default neither gets it, and with another node neither can end a session of the other.
func TestSessionsOfConsul(t *testing.T) {
	t.Parallel()
	d := deployConsul(t)
	for _, args := range [][]string{{"--label", "vpp2"}, {"--label", "vpp3", "--node", "another"}, {"--label", "vpp4", "--for", "both"}} {
		var out, problems bytes.Buffer
		line := append([]string{"access", "consul"}, args...)
		if code := cli.Run(t.Context(), line, cli.Streams{Out: &out, Err: &problems}, func(string) (string, bool) { return "", false }); code != cli.ExitDone {
			t.Fatalf("%v: code %d: %s", args, code, problems.String())
		}
		if says := strings.Contains(out.String(), "No right to sessions"); says != (len(args) < 4 || args[2] == "--for") || strings.Contains(out.String(), "session_prefix") {
			t.Errorf("%v: %s", args, out.String())
		}
		made := d.shell(out.String())
		token := regexp.MustCompile(`SecretID:\s+(\S+)`).FindStringSubmatch(made)[1]
		address := strings.TrimPrefix(d.env[0], "CONSUL_HTTP_ADDR=")
		ask := func(path, token string) (int, string) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+strings.TrimPrefix(address, "http://")+path, strings.NewReader(`{"LockDelay": "0s"}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Consul-Token", token)
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			return answer.StatusCode, string(text)
		}
		status, session := ask("/v1/session/create", testkit.ConsulToken) // of vpp1
		if status != http.StatusOK {
			t.Fatalf("the first session: %d %s", status, session)
		}
		id := regexp.MustCompile(`"ID": ?"([^"]+)"`).FindStringSubmatch(session)[1]
		if status, text := ask("/v1/session/destroy/"+id, token); status != http.StatusForbidden {
			t.Errorf("%v: the session of another label is ended: %d %s", args, status, text)
		}
	}
}

// watched returns the value of key once a watch of the prefix has listed everything.
func watched(ctx context.Context, c kvdbsync.Connector, prefix, key string) (value string, err error) {
	for b, err := range c.Watch(ctx, prefix) {
		if err != nil {
			return "", err
		}
		for _, change := range b.Events {
			if change.Key == key {
				value = string(change.Value)
			}
		}
		if b.Synced {
			return value, nil
		}
	}
	return value, ctx.Err()
}

// TestLeastRights makes the users as the administrator would, and checks that each can do its work
// and nothing else.
func TestLeastRights(t *testing.T) {
	for name, deploy := range map[string]func(*testing.T) *deployment{"etcd": deployEtcd, "redis": deployRedis, "consul": deployConsul} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
			defer cancel()
			d := deploy(t)
			args := []string{name}
			if name == "consul" {
				args = append(args, "--node", d.node())
			}
			agent, asAgent := d.make("keyplane-vpp1", args...)
			_, asEditor := d.make("ann", name, "--for", "editor", "--user", "ann")
			_, asBoth := d.make("keyplane-vpp1-both", name, "--for", "both", "--user", "keyplane-vpp1-both")
			other, asOther := d.make("keyplane-vpp2", name, "--service-label", "vpp1", "--label", "vpp2")

			done := func(what string, err error) {
				t.Helper()
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			refused := func(what string, err error) {
				t.Helper()
				if err == nil || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: got %v, expected that it is refused", what, err)
				}
			}
			done("the editor puts", asEditor.Put(ctx, root+"config/a", []byte("1")))
			stored, err := asEditor.PutIfAbsent(ctx, root+"config/c", []byte("1"))
			if err == nil && stored {
				stored, err = asEditor.PutIfSame(ctx, root+"config/c", []byte("1"), []byte("2"))
			}
			if err != nil || !stored {
				t.Errorf("the editor creates a key and replaces its value: %v, %v", stored, err)
			}
			done("an agent whose keys are edited through it puts", asBoth.Put(ctx, root+"config/b", []byte("2")))
			value, err := watched(ctx, agent, root+"config/", root+"config/a")
			if err != nil || value != "1" {
				t.Errorf("the agent reads %q, %v; want 1", value, err)
			}

			lease, err := agent.Lease(ctx, 0)
			if err != nil {
				t.Fatalf("the agent begins a session: %v", err)
			}
			holds, err := lease.Claim(ctx, root+"owner", nil, []byte("me"))
			if err != nil || string(holds) != "me" {
				t.Errorf("the agent claims its label: %q, %v", holds, err)
			}
			for _, published := range []string{"config-status/a", "check/status/v1/agent", "vpp/status/v2/interface/tap1", "status/vpp/v2/punt/x"} {
				done("the agent publishes "+published, lease.Apply(ctx, []kvdbsync.Pair{{Key: root + published, Value: []byte("1")}}))
			}
			pairs, err := lease.List(ctx, root+"config-status/")
			if err != nil || len(pairs) != 1 {
				t.Errorf("the agent lists its status: %v, %v", pairs, err)
			}
			done("the agent ends its session", lease.Close(ctx))

			done("the agent writes its summary", asAgent.Put(ctx, "/vnf-agent-fleet/vpp1", []byte("1")))
			refused("the agent writes another summary", asAgent.Put(ctx, "/vnf-agent-fleet/vpp2", []byte("1")))
			refused("the editor writes a summary", asEditor.Put(ctx, "/vnf-agent-fleet/vpp1", []byte("2")))

			refused("the agent puts", asAgent.Put(ctx, root+"config/a", []byte("2")))
			refused("the editor writes status", asEditor.Put(ctx, root+"config-status/a", []byte("2")))
			refused("the agent of another label puts", asOther.Put(ctx, root+"config-status/a", []byte("2")))
			_, err = watched(ctx, other, root+"config/", root+"config/a")
			refused("the agent of another label reads", err)
			existed, err := asEditor.Delete(ctx, root+"config/a")
			if err != nil || !existed {
				t.Errorf("the editor deletes: %v, %v", existed, err)
			}
		})
	}
}

func TestNamesThatStoresWouldMisread(t *testing.T) {
	for _, args := range [][]string{
		{"etcd", "--service-label", "a b"}, {"etcd", "--label", "a/b"}, {"etcd", "--label", ""}, {"redis", "--service-label", "*"}, {"consul", "--user", "x$"}, {"etcd", "--user", "-x"},
	} {
		var out, problems bytes.Buffer
		code := cli.Run(t.Context(), append([]string{"access"}, args...), cli.Streams{Out: &out, Err: &problems}, func(string) (string, bool) { return "", false })
		if code != cli.ExitUsage || out.Len() > 0 || !strings.Contains(problems.String(), args[2]) {
			t.Errorf("%q: code %d, %q, %q; want a refusal that names the value", args, code, out.String(), problems.String())
		}
	}
}
