package testkit

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// EtcdOptions are the choices of StartEtcd; the zero value is a plain server.
type EtcdOptions struct {
	Args []string // further flags: "--auth-token=jwt,..."
	TLS  bool     // clients must use TLS: Args then name the certificates
}

// Etcd is one etcd server with its data, on the loopback interface.
type Etcd struct {
	Addr     string // host:port for clients; the same after a restart
	Endpoint string // Addr as a URL
	*process
	data string
}

// StartEtcd starts an etcd server and waits until it serves. The test ends it.
func StartEtcd(t testing.TB, o EtcdOptions) *Etcd {
	t.Helper()
	program := Tool(t, "etcd", "go.etcd.io/etcd/server/v3")
	var err error
	for range 3 { // another process may take a port that was free
		e := newEtcd(t, program, o)
		if err = e.start(); err == nil {
			t.Cleanup(e.Kill)
			return e
		}
	}
	t.Fatal(err)
	return nil
}

func newEtcd(t testing.TB, program string, o EtcdOptions) *Etcd {
	t.Helper()
	scheme := "http"
	if o.TLS {
		scheme = "https"
	}
	ports := freePorts(t, 3)
	addr := func(i int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[i])) }
	client := (&url.URL{Scheme: scheme, Host: addr(0)}).String()
	peer := "http://" + addr(1)
	metrics := "http://" + addr(2)
	data := filepath.Join(t.TempDir(), "etcd")
	args := []string{
		"--name=test", "--data-dir=" + data, "--log-level=warn", "--unsafe-no-fsync",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=test=" + peer, "--listen-metrics-urls=" + metrics,
		"--heartbeat-interval=10", "--election-timeout=100",
	}
	return &Etcd{
		Addr: addr(0), Endpoint: client, data: data,
		process: &process{
			t: t, path: program, args: append(args, o.Args...),
			ready: func() bool { return answersOK(metrics + "/readyz") },
		},
	}
}

// Wipe removes the data of a server that does not run: it will start empty, at
// the first revision, and with the same cluster ID.
func (e *Etcd) Wipe() {
	e.t.Helper()
	if err := os.RemoveAll(e.data); err != nil {
		e.t.Fatalf("removing the data of etcd: %v", err)
	}
}

// answersOK asks a health page.
func answersOK(page string) bool {
	client := http.Client{Timeout: time.Second}
	answer, err := client.Get(page)
	if err != nil {
		return false
	}
	answer.Body.Close()
	client.CloseIdleConnections()
	return answer.StatusCode == http.StatusOK
}

// freePorts finds n TCP ports that nobody listens on.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatalf("looking for a free port: %v", err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}
