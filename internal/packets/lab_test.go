package packets

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/binapi/vpe"
	"go.yaml.in/yaml/v3"

	"github.com/keyplane/keyplane/descriptors/linux"
	"github.com/keyplane/keyplane/descriptors/netalloc"
	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/scheduler"
	"github.com/keyplane/keyplane/scheduler/txnlog"
)

// TestMain gives VPP and the ports a network of their own.
func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

// A lab is a real VPP with an agent and ports.
type lab struct {
	*testing.T
	sched  *scheduler.Scheduler
	socket string // of VPP's API
	ports  map[string]*port
	sent   int // packets; the number of a packet is its payload

	// passes sends a packet into a port that must come out of another one, and waits for it.
	// The zero value is lab.answers, for ports with an address.
	passes func(in, out string)
}

// start starts a VPP and an agent, and makes ports, which VPP does not have yet.
func start(t *testing.T, ports ...string) *lab {
	t.Helper()
	program := program(t)
	l := &lab{T: t, ports: map[string]*port{}}
	for _, name := range ports {
		l.ports[name] = newPort(t, name)
	}
	l.socket = testkit.StartVPPHere(t, program).Socket
	l.sched = startAgent(t, l.socket)
	return l
}

// since reports whether VPP is of a release, such as 26.06, or of a later one.
func (l *lab) since(release string) bool {
	l.Helper()
	c, err := conn.Dial(l.Context(), l.socket, "test")
	if err != nil {
		l.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = c.Run(context.Background()); close(ended) }()
	defer func() { c.Close(errors.New("it has answered")); <-ended }()
	var r vpe.ShowVersionReply
	if err := c.Call(l.Context(), &vpe.ShowVersion{}, &r); err != nil {
		l.Fatal(err)
	}
	return r.Version >= release
}

// program is the path of VPP. Without one, the test is skipped.
func program(t *testing.T) string {
	t.Helper()
	path := os.Getenv("VPP")
	if path == "" { // no test of a machine without VPP needs one, also not where CI=true
		t.Skip("SKIPPED: packets need a real VPP; VPP=/path/of/vpp make test-packets")
	}
	testkit.Need(t, "scratch namespaces (run as root, or allow user namespaces)", scratch.Inside())
	return path
}

// startAgent starts a scheduler with the descriptors of VPP and Linux. The test ends it.
func startAgent(t *testing.T, socket string) *scheduler.Scheduler {
	t.Helper()
	s := newScheduler(t)
	book, err := netalloc.Register(s)
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	var host *linux.Plugin
	plane, err := vpp.Register(s, vpp.Options{
		Log: quiet,
		// A VPP that gets no time on a busy machine is not one that hangs.
		Connection:  vpp.Config{Socket: socket, StatsSocket: filepath.Join(filepath.Dir(socket), "stats.sock"), ProbeTimeout: testkit.Patience},
		Allocations: book,
		RaiseLink:   func(name string) error { return host.RaiseLink(name) },
		HasLink:     func(name string) bool { return host.HasLink(name) },
	})
	if err != nil {
		t.Fatal(err)
	}
	host, err = linux.Register(s, linux.Options{Log: quiet, Allocations: book, TAPHost: plane.TAPHost})
	if err != nil {
		t.Fatal(err)
	}
	run(t, s.Run, plane.Run, host.Run)
	return s
}

// run runs the parts of an agent until the end of the test.
func run(t *testing.T, parts ...func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() { ended <- part(ctx) }()
	}
	t.Cleanup(func() {
		cancel()
		for range parts {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// newScheduler returns a scheduler that logs its transactions into the log of the test.
func newScheduler(t *testing.T) *scheduler.Scheduler {
	t.Helper()
	return scheduler.New(scheduler.Options{TransactionLog: txnlog.New(txnlog.Options{Out: testkit.Log(t), Full: true}), Log: slog.New(slog.DiscardHandler)})
}

// declare replaces the configuration by the values of these documents, as files have them, in
// one transaction. It returns when VPP has them all.
func (l *lab) declare(documents ...string) {
	l.Helper()
	txn := scheduler.Txn{Replace: true}
	for _, document := range documents {
		txn.Changes = append(txn.Changes, l.values(document)...)
	}
	if _, err := l.sched.Commit(l.Context(), txn); err != nil {
		l.Fatal(err)
	}
	l.until(l.missingAtEnd)
}

// until waits until nothing is missing any more.
func (l *lab) until(missing func() string) {
	l.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(testkit.Patience)
	for what := missing(); what != ""; what = missing() {
		select {
		case <-tick.C:
		case <-late:
			l.Fatal(what)
		}
	}
}

// becomes waits until a state that VPP reports is there.
func (l *lab) becomes(key string) {
	l.Helper()
	l.until(func() string {
		if _, there := l.sched.Status(key); !there {
			return key + " is not there"
		}
		return ""
	})
}

// missingAtEnd returns what is missing after the end of the transaction. While it runs, values may be there whose
// derived values, such as addresses, are not known yet.
func (l *lab) missingAtEnd() string {
	l.Helper()
	if missing := l.missing(); missing != "" {
		return missing
	}
	if err := l.sched.Sync(l.Context()); err != nil {
		l.Fatal(err)
	}
	return l.missing()
}

// missing says which value VPP does not have yet. A value that fails ends the test.
func (l *lab) missing() string {
	l.Helper()
	for s := range l.sched.All() {
		switch s.State {
		case scheduler.Unimplemented:
			testkit.Need(l, "a VPP with the plugin for "+s.Key, false)
		case scheduler.Invalid, scheduler.Failed, scheduler.Retrying:
			l.Fatalf("%s is %v: %v", s.Key, s.State, s.Err)
		case scheduler.Pending, scheduler.Missing:
			return s.Key + " is " + s.State.String() + " " + strings.Join(s.Details, ", ")
		default:
		}
	}
	return ""
}

// values reads a document in the structured form: groups with a field for each model.
func (l *lab) values(document string) (out []scheduler.Change) {
	l.Helper()
	groups := map[string]map[string]any{}
	if err := yaml.Unmarshal([]byte(document), &groups); err != nil {
		l.Fatalf("%v\n%s", err, document)
	}
	for group, fields := range groups {
		for field, content := range fields {
			model, repeated, ok := models.BuiltIn().ByConfigField(group, field)
			if !ok {
				l.Fatalf("there is no %s.%s", group, field)
			}
			all := []any{content}
			if repeated {
				all = content.([]any)
			}
			for _, one := range all {
				out = append(out, l.value(model, one))
			}
		}
	}
	return out
}

func (l *lab) value(model *models.Model, content any) scheduler.Change {
	l.Helper()
	text, err := json.Marshal(content)
	if err != nil {
		l.Fatal(err)
	}
	message, err := model.Unmarshal(text)
	if err != nil {
		l.Fatalf("%v\n%s", err, text)
	}
	key, err := model.Key(message)
	if err != nil {
		l.Fatal(err)
	}
	value, err := l.sched.Value(key, message)
	if err != nil {
		l.Fatal(err)
	}
	return value.Change()
}
