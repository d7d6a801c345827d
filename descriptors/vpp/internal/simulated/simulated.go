// Package simulated is test code: it gives tests of descriptors a VPP and a connection to
// it. It starts a simulated VPP, or the real one of the environment variable VPP=PATH.
//
// Tests are written once: the methods of VPP hide the difference, and Show renders the
// state of a real VPP in the format of the simulated one.
package simulated

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
)

// Real stands for the real VPP in place of a release.
const Real = "real"

// Releases returns the releases that tests must pass on: only Real if the environment
// names a VPP. The simulated ones are the oldest and the newest that are supported, and some in between.
func Releases() []string {
	if os.Getenv("VPP") != "" {
		return []string{Real}
	}
	return []string{"22.02", "23.06", "24.10", "25.10", "26.06"}
}

// HasTAPs reports whether the VPPs of this test can make TAPs. A real one needs the host's vhost-net.
func HasTAPs() bool {
	if os.Getenv("VPP") == "" {
		return true
	}
	_, err := os.Stat("/dev/vhost-net")
	return err == nil
}

// NeedTAPs skips a test on a VPP that cannot make TAPs.
func NeedTAPs(t testing.TB) {
	t.Helper()
	testkit.Need(t, "/dev/vhost-net, for the TAPs of a real VPP", HasTAPs())
}

// Newest returns the last of Releases.
func Newest() string {
	all := Releases()
	return all[len(all)-1]
}

// A VPP is a simulated or a real VPP. Its methods fail the test on errors.
type VPP struct {
	testing.TB
	Sim    *vppsim.Sim // nil for a real VPP
	Socket string
	real   *testkit.VPP
	line   *relay // in front of the real VPP; nil before Watch
	deaths int    // crashes of the simulated VPP that Revive has handled
}

// Start starts a simulated VPP of this release (empty: the newest), or the real one.
func Start(t testing.TB, release string) *VPP {
	t.Helper()
	return StartWith(t, vppsim.Options{Release: release})
}

// StartWith starts a VPP with options, at its own socket. For a real VPP, only Release is
// used.
func StartWith(t testing.TB, o vppsim.Options) *VPP {
	t.Helper()
	if o.Release == Real {
		vpp := testkit.StartVPP(t, os.Getenv("VPP"))
		return &VPP{TB: t, Socket: vpp.Socket, real: vpp}
	}
	v := &VPP{TB: t, Socket: filepath.Join(t.TempDir(), "api.sock")}
	o.Socket = v.Socket
	o.StatsSocket = filepath.Join(filepath.Dir(v.Socket), "stats.sock")
	sim, err := vppsim.New(o)
	if err == nil {
		err = sim.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Kill)
	v.Sim = sim
	return v
}

// StartOnly starts a VPP that has loaded no plugins but these, for example "memif_plugin.so".
func StartOnly(t testing.TB, release string, plugins ...string) *VPP {
	t.Helper()
	if release == Real {
		vpp := testkit.StartVPPOnly(t, os.Getenv("VPP"), plugins...)
		return &VPP{TB: t, Socket: vpp.Socket, real: vpp}
	}
	return StartWith(t, vppsim.Options{Release: release, Without: vppsim.Without(release, plugins...)})
}

// RestartOnly is Restart of a VPP that loads no plugins but these.
func (v *VPP) RestartOnly(plugins ...string) error {
	if v.Sim != nil {
		return v.Sim.RestartWithout(vppsim.Without(v.Sim.Release(), plugins...)...)
	}
	v.real.Load(plugins...)
	return v.Restart()
}

// RestartAll is Restart of a VPP that loads all plugins again.
func (v *VPP) RestartAll() error {
	if v.Sim != nil {
		return v.Sim.RestartWithout()
	}
	v.real.Load()
	return v.Restart()
}

// Restart kills VPP and starts it again without configuration.
func (v *VPP) Restart() error {
	if v.Sim != nil {
		return v.Sim.Restart()
	}
	v.real.Kill()
	v.real.Start()
	return nil
}

// Revive restarts VPP if it has crashed, and reports whether it had.
func (v *VPP) Revive() (died bool) {
	v.Helper()
	if v.Sim != nil {
		deaths := v.Sim.Deaths()
		// A crash of the simulated VPP ends no process of the host; it is counted.
		died, v.deaths = deaths > v.deaths, deaths
	} else {
		died = !v.real.Running()
	}
	if died {
		if err := v.Restart(); err != nil {
			v.Fatal(err)
		}
	}
	return died
}

