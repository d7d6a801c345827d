package telemetry_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/keyplane/keyplane/descriptors/vpp/telemetry"
	"github.com/keyplane/keyplane/internal/vppsim"
	"github.com/keyplane/keyplane/internal/vppsim/core"
	"github.com/keyplane/keyplane/proto/ligato/vpp/interfaces"
)

// start starts a simulated VPP with two workers, a NIC of index 1, and counters.
func start(t *testing.T) (sim *vppsim.Sim, socket string) {
	t.Helper()
	return startRelease(t, "")
}

// startRelease is start with a release of VPP.
func startRelease(t *testing.T, release string) (sim *vppsim.Sim, socket string) {
	t.Helper()
	dir := t.TempDir()
	socket = filepath.Join(dir, "stats.sock")
	sim, err := vppsim.New(vppsim.Options{
		Socket: filepath.Join(dir, "api.sock"), StatsSocket: socket, Workers: 2, Hardware: []string{"GigabitEthernet0/8/0"}, Release: release,
	})
	if err == nil {
		err = sim.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Kill)
	count(t, sim)
	return sim, socket
}

func count(t *testing.T, sim *vppsim.Sim) {
	t.Helper()
	err := errors.Join(
		sim.Count(1, "rx", core.Count{Packets: 10, Bytes: 1500}),
		sim.Count(1, "tx-broadcast", core.Count{Packets: 2, Bytes: 120}),
		sim.Count(1, "drops", core.Count{Packets: 3}),
		sim.SetNodes([]core.Node{{Name: "ip4-input", Calls: 4, Vectors: 10, Clocks: 1000}, {Name: "idle"}},
			map[string]uint64{"ip4-input/ip4 ttl <= 1": 7, "arp-input/no buffer": 0, "null-node/a/b": 1}),
	)
	if err != nil {
		t.Fatal(err)
	}
}

func names() map[uint32]string { return map[uint32]string{1: "uplink"} }

// TestRead goes the whole path, for each layout of the shared memory: that of 22.02, of the
// releases until 25.10, and of later ones.
func TestRead(t *testing.T) {
	for _, release := range []string{"22.02", "22.06", "25.10", "26.02", "26.06"} {
		t.Run(release, func(t *testing.T) { testRead(t, release) })
	}
}

func testRead(t *testing.T, release string) {
	t.Helper()
	sim, socket := startRelease(t, release)
	p := telemetry.New(telemetry.Options{Socket: socket, Names: names})
	s, err := p.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Interfaces) != 2 || s.Interfaces[0].Name != "local0" {
		t.Fatalf("interfaces are %+v", s.Interfaces)
	}
	want := telemetry.InterfaceCounters{
		Index: 1, Name: "GigabitEthernet0/8/0", Declared: "uplink", RX: telemetry.Combined{Packets: 10, Bytes: 1500},
		TXBroadcast: telemetry.Combined{Packets: 2, Bytes: 120}, Drops: 3,
	}
	if got := s.Interfaces[1]; got != want {
		t.Errorf("the interface is %+v, want %+v", got, want)
	}
	if len(s.Runtime) != 3 || s.Runtime[0].Items[0] != (telemetry.RuntimeItem{Name: "ip4-input", Calls: 4, Vectors: 10, Clocks: 1000}) || s.Runtime[2].Name != "vpp_wk_1" {
		t.Errorf("runtime is %+v", s.Runtime)
	}
	if len(s.Nodes) != 3 || s.Nodes[1] != (telemetry.NodeCounter{Node: "ip4-input", Reason: "ip4 ttl <= 1", Value: 7}) || s.Nodes[2].Reason != "a/b" {
		t.Errorf("nodes are %+v", s.Nodes)
	}
	if len(s.Memory) != 2 || s.Memory[1].Name != "main heap" || s.Memory[1].Total != 1<<30 || s.Memory[1].Trimmable != 1<<20 {
		t.Errorf("memory is %+v", s.Memory)
	}
	if len(s.Buffers) != 1 || s.Buffers[0] != (telemetry.BufferPool{Name: "default-numa-0", Cached: 10, Used: 100, Available: 16000}) {
		t.Errorf("buffers are %+v", s.Buffers)
	}

	// What VPP counts is seen by the next reading; so is a VPP that was started again.
	if err := sim.Count(1, "rx", core.Count{Packets: 1, Bytes: 60}); err != nil {
		t.Fatal(err)
	}
	stats, err := p.InterfaceStats(t.Context())
	if err != nil || len(stats) != 1 || stats[0].GetName() != "uplink" || stats[0].GetRx().GetPackets() != 11 || stats[0].GetRx().GetBytes() != 1560 || stats[0].GetDrops() != 3 {
		t.Errorf("counters of declared interfaces are %v: %v", stats, err)
	}
	if err := sim.Restart(); err != nil {
		t.Fatal(err)
	}
	if s, err := p.Read(t.Context(), telemetry.Interfaces); err != nil || s.Interfaces[1].RX.Packets != 0 || s.Memory != nil {
		t.Errorf("after a restart: %+v: %v", s, err)
	}
	sim.Kill()
	if _, err := p.Read(t.Context()); !errors.Is(err, telemetry.ErrNoSegment) {
		t.Errorf("of a killed VPP: %v", err)
	}
}

