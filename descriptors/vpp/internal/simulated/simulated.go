// Package simulated gives tests of descriptors a simulated VPP, and a connection to it.
package simulated

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/vppsim"
)

// Releases are those that tests are to pass on.
func Releases() []string { return []string{"22.02", "23.06", "24.10", "25.10", "26.06"} }

// A VPP is a simulated one. Its methods end the test when they fail.
type VPP struct {
	testing.TB
	Sim    *vppsim.Sim
	Socket string
}

// Start starts a VPP that poses as release; empty: the newest.
func Start(t testing.TB, release string) *VPP {
	t.Helper()
	v := &VPP{TB: t, Socket: filepath.Join(t.TempDir(), "api.sock")}
	sim, err := vppsim.New(vppsim.Options{Socket: v.Socket, Release: release})
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
