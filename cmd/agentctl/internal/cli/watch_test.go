package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/cli"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/rest"
	"github.com/keyplane/keyplane/proto/ligato/linux/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

// A liveAgent is a scheduler over a southbound in memory behind its HTTP server, whose values
// a test changes while a command runs.
type liveAgent struct {
	t      *testing.T
	sched  *scheduler.Scheduler
	server *httptest.Server
	port   string
}

// startAgent starts an agent with the values of declared. Of an earlier one, the paths without
// do not exist.
func startAgent(t *testing.T, without ...string) *liveAgent {
	t.Helper()
	a := &liveAgent{t: t, sched: scheduler.New(scheduler.Options{})}
	if err := (&memory{stands: map[string]proto.Message{}}).register(a.sched); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.sched.Run(ctx) }()
	h := rest.Handler(rest.Options{Scheduler: a.sched, Sources: twoSources{}, Label: "vpp1"})
	a.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, path := range without {
			if r.URL.Path == path {
				r.URL.Path = "/info/none"
			}
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		a.server.CloseClientConnections()
		a.server.Close()
		cancel()
		<-ended
	})
	_, a.port, _ = net.SplitHostPort(a.server.Listener.Addr().String())
	a.declare(declared()...)
	return a
}

// declare adds or replaces values. An error of a value is part of the tests.
func (a *liveAgent) declare(messages ...proto.Message) {
	a.t.Helper()
	var txn scheduler.Txn
	for _, m := range messages {
		v, err := a.sched.Value(keyOf(a.t, m), m)
		if err != nil {
			a.t.Fatal(err)
		}
		txn.Changes = append(txn.Changes, v.Change())
	}
	_, _ = a.sched.Commit(a.t.Context(), txn)
}

// remove withdraws a value.
func (a *liveAgent) remove(m proto.Message) {
	a.t.Helper()
	if _, err := a.sched.Commit(a.t.Context(), scheduler.Txn{Changes: []scheduler.Change{{Key: keyOf(a.t, m)}}}); err != nil {
		a.t.Fatal(err)
	}
}

