package container

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/keyplane/keyplane/internal/testkit"
)

// standIn is the program in the place of VPP: the simulated one, if it is started as the image is to start VPP.
const standIn = `#!/bin/sh
[ "$1 $2" = "-c /etc/vpp/startup.conf" ] && [ -f "$2" ] || { echo "VPP is started with: $*"; exit 9; }
exec /usr/bin/vppsim -socket /run/vpp/api.sock
`

// The image with VPP in it is built on a stand-in, which has the shell of this machine and the simulated VPP. The container
// becomes healthy, passes its arguments on, and ends with the agent and with VPP.
func TestImageBesideVPP(t *testing.T) {
	m := newMachine(t)
	m.buildPrograms()
	m.buildStandIn()
	m.buildah("bud", "--format", "docker", "--isolation", "chroot", "--build-arg", "BASE=localhost/stand-in", "--build-arg", "TARGETARCH="+runtime.GOARCH,
		"-t", "beside", "-f", "Dockerfile.vpp", filepath.Join(m.dir, "dist"))
	m.services["beside"] = service{CapAdd: []string{"NET_ADMIN", "SYS_ADMIN"}, Volumes: []string{"vpp:/run/vpp", "state:/var/lib/keyplane"}}
	m.makeContainers("beside", m.services["beside"])

	begin := func(name string, arguments ...string) run {
		return m.start(name, m.entryPoint("beside", arguments...))
	}
	stopped := begin("stopped")
	m.becomesHealthy("beside")
	m.types("beside", "agentctl vpp info", regexp.MustCompile(`(?i)version`))
	stopped.signal(t, "agent", syscall.SIGTERM)
	if code := stopped.exitCode(t); code != 0 {
		t.Errorf("the agent was stopped: exit code %d; expected 0", code)
	}
	if code := begin("wrong", "-on-exit=what").exitCode(t); code != 2 {
		t.Errorf("the agent has a wrong flag: exit code %d; expected its own, 2", code)
	}
	dead := begin("dead")
	m.becomesHealthy("beside")
	dead.signal(t, "vppsim", syscall.SIGKILL)
	if code := dead.exitCode(t); code != 1 {
		t.Errorf("VPP was killed: exit code %d; expected 1", code)
	}
}

// buildStandIn builds the image stand-in: what VPP's image has that Dockerfile.vpp uses.
func (m *machine) buildStandIn() {
	m.t.Helper()
	root := filepath.Join(m.dir, "stand-in")
	for path, text := range map[string]string{"usr/bin/vpp": standIn, "etc/vpp/startup.conf": "unix { nodaemon }\n", "Dockerfile": "FROM scratch\nCOPY . /\n"} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			m.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			m.t.Fatal(err)
		}
	}
	m.copy(filepath.Join(m.dir, "dist", "linux-"+runtime.GOARCH, "vppsim"), root+"/usr/bin/vppsim")
	for _, program := range []string{"/bin/sh", "/bin/sleep"} {
		m.copy(program, root+program)
		libraries, err := exec.Command("ldd", program).Output()
		if err != nil {
			m.t.Fatal(err)
		}
		for _, library := range regexp.MustCompile(`/lib\S+`).FindAllString(string(libraries), -1) {
			m.copy(library, root+library)
		}
	}
	m.buildah("bud", "--isolation", "chroot", "-t", "localhost/stand-in", root)
}

// copy copies a program.
func (m *machine) copy(from, to string) {
	m.t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, data, 0o755)
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// signal sends a signal to the program with this name among the children of a run, and theirs.
func (r run) signal(t *testing.T, name string, signal syscall.Signal) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	type process struct{ pid, parent int }
	names := map[process]string{}
	for _, path := range all {
		text, _ := os.ReadFile(path) // it may have ended
		var p process
		var comm, state string
		if _, err := fmt.Sscanf(string(text), "%d (%s %s %d", &p.pid, &comm, &state, &p.parent); err == nil {
			names[p] = strings.TrimSuffix(comm, ")")
		}
	}
	family := map[int]bool{r.pid: true}
	for range len(names) { // at most so many generations
		for p, comm := range names {
			if family[p.parent] && comm == name {
				if err := syscall.Kill(p.pid, signal); err != nil {
					t.Fatal(err)
				}
				return
			}
			family[p.pid] = family[p.pid] || family[p.parent]
		}
	}
	t.Fatalf("no process %s among the children", name)
}

// exitCode waits for the end of a run.
func (r run) exitCode(t *testing.T) int {
	t.Helper()
	select {
	case err := <-r.over:
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return exit.ExitCode()
		}
		if err != nil {
			t.Fatal(err)
		}
		return 0
	case <-time.After(testkit.Patience):
		t.Fatal("the container still runs")
		return -1
	}
}
