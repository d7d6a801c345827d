package olderctl

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/keyplane/keyplane/agent"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
)

func TestMain(m *testing.M) { os.Exit(scratch.Main(m.Run)) }

// A peer is a running agent with a simulated VPP, and connections to it.
type peer struct {
	*testing.T
	http string // its address
	grpc *grpc.ClientConn
}

// A logbook is the log of an agent; lines wake those who wait for one.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

// await returns the first group of the first match.
func (l *logbook) await(t *testing.T, pattern string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	for {
		l.mu.Lock()
		m := regexp.MustCompile(pattern).FindStringSubmatch(l.text.String())
		l.mu.Unlock()
		if m != nil {
			return m[1]
		}
		select {
		case <-l.more:
		case <-ctx.Done():
			t.Fatalf("the log does not have %s:\n%s", pattern, &l.text)
		}
	}
}

// start runs an agent until the test ends. The files of its configuration are those below, and
// these.
func start(t *testing.T, more map[string]string) *peer {
	t.Helper()
	testkit.Need(t, "scratch namespaces (run as root, or allow user namespaces)", scratch.Inside())
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	sim, err := vppsim.New(vppsim.Options{Socket: in("api.sock"), StatsSocket: in("stats.sock")})
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Kill)
	files := map[string]string{
		"govpp.conf":        "binapi-socket-path: " + in("api.sock") + "\nstats-socket-path: " + in("stats.sock") + "\nproxy-enabled: true\n",
		"grpc.conf":         "prometheus-metrics: true\nunauthenticated: write\n",
		"http.conf":         "unauthenticated: write\n", // agentctl of 3.5 knows no socket
		"orchestrator.conf": "state-dir: " + in("state") + "\n",
	}
	maps.Copy(files, more)
	for name, text := range files {
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := &logbook{more: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- agent.Run(ctx, agent.Options{
			Args:   []string{"-config-dir=" + dir, "-http-port=0", "-grpc-port=0", "-socket=" + in("agent.sock")},
			Stdout: io.Discard, Stderr: log,
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	p := &peer{T: t, http: log.await(t, `HTTP server listens"? .*endpoint=(\S+)`)}
	p.grpc, err = grpc.NewClient(log.await(t, `gRPC server listens"? .*endpoint=(\S+)`), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.grpc.Close() })
	// A resync that begins after the scheduler knows of the connection ends when VPP was read back.
	// Before, values of VPP are pending.
	log.await(t, `(connection ready"? .*connection=vpp)`)
	p.ask("POST", "/scheduler/downstream-resync", "")
	return p
}

// ask sends an HTTP request and returns the answer, whose status must be 200.
func (p *peer) ask(method, path, body string) []byte {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), method, "http://"+p.http+path, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		p.Fatalf("%s %s: %s %s %v", method, path, answer.Status, text, err)
	}
	return text
}

// read sends an HTTP request and decodes the JSON of its answer.
func (p *peer) read(method, path, body string, into any) {
	p.Helper()
	if err := json.Unmarshal(p.ask(method, path, body), into); err != nil {
		p.Fatalf("%s %s: %v", method, path, err)
	}
}
