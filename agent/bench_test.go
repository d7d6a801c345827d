package agent

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/keyplane/keyplane/agent/internal/goruntime"
	"github.com/keyplane/keyplane/internal/scratch"
	"github.com/keyplane/keyplane/internal/testkit"
)

// What the agent promises of itself, with a file of YAML for a store.
const (
	startBar = 300 * time.Millisecond // from exec to the network standing
	idleBar  = 40 << 20               // bytes of memory, once it stands
)

const small = `linuxConfig:
  interfaces: [{name: %s, type: LOOPBACK, enabled: true, ipAddresses: [192.0.2.1/32]}]
`

// BenchmarkStart starts the built agent until the network stands, and looks at
// its memory, and at how often it wakes with nothing to do.
func BenchmarkStart(b *testing.B) {
	testkit.Need(b, "scratch namespaces (run as root, or allow user namespaces)", scratch.Inside())
	bin, dir := build(b), b.TempDir()
	write(b, filepath.Join(dir, "filedb.conf"), "configuration-paths: ["+dir+"/network.yaml]\n")
	write(b, filepath.Join(dir, "network.yaml"), fmt.Sprintf(small, "lo"))
	quickest := time.Hour
	var memory, wakes float64
	for b.Loop() {
		start := time.Now()
		agent := startUntilStanding(b, filepath.Join(bin, "agent"), dir)
		quickest = min(quickest, time.Since(start))
		b.StopTimer()
		memory, wakes = idle(b, agent.Process.Pid)
		if err := agent.Process.Signal(syscall.SIGTERM); err != nil {
			b.Fatal(err)
		}
		if err := agent.Wait(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(quickest.Milliseconds()), "ms/start-best")
	b.ReportMetric(memory/(1<<20), "MiB-idle")
	b.ReportMetric(wakes, "wakes/s-idle")
	if quickest > startBar || memory > idleBar {
		b.Errorf("start took %s (bar %s), %.1f MiB when idle (bar %d)", quickest, startBar, memory/(1<<20), idleBar>>20)
	}
}

// BenchmarkMemory is the resident memory of the built agent after a cold start from etcd with a
// simulated VPP, when its journals have been merged too: a tenth of the keys at most are
// interfaces, the others routes.
func BenchmarkMemory(b *testing.B) {
	testkit.Need(b, "scratch namespaces (run as root, or allow user namespaces)", scratch.Inside())
	bin := build(b)
	for name, n := range map[string]benchNetwork{"10k": {loops: 500, routes: 9_500}, "50k": {loops: 500, routes: 49_500}} {
		b.Run(name, func(b *testing.B) {
			e, v, dir := testkit.StartEtcd(b, testkit.EtcdOptions{}), startVPP(b), b.TempDir()
			declare(b, etcdClient(b, e), n)
			write(b, filepath.Join(dir, "etcd.conf"), "endpoints: ["+e.Addr+"]\n")
			write(b, filepath.Join(dir, "govpp.conf"), "binapi-socket-path: "+v.socket+"\n")
			write(b, filepath.Join(dir, "orchestrator.conf"), "state-dir: "+b.TempDir()+"\n")
			for b.Loop() {
				agent := startUntilStanding(b, filepath.Join(bin, "agent"), dir, "-microservice-label=bench")
				<-time.After(goruntime.AfterStart + 5*time.Second)
				status := fmt.Sprintf("/proc/%d/status", agent.Process.Pid)
				const kiB = 1024.0 / 1e6 // in MB; the file has KiB, and calls them kB
				b.ReportMetric(field(b, status, "VmRSS:")*kiB, "MB")
				b.ReportMetric(field(b, status, "VmHWM:")*kiB, "MB-peak")
				if err := agent.Process.Signal(syscall.SIGTERM); err != nil {
					b.Fatal(err)
				}
				_ = agent.Wait() // it removes the network
			}
		})
	}
}

func write(b *testing.B, path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
}

// startUntilStanding waits for the agent's word on NOTIFY_SOCKET.
func startUntilStanding(b *testing.B, program, dir string, flags ...string) *exec.Cmd {
	path := filepath.Join(b.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(program, append(flags, "-config-dir="+dir, "-on-exit=remove")...)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+path)
	cmd.Stderr = os.Stderr
	if !testing.Verbose() {
		cmd.Stderr = nil
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Kill() })
	buf := make([]byte, 1024)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			b.Fatal(err)
		}
		if strings.Contains(string(buf[:n]), "STATUS="+applied) {
			return cmd
		}
	}
}

// idle returns the resident memory of a process after its start, in bytes, and
// how often a second its threads wake.
func idle(b *testing.B, pid int) (memory, wakes float64) {
	start, watch := time.NewTimer(2*time.Second), time.NewTimer(4*time.Second)
	<-start.C
	before := switches(b, pid)
	<-watch.C
	return field(b, fmt.Sprintf("/proc/%d/status", pid), "VmRSS:") * 1024, (switches(b, pid) - before) / 2
}

func switches(b *testing.B, pid int) (sum float64) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for _, thread := range threads {
		sum += field(b, thread, "voluntary_ctxt_switches:")
	}
	return sum
}

// field reads one number of a status file in /proc.
func field(b *testing.B, path, name string) (value float64) {
	file, err := os.Open(path)
	if err != nil {
		return 0 // a thread that has ended
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), name); ok {
			if _, err := fmt.Sscan(rest, &value); err != nil {
				b.Fatal(err)
			}
		}
	}
	return value
}
