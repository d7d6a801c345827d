package testkit

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// RedisOptions configure StartRedis; the zero value is a plain server.
type RedisOptions struct {
	Args []string      // further arguments: "--requirepass", "secret"
	TLS  *Certificates // serves only TLS, to clients with a certificate; nil: no TLS
	// Told returns the address at which the Sentinels of a group reach a master at addr,
	// and which they tell clients: that of a proxy. Defaults to addr.
	Told func(addr string) string
}

// Redis is one Redis server with its data, on the loopback interface. Writes are on disk
// before they are acknowledged.
type Redis struct {
	Addr string // host:port for clients; the same after a restart
	Data string // the folder of its data
	*process
	bus   string        // port for the other nodes of a Cluster
	certs *Certificates // nil: no TLS
}

// StartRedis starts a Redis server and waits until it serves. The test ends it.
func StartRedis(t testing.TB, o RedisOptions) *Redis {
	t.Helper()
	var err error
	for range 3 { // another process may take a port that was free
		r := planRedis(t, o)
		t.Cleanup(r.Kill)
		err = r.start()
		if err == nil {
			return r
		}
	}
	t.Fatal(err)
	return nil
}

// planRedis returns a server that has not been started. It keeps its data by appending to
// a file without fsync, so a killed server has them again, and a test needs no fast disk.
func planRedis(t testing.TB, o RedisOptions) *Redis {
	t.Helper()
	port := strconv.Itoa(freePorts(t, 1)[0])
	r := &Redis{Addr: net.JoinHostPort("127.0.0.1", port), Data: t.TempDir(), certs: o.TLS}
	args := append(redisListens(port, o.TLS), "--dir", r.Data, "--daemonize", "no",
		"--save", "", "--appendonly", "yes", "--appendfsync", "no", "--enable-debug-command", "yes")
	r.process = &process{
		t: t, path: redisProgram(t, "redis-server"), args: append(args, o.Args...), ready: r.answers,
	}
	return r
}

// redisListens returns the arguments that make a server, or a Sentinel, listen.
func redisListens(port string, certs *Certificates) []string {
	args := []string{"--bind", "127.0.0.1"}
	if certs == nil {
		return append(args, "--port", port)
	}
	return append(args, "--port", "0", "--tls-port", port, "--tls-replication", "yes", "--tls-cluster", "yes",
		"--tls-ca-cert-file", certs.CA, "--tls-cert-file", certs.Server.Cert, "--tls-key-file", certs.Server.Key)
}

// redisProgram finds a program of Redis. Debian's server package may contain redis-server
// only, which can also run as a Sentinel.
func redisProgram(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	Need(t, name+" (Debian package redis-server)", err == nil)
	return path
}

// RedisCLI runs redis-cli on a server and returns its output.
func (r *Redis) RedisCLI(args ...string) string {
	r.t.Helper()
	out, err := r.redisCLI(args...)
	if err != nil {
		r.t.Fatalf("redis-cli %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// redisCLI is RedisCLI, but returns the error instead of ending the test. The output
// includes messages of errors.
func (r *Redis) redisCLI(args ...string) (string, error) {
	r.t.Helper()
	host, port, _ := net.SplitHostPort(r.Addr)
	where := []string{"-h", host, "-p", port}
	if r.certs != nil {
		where = append(where, "--tls", "--cacert", r.certs.CA, "--cert", r.certs.Client.Cert, "--key", r.certs.Client.Key)
	}
	cmd := exec.Command(redisProgram(r.t, "redis-cli"), append(where, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Wipe removes the data of a stopped server.
func (r *Redis) Wipe() {
	r.t.Helper()
	entries, err := os.ReadDir(r.Data)
	if err != nil {
		r.t.Fatalf("data of redis: %v", err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(r.Data, e.Name())); err != nil {
			r.t.Fatalf("removing the data of redis: %v", err)
		}
	}
}

// answers reports whether the server has loaded its data. A server that requires a
// password has.
func (r *Redis) answers() bool {
	c, err := net.DialTimeout("tcp", r.Addr, askTimeout)
	if err != nil || r.certs != nil {
		return err == nil && c.Close() == nil
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(askTimeout)); err != nil {
		return false
	}
	fmt.Fprint(c, "PING\r\n")
	answer, err := bufio.NewReader(c).ReadString('\n')
	return err == nil && (strings.HasPrefix(answer, "+PONG") || strings.HasPrefix(answer, "-NOAUTH"))
}
