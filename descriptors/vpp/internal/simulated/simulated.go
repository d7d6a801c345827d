// Package simulated gives tests of descriptors a VPP, and a connection to it: a simulated
// VPP, or a real one if the environment has VPP=binary. It is test code: no product
// package imports it.
package simulated

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
)

// Real is, in place of a release, the VPP of the environment.
const Real = "real"

// Releases are those that tests are to pass on: the real VPP alone, if there is one.
func Releases() []string {
	if os.Getenv("VPP") != "" {
		return []string{Real}
	}
	return []string{"22.02", "23.06", "24.10", "25.10", "26.06"}
}

// Newest is the newest of Releases.
func Newest() string {
	all := Releases()
	return all[len(all)-1]
}

// A VPP is a simulated one, or the real one. Its methods end the test when they fail.
type VPP struct {
	testing.TB
	Sim    *vppsim.Sim // nil: it is real
	Socket string
	real   *testkit.VPP
	line   *relay // to the real one; nil: there is none
	deaths int    // of the simulated one, that Revive knows of
}

// Start starts a VPP that poses as release, or the real one; empty: the newest simulated one.
func Start(t testing.TB, release string) *VPP {
	t.Helper()
	return StartWith(t, vppsim.Options{Release: release})
}

// StartWith starts a VPP as o says, at a socket of its own. Of a real one o says nothing else.
func StartWith(t testing.TB, o vppsim.Options) *VPP {
	t.Helper()
	if o.Release == Real {
		vpp := testkit.StartVPP(t, os.Getenv("VPP"))
		return &VPP{TB: t, Socket: vpp.Socket, real: vpp}
	}
	v := &VPP{TB: t, Socket: filepath.Join(t.TempDir(), "api.sock")}
	o.Socket = v.Socket
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

// Restart ends VPP at once, and starts it again with nothing configured.
func (v *VPP) Restart() error {
	if v.Sim != nil {
		return v.Sim.Restart()
	}
	v.real.Kill()
	v.real.Start()
	return nil
}

// Revive starts VPP again if it has died, and tells whether it had.
func (v *VPP) Revive() (died bool) {
	v.Helper()
	if v.Sim != nil {
		deaths := v.Sim.Deaths()
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

// Kill ends VPP at once.
func (v *VPP) Kill() {
	if v.Sim != nil {
		v.Sim.Kill()
	} else {
		v.real.Kill()
	}
}

// Watch has what goes to a real VPP by Socket be counted from now on, so that it can be cut.
func (v *VPP) Watch() {
	v.Helper()
	if v.Sim == nil {
		v.line, v.Socket = startRelay(v, v.real.Socket)
	}
}

// DropAt closes the connection by which the n-th message from now on comes, before it is
// served or, if done, after; 0 ends that. A real VPP has to be watched.
func (v *VPP) DropAt(n int, done bool) {
	if v.Sim != nil {
		v.Sim.DropAt(n, done)
		return
	}
	v.line.mu.Lock()
	defer v.line.mu.Unlock()
	v.line.cutAt, v.line.done = n, done
}

// Counts are how often each message was asked for since they were last taken; of a real VPP
// that is not watched nobody knows.
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

// Show is a page of what VPP has, as the simulated one shows it.
func (v *VPP) Show(page string) string {
	v.Helper()
	if v.Sim != nil {
		return v.Sim.Show(page)
	}
	c, err := conn.Dial(context.Background(), v.real.Socket, "show")
	if err != nil {
		return err.Error() // it may be about to start
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

// Dial connects; the connection ends with the test.
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

// Loopback makes a loopback that is up, and has no tag unless one is given.
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

// Ask asks something that is not to be refused.
func (v *VPP) Ask(c *conn.Conn, request, reply api.Message) {
	v.Helper()
	if err := c.Call(v.Context(), request, reply); err != nil {
		v.Fatal(err)
	}
}
