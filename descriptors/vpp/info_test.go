package vpp_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/keyplane/keyplane/descriptors/vpp"
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
	plugin, err := vpp.Register(scheduler.New(scheduler.Options{}), vpp.Options{Connection: vpp.Config{Socket: socket}})
	if err != nil {
		t.Fatal(err)
	}
	if i := plugin.Info(); i.Connected || i.Connections != 0 || i.Socket != socket {
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
		until(t, func() bool { i := plugin.Info(); return i.Connected == want && i.Connections == connections },
			func() string { return "it is not so" })
		return plugin.Info()
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
