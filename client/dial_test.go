package client_test

import (
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/client"
	"github.com/keyplane/keyplane/northbound/grpc"
)

// Dial finds an agent by its socket or its address. An agent with another label refuses calls,
// and the error names both.
func TestDial(t *testing.T) {
	sched, orch := agent(t)
	config := grpc.Config{Network: "unix", Endpoint: filepath.Join(t.TempDir(), "grpc.sock")}
	if err := config.Complete(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan net.Addr, 1)
	server := grpc.Server{Config: config, Options: grpc.Options{Scheduler: sched, Layers: orch, Label: "vpp1", Log: slog.New(slog.DiscardHandler)}, Ready: ready}
	run(t, server.Run)
	path := (<-ready).String()
	nobody := filepath.Join(filepath.Dir(path), "none")
	const refused = "this agent has the label vpp1, and the request is for vpp2"
	for _, test := range []struct {
		name    string
		to      client.Agent
		failure string // part of the error; empty: none
	}{
		{name: "socket", to: client.Agent{Socket: path}},
		{name: "socket and label", to: client.Agent{Socket: path, Label: "vpp1"}},
		{name: "socket of another agent", to: client.Agent{Socket: path, Label: "vpp2"}, failure: refused},
		{name: "address", to: client.Agent{Address: "unix:" + path, Label: "vpp1"}},
		{name: "an address counts more than a socket", to: client.Agent{Address: "unix:" + path, Socket: nobody}},
		{name: "address of another agent", to: client.Agent{Address: "unix:" + path, Label: "vpp2"}, failure: refused},
		{name: "nobody", to: client.Agent{Socket: nobody}, failure: "no such file or directory"},
	} {
		conn, err := client.Dial(t.Context(), test.to)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		err = client.NewRemote(conn, client.Options{}).Put(t.Context(), link("a"))
		conn.Close()
		switch {
		case test.failure == "" && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.failure != "" && (err == nil || !strings.Contains(err.Error(), test.failure)):
			t.Errorf("%s: %v; expected %q", test.name, err, test.failure)
		}
	}
}
