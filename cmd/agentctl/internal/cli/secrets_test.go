package cli_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/keyplane/keyplane/cmd/agentctl/internal/cli"
	"github.com/keyplane/keyplane/models"
	"github.com/keyplane/keyplane/northbound/grpc"
	"github.com/keyplane/keyplane/northbound/kvdb"
	"github.com/keyplane/keyplane/northbound/rest"
	"github.com/keyplane/keyplane/orchestrator"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
	"github.com/keyplane/keyplane/scheduler"
)

const theSecret = "topsecret"

// secretive is an agent whose values have theSecret. Its addresses show secrets as those of a real
// agent do.
type secretive struct {
	socket   string // shows secrets, by HTTP and by gRPC
	httpPort string // the same by HTTP alone
	grpcPort string // hides them
	hiding   string // the port of another HTTP server, which hides them
	declare  func(name string)
}

// startSecretive starts such an agent with the interface m.
func startSecretive(t *testing.T) *secretive {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	sched := scheduler.New(scheduler.Options{Log: quiet})
	memory := &memory{stands: map[string]proto.Message{}}
	model := models.For[*interfaces.Interface]()
	type none = struct{}
	_, err := scheduler.Register(sched, scheduler.Descriptor[*interfaces.Interface, none]{
		Name: "interface", Model: model,
		Create: func(_ context.Context, key string, v *interfaces.Interface) (none, error) {
			return none{}, memory.put(key, v)
		},
		Delete:   func(_ context.Context, key string, _ *interfaces.Interface, _ none) error { return memory.drop(key) },
		Retrieve: retrieve[*interfaces.Interface](memory, model.Prefix(), none{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	orch := orchestrator.New(sched, orchestrator.Options{Log: quiet})
	options := rest.Options{Scheduler: sched, Sources: orch, Declarer: orch, Previewer: orch, Contents: orch, Label: "vpp1", Log: quiet}
	hiding := httptest.NewServer(rest.Handler(options))
	options.Secrets = true
	handler := rest.Handler(options)
	address := make(chan net.Addr, 1)
	calls := &grpc.Server{Config: grpc.Config{Endpoint: "127.0.0.1:0"}, Options: grpc.Options{Scheduler: sched, Layers: orch, Label: "vpp1", Log: quiet}, Ready: address}
	if err := calls.Config.Complete(); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "ctl") //nolint:usetesting // the folder of a test may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	socket := kvdb.Server{Socket: filepath.Join(dir, "s"), Label: "vpp1", Beside: handler, Calls: calls.Private(), Ready: ready}
	web := httptest.NewServer(handler)
	ctx, cancel := context.WithCancel(context.Background())
	running, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{sched.Run, orch.Run, calls.Run, socket.Run} {
		running.Go(func() error { return run(ctx) })
	}
	t.Cleanup(func() {
		cancel()
		for _, server := range []*httptest.Server{web, hiding} {
			server.CloseClientConnections()
			server.Close()
		}
		if err := running.Wait(); err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	a := &secretive{socket: socket.Socket}
	select {
	case <-ready:
	case <-ctx.Done():
		t.Fatal(running.Wait())
	}
	select {
	case at := <-address:
		_, a.grpcPort, _ = net.SplitHostPort(at.String())
	case <-ctx.Done():
		t.Fatal(running.Wait())
	}
	_, a.httpPort, _ = net.SplitHostPort(web.Listener.Addr().String())
	_, a.hiding, _ = net.SplitHostPort(hiding.Listener.Addr().String())
	a.declare = func(name string) {
		v := &interfaces.Interface{Name: name, Type: interfaces.Interface_MEMIF, Link: &interfaces.Interface_Memif{Memif: &interfaces.MemifLink{Secret: theSecret}}}
		_, err := orch.Declare(t.Context(), orchestrator.Request{Layer: "agentctl", Values: []orchestrator.Declared{{Key: model.KeyOf(name), Message: v}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	a.declare("m")
	return a
}

// TestSecretsAreHidden has each command that prints the content of values print one with a secret, over
// a connection on which the agent shows it.
func TestSecretsAreHidden(t *testing.T) {
	a := startSecretive(t)
	for _, command := range []string{
		"export", "export --source agentctl", "export config/vpp/v2/interfaces/m",
		"config get", "config get -f json", "config get -f proto", "config retrieve", "config retrieve -f proto",
		"get m", "get m -o json", "get m -o yaml", "get m -o wide",
		"get vpp.interfaces -o json", "get vpp.interfaces -o yaml", "get vpp.interfaces -o wide",
		"values -o wide", "values vpp.interfaces -o wide",
		"dump all", "dump vpp.interfaces --view NB", "dump vpp.interfaces --view SB", "dump vpp.interfaces -f json", "dump vpp.interfaces -f proto",
		"config history -f json",
	} {
		out := agentctl(t, append([]string{"--socket", a.socket}, strings.Fields(command)...)...)
		if strings.Contains(out, theSecret) || !strings.Contains(out, "(secret)") {
			t.Errorf("%s prints %s", command, out)
		}
	}
	for _, command := range []string{
		"export --secrets", "config get --secrets", "config get --secrets -f proto", "config retrieve --secrets",
		"dump all --secrets", "dump vpp.interfaces --view SB --secrets",
	} {
		out := agentctl(t, append([]string{"--socket", a.socket}, strings.Fields(command)...)...)
		if !strings.Contains(out, theSecret) || strings.Contains(out, "(secret)") {
			t.Errorf("%s prints %s", command, out)
		}
	}
	for _, command := range []string{"config get --secrets", "config retrieve --secrets"} {
		out := agentctl(t, append([]string{"--grpc-port", a.grpcPort}, strings.Fields(command)...)...)
		if !strings.HasPrefix(out, "agentctl: the agent hides the secrets of 1 value: ") {
			t.Errorf("%s prints %s", command, out)
		}
	}
}

// TestValuesWithHiddenSecretsAreNotEdited: their text could not be stored, and the agent could not tell whether
// somebody else has changed them meanwhile.
func TestValuesWithHiddenSecretsAreNotEdited(t *testing.T) {
	a := startSecretive(t)
	var out, errs bytes.Buffer
	env := func(name string) (string, bool) { return map[string]string{"EDITOR": "false"}[name], name == "EDITOR" }
	code := cli.Run(t.Context(), []string{"--http-port", a.hiding, "edit", "m"}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, env)
	if code != cli.ExitFailed || !strings.Contains(errs.String(), "the secrets of config/vpp/v2/interfaces/m are hidden from this user") {
		t.Errorf("edit ends with %d: %s%s", code, &out, &errs)
	}
}

// TestStreamsEndWithTheTimeout calls a method whose answers do not end.
func TestStreamsEndWithTheTimeout(t *testing.T) {
	a := startSecretive(t)
	out := agentctl(t, "--grpc-port", a.grpcPort, "--timeout", "1s", "service", "call", "ligato.generic.ManagerService", "Subscribe")
	if !strings.Contains(out, `"vpp.interfaces"`) || strings.Contains(out, "agentctl:") {
		t.Errorf("the call prints %s", out)
	}
}

// TestSecretsAreHiddenInChanges follows values.
func TestSecretsAreHiddenInChanges(t *testing.T) {
	a := startSecretive(t)
	for _, format := range []string{"json", "yaml", "wide"} {
		f := (&liveAgent{t: t, port: a.httpPort}).follow("get", "vpp.interfaces", "--watch", "-o", format)
		f.expect(`\(secret\)`)
		a.declare("more-" + format)
		f.expect("more-" + format)
		if code, errs := f.stop(); code != cli.ExitDone || errs != "" {
			t.Errorf("%s: ended with %d: %s", format, code, errs)
		}
		if all := strings.Join(f.seen, "\n"); strings.Contains(all, theSecret) || strings.Count(all, "(secret)") < 2 {
			t.Errorf("%s prints %s", format, all)
		}
	}
}

// TestCurlOnTheSocketShowsSecrets is what docs/rest.md says of the socket.
func TestCurlOnTheSocketShowsSecrets(t *testing.T) {
	a := startSecretive(t)
	curl := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", a.socket)
	}}}
	defer curl.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/configuration", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := curl.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(text), theSecret) {
		t.Errorf("GET /configuration answers %s, %v", text, err)
	}
}
