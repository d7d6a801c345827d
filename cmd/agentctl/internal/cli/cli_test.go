package cli_test

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/cli"
	"github.com/keyplane/keyplane/connectors/bolt"
	"github.com/keyplane/keyplane/connectors/filedb"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/kvdbsync"
	"github.com/keyplane/keyplane/northbound/kvdb"
)

var update = flag.Bool("update", false, "write what is printed into the scripts")

// Within the scripts, agentctl is this test program.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"agentctl": func() { os.Exit(main()) },
	})
}

func TestScripts(t *testing.T) {
	raw := filepath.Join(t.TempDir(), "raw")
	t.Cleanup(func() { checkRaw(t, raw) })
	testscript.Run(t, params(raw))
}

// params are those of scripts whose runs of agentctl note raw texts in a file; see rawTexts.
func params(raw string) testscript.Params {
	return testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		UpdateScripts:       *update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"agent": agent, "etcd": etcd, "code": code, "completes": completes, "network": network, "declaring": declaring, "unplugged": unplugged,
		},
		Setup: func(env *testscript.Env) error {
			env.Values[testKey{}] = env.T().(testing.TB)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv(rawFile, raw)
			return nil
		},
	}
}

type testKey struct{}

// agent [LABEL]: what an agent lets people edit: a Bolt file, and the files in conf.
func agent(ts *testscript.TestScript, _ bool, args []string) {
	label := "vpp1"
	if len(args) > 0 {
		label = args[0]
	}
	db, err := bolt.New(bolt.Config{Path: ts.MkAbs(label + ".db")})
	ts.Check(err)
	files, err := filedb.New(filedb.Config{Paths: []string{ts.MkAbs("conf")}}, "/vnf-agent/"+label+"/", slog.New(slog.DiscardHandler))
	ts.Check(err)
	ts.Defer(func() { ts.Check(db.Close()) })
	serve(ts, kvdb.Server{Stores: map[string]kvdbsync.Store{"bolt": db, "filedb": files}})
}

// serve runs the agent's socket, and sets SOCKET.
func serve(ts *testscript.TestScript, s kvdb.Server) {
	// A path in the temporary folder of a test may be longer than a socket's may be.
	dir, err := os.MkdirTemp("", "ctl")
	ts.Check(err)
	ready, ended := make(chan struct{}), make(chan error, 1)
	s.Socket, s.Ready = filepath.Join(dir, "s"), ready
	ctx, cancel := context.WithCancel(context.Background())
	go func() { ended <- s.Run(ctx) }()
	select {
	case <-ready:
	case err := <-ended:
		ts.Fatalf("%v", err)
	}
	ts.Defer(func() {
		cancel()
		ts.Check(<-ended)
		ts.Check(os.RemoveAll(dir))
	})
	ts.Setenv("SOCKET", s.Socket)
}

// etcd: starts a server, and sets ETCD.
func etcd(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Setenv("ETCD", testkit.StartEtcd(ts.Value(testKey{}).(testing.TB), testkit.EtcdOptions{}).Addr)
}

// completes REGEXP ARGUMENT...: asks for the words that can follow until a line of the answer matches. A shell waits
// only a second for them, which may be too short for a busy machine.
func completes(ts *testscript.TestScript, _ bool, args []string) {
	re := regexp.MustCompile("(?m)" + args[0])
	if !testkit.Until(func() bool {
		return ts.Exec("agentctl", append([]string{"__complete"}, args[1:]...)...) == nil && re.MatchString(ts.ReadFile("stdout"))
	}) {
		ts.Fatalf("no line is like %q", re)
	}
}

// code N COMMAND...: runs agentctl, which must end with N.
func code(ts *testscript.TestScript, _ bool, args []string) {
	var out, errs bytes.Buffer
	env := func(name string) (string, bool) { v := ts.Getenv(name); return v, v != "" }
	got := cli.Run(context.Background(), args[2:], cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, env)
	if args[0] != map[int]string{0: "0", 1: "1", 2: "2", 3: "3"}[got] {
		ts.Fatalf("ended with %d\n%s%s", got, &out, &errs)
	}
}
