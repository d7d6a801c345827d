package testkit

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ticksPerSecond is the unit of CPU times in /proc, which is the same on all platforms of Linux
// that Go supports.
const ticksPerSecond = 100

// A Usage is what a process has used so far.
type Usage struct {
	CPU time.Duration // of all its threads, since its start
	RSS int64         // bytes of memory now
}

// Usage reads what the running server has used.
func (p *process) Usage() Usage {
	p.t.Helper()
	u, err := usageOf(p.cmd.Process.Pid)
	if err != nil {
		p.t.Fatalf("usage of %s: %v", p.path, err)
	}
	return u
}

// usageOf reads /proc/PID/stat (proc_pid_stat(5)).
func usageOf(pid int) (Usage, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, err
	}
	// The name of the program, in parentheses, may contain spaces.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 22 {
		return Usage{}, fmt.Errorf("%q has %d fields; expected at least 22", text, len(fields))
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	system, wrong := strconv.ParseInt(fields[12], 10, 64)
	pages, odd := strconv.ParseInt(fields[21], 10, 64)
	return Usage{
		CPU: time.Duration(user+system) * time.Second / ticksPerSecond, RSS: pages * int64(os.Getpagesize()),
	}, errors.Join(err, wrong, odd)
}

// An EtcdProxy is an `etcd grpc-proxy`, which shares watches of one key range among clients.
type EtcdProxy struct {
	Addr string // host:port for clients
	*process
}

// StartEtcdProxy starts a proxy in front of a cluster. The test ends it.
func StartEtcdProxy(t testing.TB, cluster []*Etcd) *EtcdProxy {
	t.Helper()
	var endpoints []string
	for _, e := range cluster {
		endpoints = append(endpoints, e.Addr)
	}
	addr := loopback(freePorts(t, 1)[0])
	p := &EtcdProxy{Addr: addr, process: &process{
		t: t, path: Tool(t, "etcd"), args: []string{"grpc-proxy", "start", "--endpoints=" + strings.Join(endpoints, ","), "--listen-addr=" + addr},
		ready: func() bool {
			c, err := net.DialTimeout("tcp", addr, askTimeout)
			if err != nil {
				return false
			}
			return c.Close() == nil
		},
	}}
	t.Cleanup(p.Kill)
	p.Start()
	return p
}