// Kill kills VPP without a clean shutdown.
func (v *VPP) Kill() {
	if v.Sim != nil {
		v.Sim.Kill()
	} else {
		v.real.Kill()
	}
}

// Watch counts the messages to a real VPP from now on. Connections must use Socket after
// this call. A simulated VPP counts always.
func (v *VPP) Watch() {
	v.Helper()
	if v.Sim == nil {
		v.line, v.Socket = startRelay(v, v.real.Socket)
	}
}

// DropAt closes the connection at the n-th message from now on: before its execution or, if
// done, after it. 0 cancels it. A real VPP needs Watch first.
func (v *VPP) DropAt(n int, done bool) {
	if v.Sim != nil {
		v.Sim.DropAt(n, done)
		return
	}
	v.line.mu.Lock()
	defer v.line.mu.Unlock()
	v.line.cutAt, v.line.done, v.line.kill = n, done, nil
}

// DieAt kills VPP at the n-th message from now on: before its execution or, if done, after it.
// 0 cancels it. Revive starts VPP again. A real VPP needs Watch first.
func (v *VPP) DieAt(n int, done bool) {
	if v.Sim != nil {
		v.Sim.DieAt(n, done)
		return
	}
	v.line.mu.Lock()
	defer v.line.mu.Unlock()
	v.line.cutAt, v.line.done, v.line.kill = n, done, v.real.Kill
}

// Counts returns the number of messages by name since the last call. It is nil for a real
// VPP without Watch.
func (v *VPP) Counts() map[string]int {
	switch {
	case v.Sim != nil:
		return v.Sim.Counts()
	case v.line == nil:
		return nil
	}
	v.line.mu.Lock()
	defer v.line.mu.Unlock()
	out := v.line.counts
	v.line.counts = map[string]int{}
	return out
}

// Show renders a part of VPP's state as the simulated VPP does. See show for the pages.
func (v *VPP) Show(page string) string {
	v.Helper()
	if v.Sim != nil {
		return v.Sim.Show(page)
	}
	c, err := conn.Dial(context.Background(), v.real.Socket, "show")
	if err != nil {
		return err.Error() // VPP may be starting; the test tries again
	}
	ended := make(chan struct{})
	go func() { _ = c.Run(context.Background()); close(ended) }()
	defer func() { c.Close(errors.New("it was shown")); <-ended }()
	text, err := show(c, page)
	if err != nil {
		return err.Error()
	}
	return text
}

// Dial returns a connection that ends with the test.
func (v *VPP) Dial() *conn.Conn {
	v.Helper()
	c, err := conn.Dial(v.Context(), v.Socket, "test")
	if err != nil {
		v.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = c.Run(context.Background()); close(ended) }()
	v.Cleanup(func() { c.Close(errors.New("the test is over")); <-ended })
	return c
}

// Loopback creates a loopback interface that is up. An empty tag sets none.
func (v *VPP) Loopback(c *conn.Conn, tag string) interface_types.InterfaceIndex {
	v.Helper()
	var loop vppif.CreateLoopbackReply
	v.Ask(c, &vppif.CreateLoopback{}, &loop)
	if tag != "" {
		v.Ask(c, &vppif.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: loop.SwIfIndex, Tag: tag}, &vppif.SwInterfaceTagAddDelReply{})
	}
	v.Ask(c, &vppif.SwInterfaceSetFlags{SwIfIndex: loop.SwIfIndex, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP}, &vppif.SwInterfaceSetFlagsReply{})
	return loop.SwIfIndex
}

// Command runs a command of VPP's command line.
func (v *VPP) Command(c *conn.Conn, line string) string {
	v.Helper()
	var r vlib.CliInbandReply
	v.Ask(c, &vlib.CliInband{Cmd: line}, &r)
	return r.Reply
}

// Release is that of the VPP, such as "25.10".
func (v *VPP) Release(c *conn.Conn) string {
	v.Helper()
	if v.Sim != nil {
		return v.Sim.Release()
	}
	_, version, _ := strings.Cut(v.Command(c, "show version"), "vpp v")
	return version[:min(len(version), len("25.10"))]
}

// Ask sends a request that must succeed.
func (v *VPP) Ask(c *conn.Conn, request, reply api.Message) {
	v.Helper()
	if err := c.Call(v.Context(), request, reply); err != nil {
		v.Fatal(err)
	}
}
