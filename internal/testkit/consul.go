package testkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// ConsulOptions configure StartConsul; the zero value is a plain server.
type ConsulOptions struct {
	// ACL denies all requests that no token allows; ConsulToken allows all.
	ACL bool
	// TLS adds an https listener at AddrTLS, for clients with a certificate only.
	TLS *Certificates
	// Config overrides single keys of the server's configuration: "session_ttl_min".
	Config map[string]any
}

// ConsulToken has all rights on a server with ACL.
const ConsulToken = "6f2b0c53-8a6a-4a63-9b1e-0f3f7d0b7a11"

// Consul is one Consul server with its data, on the loopback interface.
type Consul struct {
	Addr    string // host:port for clients; the same after a restart
	AddrTLS string
	*process
	data string
}

// StartConsul starts a Consul server and waits until it serves. The test ends it.
func StartConsul(t testing.TB, o ConsulOptions) *Consul {
	t.Helper()
	return StartConsulCluster(t, 1, o)[0]
}

// StartConsulCluster starts a cluster and waits until all its servers serve.
func StartConsulCluster(t testing.TB, servers int, o ConsulOptions) []*Consul {
	t.Helper()
	program := ConsulProgram(t)
	var err error
	for range 3 { // another process may take a port that was free
		cluster := planConsul(t, program, servers, o)
		err = startServers(cluster)
		if err == nil {
			return cluster
		}
	}
	t.Fatal(err)
	return nil
}

// ConsulProgram is the path of consul, which is server and command-line tool.
func ConsulProgram(t testing.TB) string {
	t.Helper()
	return Tool(t, "consul")
}

// startServers starts all servers at once, and returns the errors of those that do not
// serve.
func startServers(cluster []*Consul) error {
	errs := make([]error, len(cluster))
	var all sync.WaitGroup
	for i, c := range cluster {
		c.t.Cleanup(c.Kill)
		all.Go(func() { errs[i] = c.start() }) // a single server has no leader and does not serve
	}
	all.Wait()
	return errors.Join(errs...)
}

// Indexes of the ports of a server in the list of free ports.
const (
	portHTTP = iota
	portTLS
	portRaft
	portGossip
	portsOfConsul
)

// planConsul chooses ports and folders for all servers before the first one starts,
// because each needs the addresses of the others.
func planConsul(t testing.TB, program string, servers int, o ConsulOptions) []*Consul {
	t.Helper()
	ports := freePorts(t, portsOfConsul*servers)
	var peers []string
	for i := range servers {
		peers = append(peers, loopback(ports[portsOfConsul*i+portGossip]))
	}
	var cluster []*Consul
	for i := range servers {
		mine := ports[portsOfConsul*i:]
		folder := t.TempDir()
		c := &Consul{Addr: loopback(mine[portHTTP]), AddrTLS: loopback(mine[portTLS]), data: filepath.Join(folder, "data")}
		config := consulConfig(c, mine, peers, o)
		config["node_name"] = fmt.Sprintf("server%d", i)
		c.process = &process{
			t: t, path: program, args: []string{"agent", "-config-file=" + writeJSON(t, folder, config)},
			ready: func() bool { return consulServes("http://" + c.Addr) },
		}
		cluster = append(cluster, c)
	}
	return cluster
}

// loopback returns an address of this host, so no other host can reach the server.
func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// consulConfig returns the configuration of one server. It makes elections short, disables
// services that need fixed ports or the network, and allows many connections.
func consulConfig(c *Consul, ports []int, peers []string, o ConsulOptions) map[string]any {
	used := map[string]int{
		"http": ports[portHTTP], "https": -1, "server": ports[portRaft], "serf_lan": ports[portGossip],
		"serf_wan": -1, "dns": -1, "grpc": -1,
	}
	config := map[string]any{
		"server": true, "bootstrap_expect": len(peers), "retry_join": peers, "retry_interval": "100ms",
		"data_dir": c.data, "bind_addr": "127.0.0.1", "client_addr": "127.0.0.1", "ports": used,
		"performance": map[string]any{"raft_multiplier": 1}, "log_level": "warn",
		"disable_update_check": true, "disable_host_node_id": true, "connect": map[string]any{"enabled": false},
		"limits": map[string]any{"http_max_conns_per_client": 10_000},
	}
	if o.ACL {
		config["acl"] = map[string]any{
			"enabled": true, "default_policy": "deny", "tokens": map[string]any{"initial_management": ConsulToken},
		}
	}
	if o.TLS != nil {
		used["https"] = ports[portTLS]
		config["tls"] = map[string]any{"https": map[string]any{
			"ca_file": o.TLS.CA, "cert_file": o.TLS.Server.Cert, "key_file": o.TLS.Server.Key, "verify_incoming": true,
		}}
	}
	maps.Copy(config, o.Config)
	return config
}

// writeJSON writes a configuration file and returns its path.
func writeJSON(t testing.TB, folder string, content any) (path string) {
	t.Helper()
	text, err := json.Marshal(content)
	if err != nil {
		t.Fatalf("configuration of consul: %v", err)
	}
	path = filepath.Join(folder, "consul.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatalf("configuration of consul: %v", err)
	}
	return path
}

// consulServes reports whether the server has a leader and its own node is registered.
// Sessions need both.
func consulServes(url string) bool {
	for _, path := range []string{"/v1/kv/probe?keys&consistent", "/v1/catalog/nodes"} {
		status, text := askConsul(url + path)
		if status != http.StatusOK && status != http.StatusNotFound || text == "[]" {
			return false
		}
	}
	return true
}

// askConsul sends one GET. Status 0 says that the server did not answer; the text is the
// reason then. It keeps no connection, which would count against the server's limit.
func askConsul(url string) (status int, text string) {
	request, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err.Error()
	}
	request.Header.Set("X-Consul-Token", ConsulToken) // has no effect without ACL
	client := http.Client{Timeout: askTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(body)
}

// Wipe removes the data of a stopped server, which starts empty again.
func (c *Consul) Wipe() {
	c.t.Helper()
	if err := os.RemoveAll(c.data); err != nil {
		c.t.Fatalf("removing the data of consul: %v", err)
	}
}
