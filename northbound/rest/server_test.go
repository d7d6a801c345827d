package rest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/northbound/rest/health"
	"github.com/keyplane/keyplane/northbound/rest/wire"
	"github.com/keyplane/keyplane/scheduler"
)

// lines is a log that tests wait for.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *lines) await(t *testing.T, what string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	for {
		l.mu.Lock()
		found := strings.Contains(l.text.String(), what)
		l.mu.Unlock()
		if found {
			return
		}
		select {
		case <-l.more:
		case <-ctx.Done():
			t.Fatalf("the log does not say %q:\n%s", what, &l.text)
		}
	}
}

// serve runs a server until the test ends, or stop is called.
func serve(t *testing.T, endpoint string) (log *lines, ready chan net.Addr, stop func()) {
	return serveWith(t, Config{Endpoint: endpoint})
}

func serveWith(t *testing.T, c Config) (log *lines, ready chan net.Addr, stop func()) {
	log = &lines{more: make(chan struct{}, 1)}
	if err := c.Complete(); err != nil {
		t.Fatal(err)
	}
	ready = make(chan net.Addr, 1)
	command := func(context.Context, string) (string, error) { return "", nil }
	s := Server{Config: c, Ready: ready, Options: Options{
		Command: command, Secrets: c.Older,
		Scheduler: scheduler.New(scheduler.Options{}), Log: slog.New(slog.NewTextHandler(log, nil)), Version: wire.Version{App: "agent"},
	}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return log, ready, stop
}

func getVersion(t *testing.T, addr net.Addr) string { return getAs(t, addr, "") }

// getAs asks for the host of that name; empty: for the address.
func getAs(t *testing.T, addr net.Addr, host string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr.String()+"/info/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestServe(t *testing.T) {
	_, ready, stop := serve(t, "127.0.0.1:0")
	addr := <-ready
	if got := getVersion(t, addr); got != "{\n  \"App\": \"agent\"\n}\n" {
		t.Errorf("got %s", got)
	}
	if got := getAs(t, addr, "evil.example"); !strings.Contains(got, `the host \"evil.example\"`) {
		t.Errorf("got %s", got)
	}
	stop()
	if c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr.String()); err == nil {
		c.Close()
		t.Error("it still listens")
	}
}

// An address that another process has is waited for, and one that others reach is
// warned of.
func TestServeWhereItCan(t *testing.T) {
	other, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	log, ready, _ := serve(t, other.Addr().String())
	log.await(t, "it retries")
	other.Close()
	if got := getVersion(t, <-ready); !strings.Contains(got, "agent") {
		t.Errorf("got %s", got)
	}
	log.await(t, "everybody who reaches the HTTP server can change the network")
}

// The address of the probes has their paths alone, and shows no reasons. It does not need the other one.
func TestServeProbes(t *testing.T) {
	for _, off := range []bool{false, true} {
		probes := make(chan net.Addr, 1)
		c := Config{Disabled: off, Endpoint: "127.0.0.1:0", HealthEndpoint: "127.0.0.1:0"}
		// Both addresses have any free port, which Complete takes for one.
		s := Server{Config: c, HealthReady: probes, Options: Options{Scheduler: scheduler.New(scheduler.Options{}), Health: &health.Health{Scheduler: scheduler.New(scheduler.Options{})}}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		addr := (<-probes).String()
		for path, want := range map[string]string{
			"/readiness": "500 {\"state\":0,", "/liveness": "200 {\"state\":0,", "/scheduler/dump": "404 ", "/": "404 ", "/info/version": "404 ",
		} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			got := fmt.Sprintf("%d %s", answer.StatusCode, strings.Join(strings.Fields(string(text)), ""))
			if err != nil || !strings.HasPrefix(got, want) || strings.Contains(got, "declared") {
				t.Errorf("%s: %s, %v; want %s", path, got, err, want)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A server of the defaults shows everything and changes nothing; one with an endpoint of its own is as before.
func TestServeToRead(t *testing.T) {
	for _, tt := range []struct {
		c    Config
		want int
	}{{Config{Address: "127.0.0.1:0"}, http.StatusForbidden}, {Config{Address: "127.0.0.1:0", Older: true, Unauthenticated: Read}, http.StatusForbidden}, {Config{Endpoint: "127.0.0.1:0"}, http.StatusOK}} {
		_, ready, stop := serveWith(t, tt.c)
		addr := <-ready
		if got := getVersion(t, addr); !strings.Contains(got, "agent") {
			t.Errorf("got %s", got)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+addr.String()+"/log/etcd/debug", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		command, err := http.Post("http://"+addr.String()+"/vpp/command", "application/json", strings.NewReader(`{"vppclicommand": "show version"}`))
		if err != nil {
			t.Fatal(err)
		}
		command.Body.Close()
		if command.StatusCode != http.StatusForbidden {
			t.Errorf("%s: VPP's command line answers %d", tt.c.Unauthenticated, command.StatusCode)
		}
		if refused := answer.StatusCode == http.StatusForbidden; refused != (tt.want == http.StatusForbidden) {
			t.Errorf("%+v: a change is answered with %d", tt.c.Unauthenticated, answer.StatusCode)
		}
		stop()
	}
}

// Clients that hold all connections of the endpoint, and send a header that never ends, do not keep the probes away.
func TestSlowClientsDoNotStarveProbes(t *testing.T) {
	main, probes := make(chan net.Addr, 1), make(chan net.Addr, 1)
	c := Config{Address: "127.0.0.1:0", HealthEndpoint: "127.0.0.1:00"}
	if err := c.Complete(); err != nil {
		t.Fatal(err)
	}
	sched := scheduler.New(scheduler.Options{})
	s := Server{Config: c, Ready: main, HealthReady: probes, Options: Options{Scheduler: sched, Health: &health.Health{Scheduler: sched}}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	addr := (<-main).String()
	for range c.MaxConnections {
		slow, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer slow.Close()
		if _, err := io.WriteString(slow, "GET / HTTP/1.1\r\nHost: localhost\r\nX: "); err != nil {
			t.Fatal(err)
		}
	}
	// Without a bound of its own, the endpoint would answer these within the time, too.
	probe := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	if answer, err := probe.Get("http://" + addr + "/liveness"); err == nil {
		answer.Body.Close()
		t.Fatalf("the endpoint answers %s although %d clients hold it", answer.Status, c.MaxConnections)
	}
	probe.Timeout = testkit.Patience
	at := (<-probes).String()
	for i := range 12 {
		path := []string{"/liveness", "/readiness"}[i%2]
		answer, err := probe.Get("http://" + at + path)
		if err != nil {
			t.Fatalf("probe %d: %v", i, err)
		}
		answer.Body.Close()
		if want := []int{http.StatusOK, http.StatusInternalServerError}[i%2]; answer.StatusCode != want {
			t.Errorf("probe %d, %s: %d, want %d", i, path, answer.StatusCode, want)
		}
	}
}

func TestServeNothing(t *testing.T) {
	s := Server{Config: Config{Disabled: true}}
	if err := s.Run(t.Context()); err != nil {
		t.Error(err)
	}
	_, _, stop := serve(t, "127.0.0.1:0") // stopped at once, wherever it is
	stop()
}
