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
		agent := startUntilStanding(b, filepath.Join(bin, "agent"), dir, "-on-exit=remove")
		quickest = min(quickest, time.Since(start))
		b.StopTimer()
		memory, wakes = idle(b, agent.Process.Pid)
		stop(b, agent)
		b.StartTimer()
	}
	b.ReportMetric(float64(quickest.Milliseconds()), "ms/start-best")
	b.ReportMetric(memory/(1<<20), "MiB-idle")
	b.ReportMetric(wakes, "wakes/s-idle")
	if quickest > startBar || memory > idleBar {
		b.Errorf("start took %s (bar %s), %.1f MiB when idle (bar %d)", quickest, startBar, memory/(1<<20), idleBar>>20)
	}
}

// BenchmarkMemory starts the built agent on an etcd with all declared and an empty VPP, and ends it in order.
// It reports the time until all is applied, the resident memory when the journals have been merged too, and
// the time that the end takes. A few keys are interfaces, the others routes.
func BenchmarkMemory(b *testing.B) {
	testkit.Need(b, "scratch namespaces (run as root, or allow user namespaces)", scratch.Inside())
	bin := build(b)
	for _, n := range []benchNetwork{{500, 9_500}, {500, 49_500}, {1, 100_000}, {1, 1_000_000}} {
		b.Run(fmt.Sprintf("%d-routes", n.routes), func(b *testing.B) {
			e, v, dir := testkit.StartEtcd(b, testkit.EtcdOptions{}), startVPP(b), b.TempDir()
			declare(b, etcdClient(b, e), n)
			write(b, filepath.Join(dir, "etcd.conf"), "endpoints: ["+e.Addr+"]\n")
			write(b, filepath.Join(dir, "govpp.conf"), "binapi-socket-path: "+v.socket+"\n")
			for b.Loop() {
				v.empty(n)
				write(b, filepath.Join(dir, "orchestrator.conf"), "state-dir: "+b.TempDir()+"\n")
				begun := time.Now()
				agent := startUntilStanding(b, filepath.Join(bin, "agent"), dir, "-microservice-label=bench")
				b.ReportMetric(time.Since(begun).Seconds(), "s/start")
				<-time.After(goruntime.AfterStart + 5*time.Second)
				status := fmt.Sprintf("/proc/%d/status", agent.Process.Pid)
				const kiB = 1024.0 / 1e6 // in MB; the file has KiB, and calls them kB
				b.ReportMetric(field(b, status, "VmRSS:")*kiB, "MB")
				b.ReportMetric(field(b, status, "VmHWM:")*kiB, "MB-peak")
				begun = time.Now()
				stop(b, agent)
				b.ReportMetric(time.Since(begun).Seconds(), "s/stop")
			}
		})
	}
}

// stop ends an agent in order.
func stop(b *testing.B, agent *exec.Cmd) {
	b.Helper()
	if err := agent.Process.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	if err := agent.Wait(); err != nil {
		b.Fatal(err)
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
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(program, append(flags, "-config-dir="+dir)...)
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
