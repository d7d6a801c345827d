package agent

import (
	"archive/zip"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/testkit/session"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/models/sample"
)

func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

// The scripts in testdata run the built agent against a real etcd, Redis and Consul,
// real files and the real kernel.
func TestScripts(t *testing.T) {
	testkit.Need(t, "scratch namespaces (run as root, or allow user namespaces)", scratch.Inside())
	setup := func(env *testscript.Env) error {
		if vpp := os.Getenv("VPP"); vpp != "" {
			env.Setenv("PATH", env.Getenv("PATH")+":"+filepath.Dir(vpp))
		}
		servers, err := filepath.Abs("../.cache/testservers") // for scripts that start them as people do
		if err != nil {
			return err
		}
		env.Setenv("PATH", env.Getenv("PATH")+":"+servers)
		if err := showTransactions(env); err != nil {
			return err
		}
		env.Values[serverKey{}] = &server{t: env.T().(testing.TB)}
		env.Values[redisKey{}] = &redisServer{t: env.T().(testing.TB)}
		env.Values[consulKey{}] = &consulServer{t: env.T().(testing.TB)}
		return nil
	}
	session.Run(t, "testdata", build(t), setup, map[string]session.Command{"etcd": etcdCommand, "redis": redisCommand, "consul": consulCommand, "unzip": unzip, "samples": samples})
}

// showTransactions has the agents of a script write whole transactions, unless the script has
// a configuration of the scheduler.
func showTransactions(env *testscript.Env) error {
	for _, pattern := range []string{"kvscheduler.conf", "*/kvscheduler.conf"} {
		own, err := filepath.Glob(filepath.Join(env.WorkDir, pattern))
		if err != nil || len(own) > 0 {
			return err
		}
	}
	path := filepath.Join(env.WorkDir, ".kvscheduler.conf")
	env.Setenv("KVSCHEDULER_CONFIG", path)
	return os.WriteFile(path, []byte("print-txn-summary: true\n"), 0o600)
}

// build builds the programs and returns the folder that they are in.
func build(t testing.TB) string {
	t.Helper()
	return session.Build(t, "../cmd/agent", "../cmd/agentctl", "../cmd/vppsim", "../internal/testkit/detain/detained")
}

// unzip is the command unzip PATTERN FOLDER: it extracts the only archive that fits into a new folder.
func unzip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: unzip PATTERN FOLDER")
	}
	found, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(found) != 1 {
		ts.Fatalf("%s: %q; expected one archive", args[0], found)
	}
	archive, err := zip.OpenReader(found[0])
	ts.Check(err)
	defer archive.Close()
	ts.Check(os.CopyFS(ts.MkAbs(args[1]), archive))
}

// samples is the command samples FILE OTHERS: it writes the samples of all models, and those that have
// the key of another one into the second file.
func samples(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: samples FILE OTHERS")
	}
	type pair struct {
		Key   string          `json:"key"`
		Value json.RawMessage `json:"value"`
	}
	var files [2][]pair
	written := map[string]bool{}
	for _, m := range models.BuiltIn().All() {
		if m.Class != "config" {
			continue
		}
		all, err := sample.All(m)
		ts.Check(err)
		for _, v := range all {
			key, err := m.Key(v)
			ts.Check(err)
			text, err := m.Marshal(v)
			ts.Check(err)
			file := 0
			if written[key] {
				file = 1
			}
			written[key] = true
			files[file] = append(files[file], pair{key, text})
		}
	}
	for i, pairs := range files {
		text, err := json.Marshal(pairs)
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(args[i]), text, 0o600))
	}
}

type serverKey struct{}

// A server is the etcd of a script, from its first `etcd start` on.
type server struct {
	t testing.TB
	*testkit.Etcd
}

// etcdCommand is a command of the scripts: etcd start | stop | wipe | put KEY VALUE |
// del KEY, with keys below that of the agent. It does what a user does, with etcdctl.
func etcdCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: etcd start | stop | wipe | put KEY VALUE | del KEY")
	}
	s := ts.Value(serverKey{}).(*server)
	switch verb := args[0]; {
	case verb == "start" && s.Etcd == nil:
		s.Etcd = testkit.StartEtcd(s.t, testkit.EtcdOptions{})
		ts.Setenv("ETCD_ENDPOINTS", s.Addr)
	case verb == "start":
		s.Start()
	case verb == "stop":
		s.Kill()
	case verb == "wipe":
		s.Wipe()
	default:
		args[1] = "/vnf-agent/vpp1/" + args[1]
		tool := testkit.Tool(s.t, "etcdctl")
		out, err := exec.Command(tool, append([]string{"--endpoints", s.Addr}, args...)...).CombinedOutput()
		if err != nil {
			ts.Fatalf("etcdctl: %v\n%s", err, out)
		}
	}
}