func keyOf(t *testing.T, m proto.Message) string {
	t.Helper()
	model, _ := models.BuiltIn().ForMessage(m)
	key, err := model.Key(m)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A follower is a command that runs until it is interrupted.
type follower struct {
	t      *testing.T
	lines  *bufio.Scanner
	seen   []string
	cancel context.CancelFunc
	ended  chan int
	pipe   *io.PipeReader
	errs   *bytes.Buffer // read it after stop
}

// follow starts a command.
func (a *liveAgent) follow(args ...string) *follower {
	ctx, cancel := context.WithCancel(a.t.Context())
	out, in := io.Pipe()
	f := &follower{t: a.t, lines: bufio.NewScanner(out), cancel: cancel, ended: make(chan int, 1), pipe: out, errs: new(bytes.Buffer)}
	go func() {
		none := func(string) (string, bool) { return "", false }
		code := cli.Run(ctx, append([]string{"--http-port", a.port}, args...), cli.Streams{In: strings.NewReader(""), Out: in, Err: f.errs}, none)
		in.Close()
		f.ended <- code
	}()
	// A line that never comes must not hold up all tests.
	timeout := time.AfterFunc(2*time.Minute, func() { out.CloseWithError(errors.New("no such line within two minutes")) })
	a.t.Cleanup(func() { timeout.Stop(); cancel(); out.Close() })
	return f
}

// expect reads until a line matches each pattern, one after the other.
func (f *follower) expect(patterns ...string) {
	f.t.Helper()
	for _, p := range patterns {
		want := regexp.MustCompile(p)
		for {
			if !f.lines.Scan() {
				f.t.Fatalf("no line matches %s: %v\n%s", p, f.lines.Err(), strings.Join(f.seen, "\n"))
			}
			f.seen = append(f.seen, f.lines.Text())
			if want.MatchString(f.lines.Text()) {
				break
			}
		}
	}
}

// stop interrupts the command, and returns its exit code and standard error.
func (f *follower) stop() (int, string) {
	f.cancel()
	for f.lines.Scan() {
		f.seen = append(f.seen, f.lines.Text())
	}
	return <-f.ended, f.errs.String()
}

func veth9() *interfaces.Interface {
	return &interfaces.Interface{Name: "veth9", Type: interfaces.Interface_DUMMY}
}

func TestWatchValues(t *testing.T) {
	a := startAgent(t)
	f := a.follow("values", "--watch")
	f.expect(`^MODEL +NAME +STATE`, `^linux.interfaces.interface +broken +FAILED`, `^linux.l3.route +10.9.0.0/16/veth9 +PENDING +interface-is-up +CREATE$`)
	a.declare(veth9())
	f.expect(`^linux.interfaces.interface +veth9 +CONFIGURED`, `^linux.l3.route +10.9.0.0/16/veth9 +CONFIGURED`)
	a.remove(veth9())
	f.expect(`^linux.interfaces.interface +veth9 +REMOVED`, `^linux.l3.route +10.9.0.0/16/veth9 +PENDING`)
	if code, errs := f.stop(); code != cli.ExitDone || errs != "" {
		t.Errorf("ended with %d: %s", code, errs)
	}
	if n := strings.Count(strings.Join(f.seen, "\n"), "MODEL"); n != 1 {
		t.Errorf("%d headers were printed", n)
	}
}

func TestWatchStates(t *testing.T) {
	a := startAgent(t)
	f := a.follow("values", "linux.l3.route", "--state", "pending,failed", "-w")
	f.expect(`^linux.l3.route +10.9.0.0/16/veth9 +PENDING +interface-is-up +CREATE$`)
	a.declare(veth9())
	f.expect(`^linux.l3.route +10.9.0.0/16/veth9 +CONFIGURED`)
	if code, errs := f.stop(); code != cli.ExitDone || errs != "" {
		t.Errorf("ended with %d: %s", code, errs)
	}
	if all := strings.Join(f.seen, "\n"); strings.Contains(all, "10.1.0.0") || strings.Contains(all, "linux.interfaces.interface") {
		t.Errorf("other values were printed:\n%s", all)
	}
}

// TestWatchFormat has one JSON document for each change.
func TestWatchFormat(t *testing.T) {
	a := startAgent(t)
	f := a.follow("values", "--state", "failed", "--watch", "-f", "{{range .}}{{.Value.Key}} {{.Value.State}};{{end}}")
	f.expect(`^config/linux/interfaces/v2/interface/broken FAILED;$`)
	a.remove(&interfaces.Interface{Name: "broken"})
	f.expect(`^config/linux/interfaces/v2/interface/broken REMOVED;$`)
	f.stop()
}

func TestWatchOneValue(t *testing.T) {
	a := startAgent(t)
	f := a.follow("get", "10.9", "-w", "-o", "yaml")
	f.expect(`^State: PENDING$`)
	a.declare(veth9())
	f.expect(`^---$`, `^State: CONFIGURED$`)
	a.declare(&interfaces.Interface{Name: "another", Type: interfaces.Interface_DUMMY}) // changes nothing about it
	a.remove(veth9())
	f.expect(`^---$`, `^State: PENDING$`)
	if code, errs := f.stop(); code != cli.ExitDone || errs != "" {
		t.Errorf("ended with %d: %s", code, errs)
	}
}

func TestWatchModel(t *testing.T) {
	a := startAgent(t)
	f := a.follow("get", "linux.interfaces.*", "--watch", "-o", "wide")
	f.expect(`^MODEL .* KEY$`, `^linux.interfaces.interface +veth1 +CONFIGURED .* as declared +config/linux/interfaces/v2/interface/veth1$`)
	a.declare(veth9())
	f.expect(`^linux.interfaces.interface +veth9 +CONFIGURED .* as declared +config/linux/interfaces/v2/interface/veth9$`)
	a.remove(veth9())
	f.expect(`^linux.interfaces.interface +veth9 +REMOVED`)
	if code, errs := f.stop(); code != cli.ExitDone || errs != "" {
		t.Errorf("ended with %d: %s", code, errs)
	}
}

// TestWatchAgainAfterInterruption loses the connection.
func TestWatchAgainAfterInterruption(t *testing.T) {
	a := startAgent(t)
	f := a.follow("values", "--watch")
	f.expect(`^linux.l3.route +10.9.0.0/16/veth9 +PENDING`)
	a.server.CloseClientConnections()
	a.declare(veth9())
	f.expect(`^linux.l3.route +10.9.0.0/16/veth9 +CONFIGURED`)
	code, errs := f.stop()
	if code != cli.ExitDone || !strings.Contains(errs, "agentctl: trying again: ") {
		t.Errorf("ended with %d: %s", code, errs)
	}
}

// TestWatchWithoutEvents has an agent of an earlier release.
func TestWatchWithoutEvents(t *testing.T) {
	a := startAgent(t, "/events")
	f := a.follow("values", "--watch")
	f.expect(`^linux.l3.route +10.9.0.0/16/veth9 +PENDING`)
	a.declare(veth9())
	f.expect(`^linux.l3.route +10.9.0.0/16/veth9 +CONFIGURED`)
	if code, errs := f.stop(); code != cli.ExitDone || errs != "" {
		t.Errorf("ended with %d: %s", code, errs)
	}
}
