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

// RedisOptions are the choices of StartRedis; the zero value is a plain server.
type RedisOptions struct {
	Args []string // further arguments: "--requirepass", "secret"
	TLS  bool     // only TLS is served: Args then name the certificates
}

// Redis is one Redis server with its data, on the loopback interface. What is
// written is on disk before it is acknowledged.
type Redis struct {
	Addr string // host:port for clients; the same after a restart
	*process
	data string
}

// StartRedis starts a Redis server and waits until it serves. The test ends it.
func StartRedis(t testing.TB, o RedisOptions) *Redis {
	t.Helper()
	var err error
	for range 3 { // another process may take a port that was free
		r := planRedis(t, o)
		t.Cleanup(r.Kill)
		if err = r.start(); err == nil {
			return r
		}
	}
	t.Fatal(err)
	return nil
}

func planRedis(t testing.TB, o RedisOptions) *Redis {
	t.Helper()
	port := strconv.Itoa(freePorts(t, 1)[0])
	data := t.TempDir()
	plain, secure := port, "0"
	if o.TLS {
		plain, secure = "0", port
	}
	addr := net.JoinHostPort("127.0.0.1", port)
	args := []string{
		"--bind", "127.0.0.1", "--port", plain, "--tls-port", secure, "--dir", data,
		"--save", "", "--appendonly", "yes", "--appendfsync", "no", "--daemonize", "no",
		"--enable-debug-command", "yes",
	}
	return &Redis{Addr: addr, data: data, process: &process{
		t: t, path: redisProgram(t, "redis-server"), args: append(args, o.Args...),
		ready: func() bool { return redisAnswers(addr, o.TLS) },
	}}
}

// redisProgram finds a program of Redis; redis-server is all that Debian's package
// of the servers has to have, it is a Sentinel too.
func redisProgram(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	Need(t, name+" (Debian package redis-server)", err == nil)
	return path
}

// RedisCLI runs redis-cli on a server and returns what it prints.
func (r *Redis) RedisCLI(args ...string) string {
	r.t.Helper()
	host, port, _ := net.SplitHostPort(r.Addr)
	cmd := exec.Command(redisProgram(r.t, "redis-cli"), append([]string{"-h", host, "-p", port}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("redis-cli %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Wipe removes the data of a server that does not run.
func (r *Redis) Wipe() {
	r.t.Helper()
	entries, err := os.ReadDir(r.data)
	if err != nil {
		r.t.Fatalf("data of redis: %v", err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(r.data, e.Name())); err != nil {
			r.t.Fatalf("removing the data of redis: %v", err)
		}
	}
}

// redisAnswers asks whether the server has loaded its data. One that wants a
// password has.
func redisAnswers(addr string, tls bool) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil || tls {
		return err == nil && c.Close() == nil
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return false
	}
	fmt.Fprint(c, "PING\r\n")
	answer, err := bufio.NewReader(c).ReadString('\n')
	return err == nil && (strings.HasPrefix(answer, "+PONG") || strings.HasPrefix(answer, "-NOAUTH"))
}
