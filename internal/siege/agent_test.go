package siege

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/testkit"
)

// An agent is a process of the built program. In a siege it is started once.
type agent struct {
	testing.TB
	process // its folder has its configuration and its state
	label   string
	web     string // host:port of its HTTP server
	calls   string // host:port of its gRPC server
	reader  logReader
}

// A logReader reads what the agent prints, unless it hangs.
type logReader struct {
	out  io.Writer
	mu   sync.Mutex // held while it reads, and while it hangs
	read int64      // bytes; guarded by mu
}

func (r *logReader) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read += int64(len(text))
	return r.out.Write(text)
}

// printed is how many bytes the agent has printed.
func (r *logReader) printed() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read
}

// hang reads nothing until wait returns: what the agent prints fills the pipe.
func (r *logReader) hang(wait func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait()
}

// startAgent starts the program with these configuration files, by name.
func startAgent(t testing.TB, program, label string, files map[string]string) *agent {
	t.Helper()
	return startAgentIn(t, "", program, label, files)
}

// startAgentIn is startAgent in a network namespace.
func startAgentIn(t testing.TB, netns, program, label string, files map[string]string) *agent {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		writeFile(t, filepath.Join(dir, name), text)
	}
	port, calls := freePort(t), freePort(t)
	a := &agent{
		TB: t, label: label, web: net.JoinHostPort("127.0.0.1", port), calls: net.JoinHostPort("127.0.0.1", calls),
		process: process{
			program: program, dir: dir, netns: netns, env: []string{"STATE_DIRECTORY=" + filepath.Join(dir, "state")},
			args: []string{"-config-dir=" + dir, "-microservice-label=" + label, "-http-port=" + port, "-grpc-port=" + calls, "-stop-timeout=1m"},
		},
	}
	if *opts.cgroup != "" {
		a.args = append([]string{"-c", `echo 0 >"$0" && exec "$@"`, filepath.Join(*opts.cgroup, label, "cgroup.procs"), a.program}, a.args...)
		a.program = "/bin/sh"
	}
	a.out = testkit.Log(t)
	if *opts.logs != "" {
		f, err := os.Create(filepath.Join(*opts.logs, label+".log"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		a.out = io.MultiWriter(a.out, f)
	}
	a.reader.out, a.out = a.out, &a.reader
	if err := a.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.kill)
	return a
}

// memory is how much resident memory the process has, and the most that it ever had, in bytes.
func (a *agent) memory() (now, most int64, err error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", a.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		kilobytes, _ := strconv.ParseInt(fields[1], 10, 64) // 0 for other lines
		switch fields[0] {
		case "VmRSS:":
			now = kilobytes << 10
		case "VmHWM:":
			most = kilobytes << 10
		}
	}
	return now, most, nil
}

// stop ends the process in its orderly way.
func (a *agent) stop() {
	a.Helper()
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		a.Error(err)
	}
	select {
	case <-a.ended:
	case <-time.After(testkit.Patience):
		a.Fatalf("the agent did not end within %v of SIGTERM", testkit.Patience)
	}
	if code := a.cmd.ProcessState.ExitCode(); code != 0 {
		a.Errorf("the agent ended with %v, want exit code 0", a.cmd.ProcessState)
	}
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// freePort is a TCP port of the loopback that nobody listens on.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
