package vpp_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/api"

	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/descriptors/vpp/internal/simulated"
	"github.com/keyplane/keyplane/internal/testkit"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/scheduler"
)

// TestInfo has a VPP that is an old one, was started anew, and is gone.
func TestInfo(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "api.sock")
	sim, err := vppsim.New(vppsim.Options{Socket: socket, Release: "22.02"})
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := vpp.Register(scheduler.New(scheduler.Options{}), vpp.Options{Connection: vpp.Config{Socket: socket, ProbeTimeout: testkit.Patience}})
	if err != nil {
		t.Fatal(err)
	}
	if i := plugin.Info(t.Context()); i.Connected || i.Connections != 0 || i.Socket != socket {
		t.Errorf("before it runs: %+v", i)
	}
	ended := make(chan error, 1)
	go func() { ended <- plugin.Run(t.Context()) }()
	t.Cleanup(func() { // the test's context has ended
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	connected := func(want bool, connections int) vpp.Info {
		t.Helper()
		until(t, func() bool { i := plugin.Info(t.Context()); return i.Connected == want && i.Connections == connections },
			func() string { return "it is not so" })
		return plugin.Info(t.Context())
	}
	if err := sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Kill)
	connected(true, 1)
	if err := sim.Restart(); err != nil {
		t.Fatal(err)
	}
	i := connected(true, 2)
	if i.Err == nil || !strings.HasPrefix(i.About.Version, "22.02") || i.About.PID == 0 || i.Since.Before(i.ErrAt) {
		t.Errorf("it is %+v", i)
	}
	for feature, want := range map[string]struct {
		message string
		has     bool
	}{"loopback": {"create_loopback_", true}, "memif": {"memif_create_", true}, "DHCP client": {"dhcp_client_details_", false}} {
		n := slices.IndexFunc(i.Capabilities, func(c vpp.Capability) bool { return c.Feature == feature })
		if c := i.Capabilities[n]; !strings.HasPrefix(c.Message, want.message) || c.Has != want.has {
			t.Errorf("%+v, want %v", c, want)
		}
	}
	sim.Kill()
	if i := connected(false, 2); i.Err == nil || len(i.Capabilities) != 0 || i.About.Version == "" {
		t.Errorf("when it is gone: %+v", i)
	}
}

// TestLoaded has VPP say which plugins it has loaded.
func TestLoaded(t *testing.T) {
	onEachVPP(t, func(t *testing.T, of *simulated.VPP) {
		testLoaded(t, of, nil)
	})
}

// TestLoadedIsNotKnown has a VPP that cannot, or does not, say what it has loaded.
func TestLoadedIsNotKnown(t *testing.T) {
	of := simulated.StartWith(t, vppsim.Options{Without: []string{"vlib"}})
	testLoaded(t, of, scheduler.ErrUnimplemented)
	of = simulated.Start(t, "")
	of.Sim.Fail("cli_inband", vppsim.Fault{Retval: int32(api.UNSPECIFIED)})
	testLoaded(t, of, api.UNSPECIFIED)
}

func testLoaded(t *testing.T, of *simulated.VPP, want error) {
	t.Helper()
	plugin, err := vpp.Register(scheduler.New(scheduler.Options{}), vpp.Options{Connection: vpp.Config{Socket: of.Socket, ProbeTimeout: testkit.Patience}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- plugin.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	until(t, func() bool { return plugin.Info(t.Context()).Connected }, func() string { return "VPP is not connected" })
	i := plugin.Info(t.Context())
	if want != nil {
		if !errors.Is(i.LoadedErr, want) || len(i.Loaded) != 0 {
			t.Errorf("it is %+v, %v, want %v", i.Loaded, i.LoadedErr, want)
		}
		return
	}
	n := slices.IndexFunc(i.Loaded, func(l vpp.Loaded) bool { return l.Name == "memif_plugin.so" })
	if i.LoadedErr != nil || n < 0 {
		t.Fatalf("it is %+v, %v", i.Loaded, i.LoadedErr)
	}
	release, _, _ := strings.Cut(i.About.Version, "-")
	if l := i.Loaded[n]; !strings.HasPrefix(l.Version, release) || !strings.HasPrefix(l.Description, "Packet Memory Interface (memif)") {
		t.Errorf("memif is %+v, want %s", l, release)
	}
}