// Each group is read or skipped by itself.
func TestSkipped(t *testing.T) {
	_, socket := start(t)
	for _, g := range telemetry.Groups() {
		p := telemetry.New(telemetry.Options{Socket: socket, Config: telemetry.Config{Skipped: []telemetry.Group{g}}})
		s, err := p.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		empty := map[telemetry.Group]bool{
			telemetry.Runtime: s.Runtime == nil, telemetry.Memory: s.Memory == nil, telemetry.Buffers: s.Buffers == nil,
			telemetry.Nodes: s.Nodes == nil, telemetry.Interfaces: s.Interfaces == nil,
		}
		for group, none := range empty {
			if none != (group == g) {
				t.Errorf("%s is skipped, and %s is empty: %t", g, group, none)
			}
		}
	}
	if _, err := telemetry.New(telemetry.Options{Socket: socket, Config: telemetry.Config{Disabled: true}}).Read(t.Context()); !errors.Is(err, telemetry.ErrDisabled) {
		t.Errorf("disabled: %v", err)
	}
}

// No socket, a socket of something else, and a segment that is none are errors at once.
func TestReadWithoutVPP(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file.sock")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, socket := range []string{filepath.Join(dir, "nobody.sock"), file} {
		if _, err := telemetry.New(telemetry.Options{Socket: socket}).Read(t.Context()); !errors.Is(err, telemetry.ErrNoSegment) {
			t.Errorf("%s: %v", filepath.Base(socket), err)
		}
	}
}

// Readings while VPP rewrites its directory give counters or an error, and never a mixture.
func TestReadWhileVPPWrites(t *testing.T) {
	sim, socket := start(t)
	p := telemetry.New(telemetry.Options{Socket: socket})
	done := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				_ = sim.Count(1, "rx", core.Count{Packets: 1, Bytes: 150})
			}
		}
	})
	for range 20 {
		s, err := p.Read(t.Context(), telemetry.Interfaces)
		if err == nil && s.Interfaces[1].RX.Bytes != 150*s.Interfaces[1].RX.Packets {
			t.Errorf("a mixture: %+v", s.Interfaces[1].RX)
		}
	}
	close(done)
	writing.Wait()
}

func TestCollector(t *testing.T) {
	_, socket := start(t)
	p := telemetry.New(telemetry.Options{
		Socket: socket, Names: names,
		States: func(context.Context) (map[string]*interfaces.InterfaceState, error) {
			return map[string]*interfaces.InterfaceState{"uplink": {AdminStatus: interfaces.InterfaceState_UP}}, nil
		},
	})
	collector := p.Collector("vpp1")
	if n := testutil.CollectAndCount(collector); n != 0 {
		t.Errorf("%d metrics before the first poll", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	for testutil.CollectAndCount(collector) == 0 {
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	want := `
# HELP ligato_ifplugin_admin_state 1 if the interface is set up, else 0.
# TYPE ligato_ifplugin_admin_state gauge
ligato_ifplugin_admin_state{name="uplink"} 1
# HELP vpp_buffers_num_free Free buffers, including those that threads have cached.
# TYPE vpp_buffers_num_free gauge
vpp_buffers_num_free{agent="vpp1",index="0",item="default-numa-0",threadID="0"} 16010
# HELP vpp_interfaces_rx_bytes Received bytes.
# TYPE vpp_interfaces_rx_bytes gauge
vpp_interfaces_rx_bytes{agent="vpp1",index="0",name="local0"} 0
vpp_interfaces_rx_bytes{agent="vpp1",index="1",name="uplink"} 1500
# HELP vpp_memory_trimmable Bytes that a heap could return.
# TYPE vpp_memory_trimmable gauge
vpp_memory_trimmable{agent="vpp1",thread="main heap",threadID="1"} 1.048576e+06
vpp_memory_trimmable{agent="vpp1",thread="stat segment",threadID="0"} 1.048576e+06
# HELP vpp_nodes_counter Packets that a node dropped or marked, by reason.
# TYPE vpp_nodes_counter gauge
vpp_nodes_counter{agent="vpp1",item="ip4-input",reason="ip4 ttl <= 1"} 7
vpp_nodes_counter{agent="vpp1",item="null-node",reason="a/b"} 1
# HELP vpp_runtime_vectors_per_call Mean number of packets of a call.
# TYPE vpp_runtime_vectors_per_call gauge
vpp_runtime_vectors_per_call{agent="vpp1",item="ip4-input",thread="vpp_main",threadID="0"} 2.5
`
	err := testutil.CollectAndCompare(collector, strings.NewReader(want), "ligato_ifplugin_admin_state", "vpp_buffers_num_free",
		"vpp_interfaces_rx_bytes", "vpp_memory_trimmable", "vpp_nodes_counter", "vpp_runtime_vectors_per_call")
	if err != nil {
		t.Error(err)
	}
}

// Missing counters are logged once, however long they are missing.
func TestMissingCountersAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := 0
		p := telemetry.New(telemetry.Options{Socket: filepath.Join(t.TempDir(), "nobody.sock"), Log: slog.New(counting{&lines})})
		ctx, cancel := context.WithTimeout(t.Context(), 10*telemetry.DefaultInterval+time.Second)
		defer cancel()
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
		if lines != 1 {
			t.Errorf("%d lines about missing counters, want one", lines)
		}
	})
}

// counting counts lines.
type counting struct{ n *int }

func (c counting) Enabled(context.Context, slog.Level) bool  { return true }
func (c counting) Handle(context.Context, slog.Record) error { *c.n++; return nil }
func (c counting) WithAttrs([]slog.Attr) slog.Handler        { return c }
func (c counting) WithGroup(string) slog.Handler             { return c }

func TestConfig(t *testing.T) {
	if err := (telemetry.Config{Skipped: telemetry.Groups()}).Validate(); err != nil {
		t.Error(err)
	}
	err := telemetry.Config{Skipped: []telemetry.Group{"nodes", "threads"}}.Validate()
	if err == nil || !strings.Contains(err.Error(), `skipped[1]: "threads"; expected some of [runtime memory buffers nodes interfaces]`) {
		t.Errorf("error %v", err)
	}
}
