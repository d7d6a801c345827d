package testkit

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// EtcdOptions configure StartEtcd; the zero value is a plain server.
type EtcdOptions struct {
	Args []string // further flags: "--auth-token=jwt,..."
	TLS  bool     // clients must use TLS: Args then name the certificates
}

// Etcd is one etcd server with its data, on the loopback interface.
type Etcd struct {
	Addr     string // host:port for clients; the same after a restart
	Endpoint string // Addr as a URL
	Data     string // the folder of its data
	cluster  string // all members, by name, with their URLs for each other
	*process
}

// StartEtcd starts an etcd server and waits until it serves. The test ends it.
func StartEtcd(t testing.TB, o EtcdOptions) *Etcd {
	t.Helper()
	return StartEtcdCluster(t, 1, o)[0]
}

// StartEtcdCluster starts a cluster and waits until all its members serve.
func StartEtcdCluster(t testing.TB, members int, o EtcdOptions) []*Etcd {
	t.Helper()
	program := Tool(t, "etcd")
	var err error
	for range 3 { // another process may take a port that was free
		cluster := planCluster(t, program, members, o)
		err = startAll(cluster)
		if err == nil {
			return cluster
		}
	}
	t.Fatal(err)
	return nil
}

// StartAll starts the members of a cluster, or restarts them, and waits until all serve.
func StartAll(t testing.TB, cluster []*Etcd) {
	t.Helper()
	if err := startAll(cluster); err != nil {
		t.Fatal(err)
	}
}

// startAll starts all members at once, and returns the errors of those that do not serve.
func startAll(cluster []*Etcd) error {
	errs := make([]error, len(cluster))
	var all sync.WaitGroup
	for i, e := range cluster {
		all.Go(func() { errs[i] = e.start() }) // a single member has no leader and does not serve
	}
	all.Wait()
	return errors.Join(errs...)
}

// planCluster chooses ports and folders for all members before the first one starts,
// because each needs the addresses of the others.
func planCluster(t testing.TB, program string, members int, o EtcdOptions) []*Etcd {
	t.Helper()
	ports := freePorts(t, 3*members)
	addr := func(i int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[i])) }
	var peers []string
	for i := range members {
		peers = append(peers, fmt.Sprintf("member%d=http://%s", i, addr(3*i+1)))
	}
	var cluster []*Etcd
	for i := range members {
		e := planMember(t, o, strings.Join(peers, ","), addr(3*i), addr(3*i+1), addr(3*i+2))
		e.path = program
		e.args = append([]string{fmt.Sprintf("--name=member%d", i)}, e.args...)
		cluster = append(cluster, e)
		t.Cleanup(e.Kill)
	}
	return cluster
}

// EtcdLearner returns a member that is to join a cluster as a learner. Before it is started, the cluster must have added
// a learner with the URL peer.
func EtcdLearner(t testing.TB, member *Etcd) (learner *Etcd, peer string) {
	t.Helper()
	ports := freePorts(t, 3)
	addr := func(i int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[i])) }
	peer = "http://" + addr(1)
	learner = planMember(t, EtcdOptions{}, member.cluster+",learner="+peer, addr(0), addr(1), addr(2))
	learner.path = member.path
	learner.args = append([]string{"--name=learner", "--initial-cluster-state=existing"}, learner.args...)
	learner.ready = func() bool { return answersOK("http://" + addr(2) + "/readyz/linearizable_read") } // /readyz is for voters
	t.Cleanup(learner.Kill)
	return learner, peer
}

// planMember returns a member that has not been started. It writes without fsync, so the
// load on the disk is no part of a test, and its elections take a tenth of a second.
func planMember(t testing.TB, o EtcdOptions, cluster, addr, peerAddr, metricsAddr string) *Etcd {
	t.Helper()
	client := "http://" + addr
	if o.TLS {
		client = "https://" + addr
	}
	peer, metrics := "http://"+peerAddr, "http://"+metricsAddr
	data := filepath.Join(t.TempDir(), "etcd")
	args := []string{
		"--data-dir=" + data, "--log-level=warn", "--unsafe-no-fsync",
		"--bcrypt-cost=4", // the lowest: a busy machine takes seconds to check a password at the usual cost
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + cluster, "--listen-metrics-urls=" + metrics,
		"--heartbeat-interval=10", "--election-timeout=100",
	}
	return &Etcd{
		Addr: addr, Endpoint: client, Data: data, cluster: cluster,
		process: &process{
			t: t, args: append(args, o.Args...),
			ready: func() bool { return answersOK(metrics + "/readyz") },
		},
	}
}

// Wipe removes the data of a stopped server. It starts empty again, at the first revision
// and with the same cluster ID.
func (e *Etcd) Wipe() {
	e.t.Helper()
	if err := os.RemoveAll(e.Data); err != nil {
		e.t.Fatalf("removing the data of etcd: %v", err)
	}
}

// answersOK reports whether a health page answers with 200.
func answersOK(page string) bool {
	client := http.Client{Timeout: askTimeout}
	answer, err := client.Get(page)
	if err != nil {
		return false
	}
	answer.Body.Close()
	client.CloseIdleConnections()
	return answer.StatusCode == http.StatusOK
}
