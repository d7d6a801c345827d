package vpp_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	vppif "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/vpe"
	"go.fd.io/govpp/proxy"

	"github.com/keyplane/keyplane/descriptors/vpp"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/scheduler"
)

// running returns a plugin that is connected to a simulated VPP.
func running(t *testing.T, c vpp.Config) (*vpp.Plugin, *vppsim.Sim) {
	t.Helper()
	dir := t.TempDir()
	c.Socket, c.StatsSocket = filepath.Join(dir, "api.sock"), filepath.Join(dir, "stats.sock")
	sim, err := vppsim.New(vppsim.Options{Socket: c.Socket, StatsSocket: c.StatsSocket})
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Kill)
	plugin, err := vpp.Register(scheduler.New(scheduler.Options{}), vpp.Options{Connection: c})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- plugin.Run(t.Context()) }()
	t.Cleanup(func() { // the test's context has ended
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	until(t, func() bool { return plugin.Connection().Connected }, func() string { return "VPP is not connected" })
	return plugin, sim
}

// TestCommand runs lines of VPP's command line, also without VPP.
func TestCommand(t *testing.T) {
	plugin, sim := running(t, vpp.Config{})
	if text, err := plugin.Command(t.Context(), "show version"); err != nil || !strings.HasPrefix(text, "vpp v") {
		t.Errorf("got %q, %v", text, err)
	}
	if text, err := plugin.Command(t.Context(), "no such line"); err != nil || !strings.Contains(text, "no such line") {
		t.Errorf("a wrong line: %q, %v", text, err)
	}
	if text, err := plugin.Command(t.Context(), "sr localsid del prefix 2001:db8::1/128"); err == nil || err.Error() != `VPP command "sr localsid del prefix 2001:db8::1/128": sr localsid: The requested localsid could not be deleted. SR localsid not found` {
		t.Errorf("a line that VPP refuses: %q, %v; expected its text", text, err)
	}
	sim.Kill()
	until(t, func() bool { return !plugin.Connection().Connected }, func() string { return "VPP is connected" })
	const lost = "VPP is not connected"
	if _, err := plugin.Command(t.Context(), "show version"); err == nil || !strings.HasPrefix(err.Error(), lost+": ") || strings.Count(err.Error(), lost) != 1 {
		t.Errorf("without VPP: %v", err)
	}
}

// TestProxy has GoVPP's own client use the proxy, before and after VPP is gone.
func TestProxy(t *testing.T) {
	plugin, sim := running(t, vpp.Config{Proxy: true})
	server := httptest.NewServer(plugin.Proxy())
	defer server.Close()
	client, err := proxy.Connect(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	channel, err := client.NewBinapiClient()
	if err != nil {
		t.Fatal(err)
	}
	var version vpe.ShowVersionReply
	if err := channel.Invoke(t.Context(), &vpe.ShowVersion{}, &version); err != nil || !strings.HasSuffix(version.Version, "-simulated") {
		t.Errorf("got %+v, %v", version, err)
	}
	useProxy(t, client, channel)
	sim.Kill()
	until(t, func() bool { return !plugin.Connection().Connected }, func() string { return "VPP is connected" })
	r, err := http.NewRequestWithContext(t.Context(), http.MethodConnect, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("without VPP: %s", answer.Status)
	}
}

// useProxy has the client call everything besides Invoke.
func useProxy(t *testing.T, client *proxy.Client, channel *proxy.BinapiClient) {
	t.Helper()
	if err := channel.CheckCompatiblity(&vpe.ShowVersion{}, &vppif.SwInterfaceDump{}); err != nil {
		t.Errorf("messages that VPP has: %v", err)
	}
	if err := channel.CheckCompatiblity(&unknownMessage{}); err == nil || err.Error() != "compatibility check failed" {
		t.Errorf("a message that nobody knows: %v", err)
	}
	replies, names := channel.SendMultiRequest(&vppif.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)}), []string{}
	for {
		var d vppif.SwInterfaceDetails
		last, err := replies.ReceiveReply(&d)
		if err != nil {
			t.Fatal(err)
		}
		if last {
			break
		}
		names = append(names, d.InterfaceName)
	}
	if !slices.Equal(names, []string{"local0"}) {
		t.Errorf("interfaces: %q", names)
	}
	stream, err := channel.NewStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.SendMsg(&vpe.ShowVersion{}); err != nil {
		t.Error(err)
	}
	if m, err := stream.RecvMsg(); err != nil || m.GetMessageName() != "show_version_reply" {
		t.Errorf("a reply on a stream: %v, %v", m, err)
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
	if err := stream.SendMsg(&vpe.ShowVersion{}); err == nil || !strings.Contains(err.Error(), "no stream has the ID 1") {
		t.Errorf("a stream that is closed: %v", err)
	}
	stats, err := client.NewStatsClient()
	if err != nil {
		t.Fatal(err)
	}
	if err := stats.GetSystemStats(&api.SystemStats{}); err != nil {
		t.Errorf("counters: %v", err)
	}
}

// An unknownMessage is one that no VPP has.
type unknownMessage struct{ vpe.ShowVersion }

func (*unknownMessage) GetMessageName() string { return "show_nothing" }

// TestProxyIsOff has a configuration that does not enable it.
func TestProxyIsOff(t *testing.T) {
	plugin, err := vpp.Register(scheduler.New(scheduler.Options{}), vpp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if plugin.Proxy() != nil {
		t.Error("the proxy is on")
	}
}
