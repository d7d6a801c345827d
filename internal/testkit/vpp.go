package testkit

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// VPP is a VPP without devices, workers and configuration; only its API is enabled.
type VPP struct {
	Socket string // of the API; the same after a restart
	config string // of a real VPP, without its plugins
	*process
}

// StartVPP starts a VPP program in a private network namespace and waits until it serves.
// VPP sets host interfaces down when it releases them, so it must not run in the host's.
// The test ends it.
func StartVPP(t testing.TB, program string) *VPP {
	t.Helper()
	return startVPP(t, program, syscall.CLONE_NEWNET)
}

// StartVPPOnly is StartVPP with no plugins but these, for example "memif_plugin.so".
func StartVPPOnly(t testing.TB, program string, plugins ...string) *VPP {
	t.Helper()
	return startVPP(t, program, syscall.CLONE_NEWNET, plugins...)
}

// StartVPPHere starts VPP in the network namespace of the test, which must be private.
func StartVPPHere(t testing.TB, program string) *VPP {
	t.Helper()
	return startVPP(t, program, 0)
}

// startVPP starts a VPP without DPDK, so it leaves the devices of the host alone. Its folder has a short path, because
// a socket's path has at most 107 bytes, and it removes the shared memory that VPP leaves.
func startVPP(t testing.TB, program string, namespaces uintptr, plugins ...string) *VPP {
	t.Helper()
	dir, err := os.MkdirTemp("", "vpp") //nolint:usetesting // its configuration has no way to quote what names of tests may have
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		left, err := filepath.Glob("/dev/shm/" + filepath.Base(dir) + "-*")
		for _, path := range append(left, dir) {
			err = errors.Join(err, os.RemoveAll(path))
		}
		if err != nil {
			t.Error(err)
		}
	})
	v := &VPP{Socket: filepath.Join(dir, "api.sock")}
	v.config = fmt.Sprintf("unix { nodaemon nosyslog nobanner runtime-dir %[1]s cli-listen %[1]s/cli.sock } socksvr { socket-name %[2]s } "+
		"memory { main-heap-size 4G } statseg { size 512M socket-name %[1]s/stats.sock } punt { socket %[1]s/punt.sock } api-segment { prefix %[3]s } buffers { page-size default } ",
		dir, v.Socket, filepath.Base(dir))
	return v.run(t, namespaces, program, v.config+loading(plugins))
}

// Load has the next start of a real VPP load no plugins but these.
func (v *VPP) Load(plugins ...string) { v.args = []string{v.config + loading(plugins)} }

// loading returns the part of VPP's configuration that says which plugins it loads; none: all but DPDK.
func loading(plugins []string) string {
	if len(plugins) == 0 {
		return "plugins { plugin dpdk_plugin.so { disable } }"
	}
	return "plugins { plugin default { disable } plugin " + strings.Join(plugins, " { enable } plugin ") + " { enable } }"
}

// StartVPPOrSim starts the VPP program of the environment variable VPP, or a simulated VPP without it.
func StartVPPOrSim(t testing.TB) *VPP {
	t.Helper()
	if program := os.Getenv("VPP"); program != "" {
		return StartVPP(t, program)
	}
	return StartVPPSim(t)
}

// StartVPPSim builds and starts cmd/vppsim, a simulated VPP, like StartVPP.
func StartVPPSim(t testing.TB) *VPP {
	t.Helper()
	v := &VPP{Socket: filepath.Join(t.TempDir(), "api.sock")}
	program := filepath.Join(Build(t, nil, filepath.Join(repoRoot(t), "cmd/vppsim")), "vppsim")
	return v.run(t, 0, program, "-socket", v.Socket)
}

// run starts the program, and waits until its API socket accepts connections.
func (v *VPP) run(t testing.TB, namespaces uintptr, program string, args ...string) *VPP {
	t.Helper()
	v.process = &process{t: t, path: program, args: args, namespaces: namespaces, ready: func() bool { return accepts(v.Socket) }}
	t.Cleanup(v.Kill)
	v.Start()
	return v
}

// accepts reports whether a process listens on a socket.
func accepts(socket string) bool {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return false
	}
	return c.Close() == nil
}
