package core_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/vlib"
	"go.fd.io/govpp/binapi/vpe"

	"github.com/keyplane/keyplane/descriptors/vpp/conn"
	"github.com/keyplane/keyplane/internal/vppsim/core"
)

// counting is a whole plugin: it counts the requests for its version.
func counting(vpp *core.VPP) {
	asked := uint32(0)
	vpp.Register(core.Plugin{
		Messages: []core.Message{core.Call(func(_ *acl.ACLPluginGetVersion, r *acl.ACLPluginGetVersionReply) core.Errno {
			asked++
			r.Major, r.Minor = 1, asked
			return core.OK
		})},
		Pages: map[string]func() string{"show acl": func() string { return "a page\n" }},
	})
}

// A plugin needs nothing but its own package: its message is served, its page is shown, and a restart makes its state
// again.
func TestPluginServesItsMessagesAndPages(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "api.sock")
	server, err := core.NewServer(core.Options{Socket: socket}, counting)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Kill()
	for range 2 {
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		c := dial(t, socket)
		for want := uint32(1); want <= 2; want++ {
			var version acl.ACLPluginGetVersionReply
			if err := c.Call(t.Context(), &acl.ACLPluginGetVersion{}, &version); err != nil || version.Minor != want {
				t.Errorf("version %d.%d, %v; want 1.%d", version.Major, version.Minor, err, want)
			}
		}
		var page vlib.CliInbandReply
		if err := c.Call(t.Context(), &vlib.CliInband{Cmd: "show  acl"}, &page); err != nil || page.Reply != "a page\n" {
			t.Errorf("show acl prints %q, %v", page.Reply, err)
		}
	}
}

func dial(t *testing.T, socket string) *conn.Conn {
	t.Helper()
	c, err := conn.Dial(t.Context(), socket, "test")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = c.Run(context.Background()); close(ended) }()
	t.Cleanup(func() { c.Close(errors.New("the test has ended")); <-ended })
	return c
}

func TestServerRefusesWrongOptionsAndPlugins(t *testing.T) {
	twice := func(vpp *core.VPP) { counting(vpp); counting(vpp) }
	again := func(vpp *core.VPP) {
		vpp.Register(core.Plugin{Messages: []core.Message{
			core.Call(func(*vpe.ShowVersion, *vpe.ShowVersionReply) core.Errno { return core.OK }),
		}})
	}
	for _, tt := range []struct {
		says    string
		o       core.Options
		plugins func(*core.VPP)
	}{
		{"two plugins serve acl_plugin_get_version", core.Options{}, twice},
		{"two plugins serve show_version", core.Options{}, again},
		{`no plugin "nat"; expected one of abf, acl, `, core.Options{Without: []string{"nat"}}, counting},
		{`no release "1.0"; expected one of 22.02, `, core.Options{Release: "1.0"}, counting},
	} {
		if _, err := core.NewServer(tt.o, tt.plugins); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("error %v; want one that says %q", err, tt.says)
		}
	}
}
